-- $1: the fill's name. The numbers of the locks that its parts hold, and their server processes. pg_locks shows the keys of
-- an advisory lock as OIDs.
SELECT objid::bigint AS number, pid
  FROM pg_locks
 WHERE locktype = 'advisory' AND granted AND objsubid = 2
   AND classid::bigint = hashtext($1)::bigint & 4294967295
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
