-- $1: server processes. For those that wait for a lock: since when, seconds. NULL before PostgreSQL 14, which does not know.
SELECT pid, max(extract(epoch FROM pg_catalog.clock_timestamp() - (to_jsonb(l) ->> 'waitstart')::timestamptz))::float8 AS since
  FROM pg_catalog.pg_locks l
 WHERE NOT granted AND pid = ANY ($1)
 GROUP BY pid
