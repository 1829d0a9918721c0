-- Valid CHECK constraints and foreign keys of tables with rows. A foreign key to a partitioned table has further entries, one for each
-- partition, which are not to be checked alone.
SELECT k.oid,
       k.conname::text AS name,
       n.nspname::text AS schema,
       c.relname::text AS table,
       k.conrelid AS own,
       k.confrelid AS referenced
  FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE k.contype IN ('f', 'c')
   AND k.convalidated
   AND c.relkind = 'r'
   AND c.relpersistence = 'p'
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = k.conparentid AND p.conrelid = k.conrelid)
 ORDER BY 3, 4, 2
