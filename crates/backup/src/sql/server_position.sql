-- The server's identity, and its position in WAL: no later backup ends before it.
SELECT (SELECT system_identifier FROM pg_control_system()) AS system,
       (coalesce(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0') - '0/0')::bigint AS position
