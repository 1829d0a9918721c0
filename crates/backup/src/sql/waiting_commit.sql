-- Whether a commit in this database may wait for a synchronous standby: its record is in WAL, so a copy of the server's files has its rows,
-- but no snapshot sees them before the wait ends (xact.c: CommitTransaction). Without pg_read_all_stats, a role does not see the waits of
-- others.
SELECT coalesce(bool_or(a.wait_event = 'SyncRep'), false)
       OR current_setting('synchronous_standby_names') <> '' AND NOT pg_has_role('pg_read_all_stats', 'USAGE') AS may_wait
  FROM pg_stat_activity a
 WHERE a.datname = current_database()
