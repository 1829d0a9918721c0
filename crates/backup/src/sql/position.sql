-- The place at which WAL is written next, and its segment.
SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint AS position,
       pg_walfile_name(pg_current_wal_insert_lsn()) AS segment
