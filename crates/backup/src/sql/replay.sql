SELECT pg_is_in_recovery() AS in_recovery,
       coalesce(pg_last_wal_replay_lsn()::text, '') AS place
