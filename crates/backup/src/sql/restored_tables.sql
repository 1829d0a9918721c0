-- All tables with rows of their own, also those of extensions.
SELECT n.nspname::text AS schema,
       c.relname::text AS name,
       c.oid
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm')
   AND c.relpersistence <> 't'
   AND (c.relkind = 'r' OR c.relispopulated)
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
 ORDER BY 1, 2
