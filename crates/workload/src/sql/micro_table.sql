-- $1: schema; $2: table. What the user's DDL made under that name.
SELECT c.relkind::text AS kind
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2
