-- $1: the run's name. The numbers of the locks that its parts hold. pg_locks shows the keys of an advisory lock as OIDs.
SELECT DISTINCT objid::bigint AS number
  FROM pg_locks
 WHERE locktype = 'advisory' AND granted AND objsubid = 2
   AND classid::bigint = hashtext($1)::bigint & 4294967295
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
