-- Which server this is, and whether it is the one that a record was made of: see direct_files.sql.
SELECT system_identifier,
       pg_is_in_recovery() AS recovers,
       concat(extract(epoch FROM pg_postmaster_start_time()), '/',
              (SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'checkpointer')) AS lifetime
  FROM pg_control_system()
