-- What decides how far pg_wal may grow. Sizes in bytes, -1 for no limit.
SELECT pg_size_bytes(current_setting('wal_segment_size')) AS segment_size,
       pg_size_bytes(current_setting('max_wal_size')) AS max_wal_size,
       pg_size_bytes(current_setting('wal_keep_size')) AS wal_keep_size,
       CASE current_setting('max_slot_wal_keep_size')
           WHEN '-1' THEN -1
           ELSE pg_size_bytes(current_setting('max_slot_wal_keep_size'))
       END AS max_slot_wal_keep_size,
       ARRAY(SELECT slot_name::text FROM pg_replication_slots
              WHERE NOT active AND restart_lsn IS NOT NULL
              ORDER BY slot_name) AS idle_slots,
       (SELECT current_setting('archive_mode') <> 'off'
           AND last_failed_time IS NOT NULL
           AND last_failed_time >= coalesce(last_archived_time, '-infinity')
          FROM pg_stat_archiver) AS archiving_fails
