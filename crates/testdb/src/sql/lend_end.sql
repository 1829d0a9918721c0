-- $1: what a keeper calls its sessions. Ends all of them but this one; how many were still there.
SELECT count(pg_terminate_backend(pid))
  FROM pg_stat_activity
 WHERE application_name = $1 AND usename = session_user AND pid <> pg_backend_pid()
