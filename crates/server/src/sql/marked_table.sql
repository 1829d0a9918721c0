-- $1: schema; $2: name; $3: pgrig's mark. The relation of that name, whatever it is: whether it is a table of this
-- role's with that mark in its comment, and whether this transaction has created it (or at least has it to itself).
SELECT c.relkind::text AS kind,
       c.relkind IN ('r', 'p') AND pg_get_userbyid(c.relowner) = current_user
           AND coalesce(obj_description(c.oid, 'pg_class') = $3, false) AS is_marked,
       EXISTS (SELECT FROM pg_locks l
                WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.relation = c.oid
                  AND l.mode = 'AccessExclusiveLock' AND l.granted) AS is_locked
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2
