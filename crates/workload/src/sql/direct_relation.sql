-- $1: qualified name of a table or index. What it is within the transaction that fills it.
SELECT pg_relation_filepath(c.oid) AS path,
       (SELECT amname::text FROM pg_am WHERE oid = c.relam) AS access_method,
       c.relkind::text AS kind,
       c.relpersistence::text AS persistence,
       pg_relation_size(c.oid) AS bytes,
       -- Its row in pg_class is of this transaction: it was created or truncated here.
       c.xmin::text::bigint = pg_current_xact_id()::text::bigint % 4294967296 AS is_new,
       EXISTS (
           SELECT FROM pg_locks l
            WHERE l.locktype = 'relation' AND l.relation = c.oid AND l.pid = pg_backend_pid() AND l.granted
              AND l.mode = 'AccessExclusiveLock'
              AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       ) AS is_locked,
       ARRAY(
           SELECT a.attname::text FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 ORDER BY a.attnum
       ) AS columns,
       EXISTS (
           SELECT FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attlen = -1 AND a.attstorage = 'p'
       ) AS has_plain_storage
  FROM pg_class c
 WHERE c.oid = to_regclass($1)
