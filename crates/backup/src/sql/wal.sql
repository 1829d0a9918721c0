-- Bytes of WAL records, without the padding of segments.
SELECT CASE WHEN pg_is_in_recovery()
            THEN pg_last_wal_replay_lsn() - '0/0'
            ELSE (SELECT wal_bytes FROM pg_stat_wal)
       END::bigint AS bytes
