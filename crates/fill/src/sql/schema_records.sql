-- $1: name of the record of a schema fill. Where there is one, with its comment.
SELECT n.nspname::text AS schema, obj_description(c.oid, 'pg_class') AS comment
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = $1 AND c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT')
 ORDER BY 1
