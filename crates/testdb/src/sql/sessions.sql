-- $1: a database. Who is connected to it, besides this session; what a session calls itself only its own role and
-- those who may see all sessions are told.
SELECT pid, coalesce(usename, 'a process of the server')::text AS role, coalesce(application_name, '') AS application
  FROM pg_stat_activity
 WHERE datname = $1 AND pid <> pg_backend_pid()
 ORDER BY pid
