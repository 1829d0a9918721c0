-- $1: server processes. For those that wait for a lock: since when, seconds, and the object. NULL before PostgreSQL 14, which does not know
-- the time. A process that waits for the transaction that has locked a row has a lock on the row (heapam.c: heap_acquire_tuplock).
SELECT pid,
       (max(extract(epoch FROM pg_catalog.clock_timestamp() - (to_jsonb(l) ->> 'waitstart')::timestamptz)) FILTER (WHERE NOT granted))::float8
           AS since,
       max(locktype) FILTER (WHERE NOT granted) AS locktype,
       max(mode) FILTER (WHERE NOT granted) AS mode,
       coalesce(max(relation) FILTER (WHERE NOT granted), max(relation) FILTER (WHERE locktype = 'tuple')) AS relation
  FROM pg_catalog.pg_locks l
 WHERE (NOT granted OR locktype = 'tuple') AND pid = ANY ($1)
 GROUP BY pid
HAVING pg_catalog.bool_or(NOT granted)
