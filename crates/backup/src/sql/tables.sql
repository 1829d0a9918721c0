-- Tables with rows of their own, and their columns by name: a dump restores a child of another table with its columns in another
-- order, if the parent got a column later. Those of extensions are dumped only in part. A base backup has no rows of unlogged ones, and
-- a standby cannot read them.
SELECT n.nspname::text AS schema,
       c.relname::text AS name,
       (SELECT coalesce(string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attname), '')
          FROM pg_attribute a
         WHERE a.attrelid = c.oid
           AND a.attnum > 0
           AND NOT a.attisdropped) AS columns,
       c.relpersistence = 'p' AS logged,
       NOT (c.relpersistence = 'u' AND pg_is_in_recovery()) AS readable,
       coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), false)
           AND NOT row_security_active(c.oid) AS permitted
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r'
   AND c.relpersistence <> 't'
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
 ORDER BY 1, 2
