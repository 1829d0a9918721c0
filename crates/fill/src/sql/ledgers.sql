-- All ledgers, with the schemas that they are in.
SELECT n.nspname::text AS schema, obj_description(c.oid, 'pg_class') AS comment
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname LIKE 'pgrig\_chunks\_%' AND c.relkind = 'r' AND obj_description(c.oid, 'pg_class') IS NOT NULL
 ORDER BY c.oid
