-- All tables, with the catalogs.
SELECT c.oid, c.oid::regclass::text AS name
  FROM pg_class c
 WHERE c.relkind IN ('r', 'm')
   AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'heap')
   AND c.relpersistence = 'p'
 ORDER BY 1
