-- $1: a server process. Its locks on relations, and whether it waits for any lock.
SELECT relation, mode, granted, locktype
  FROM pg_catalog.pg_locks
 WHERE pid = $1 AND (locktype = 'relation' OR NOT granted)
