-- Tables and sequences that pg_dump would read, and that the role may not read, or not all rows. Those of extensions are not dumped, nor
-- sequences of their tables.
SELECT n.nspname::text AS schema,
       c.relname::text AS name,
       p.permitted
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (SELECT coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), false) AS permitted) AS p
 WHERE c.relkind IN ('r', 'p', 'S')
   AND c.relpersistence <> 't'
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass
                      AND d.deptype = 'e'
                      AND (d.objid = c.oid
                           OR c.relkind = 'S'
                          AND d.objid IN (SELECT o.refobjid FROM pg_depend o
                                           WHERE o.classid = 'pg_class'::regclass
                                             AND o.objid = c.oid
                                             AND o.refclassid = 'pg_class'::regclass
                                             AND o.deptype IN ('a', 'i'))))
   AND (NOT p.permitted OR c.relkind = 'r' AND row_security_active(c.oid))
 ORDER BY 1, 2
