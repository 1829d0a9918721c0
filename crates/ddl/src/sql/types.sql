-- The columns of all tables, with their types: of a column that has no other type, these numbers do not change.
SELECT a.attrelid AS oid, a.attnum AS number, n.nspname::text AS schema, c.relname::text AS name, a.attname::text AS column_name,
       a.atttypid AS type, a.atttypmod AS modifier, a.attcollation AS collation
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND c.oid >= 16384
