-- Tables that pg_dump would lock and read, and from which the role may not read all rows. Those of extensions are not dumped.
SELECT n.nspname::text AS schema,
       c.relname::text AS name,
       p.permitted
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (SELECT coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), false) AS permitted) AS p
 WHERE c.relkind IN ('r', 'p')
   AND c.relpersistence <> 't'
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
   AND (NOT p.permitted OR c.relkind = 'r' AND row_security_active(c.oid))
 ORDER BY 1, 2
