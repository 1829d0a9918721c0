-- Tables with rows of their own. Those of extensions are dumped only in part; a base backup and a replica have no rows of
-- unlogged ones.
SELECT n.nspname::text AS schema,
       c.relname::text AS name,
       c.relpersistence = 'p' AS logged
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r'
   AND c.relpersistence <> 't'
   AND NOT (c.relpersistence = 'u' AND pg_is_in_recovery())
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
 ORDER BY 1, 2
