-- The server's counters of the relations that are not its own: what all sessions have read and written (pgstatfuncs.c: pg_stat_get_*).
SELECT oid,
       pg_catalog.pg_stat_get_numscans(oid) AS scans,
       pg_catalog.pg_stat_get_tuples_returned(oid) AS returned,
       pg_catalog.pg_stat_get_blocks_fetched(oid) AS blocks,
       pg_catalog.pg_stat_get_tuples_inserted(oid) AS inserted,
       pg_catalog.pg_stat_get_tuples_updated(oid) AS updated,
       pg_catalog.pg_stat_get_tuples_deleted(oid) AS deleted
  FROM pg_catalog.pg_class
 WHERE oid >= 16384
