-- $1: name of a lock, as `Session::try_lock` takes it. The server process that holds it, if one does.
SELECT min(pid) AS pid
  FROM pg_locks
 WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
   AND classid = 1885827689 AND objid = (hashtext($1)::bigint & 4294967295)::oid
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
