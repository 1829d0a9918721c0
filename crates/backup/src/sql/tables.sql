-- Tables with rows of their own, and their columns by name: a dump restores a child of another table with its columns in another
-- order, if the parent got a column later. Those of extensions are dumped only in part. A base backup has no rows of unlogged ones, and
-- a standby cannot read them. `family`: the topmost table of which it is a partition by hash.
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
           AND NOT row_security_active(c.oid) AS permitted,
       h.schema AS family_schema,
       h.name AS family
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN LATERAL (SELECT f.nspname::text AS schema, p.relname::text AS name
                       FROM pg_partition_ancestors(c.oid) WITH ORDINALITY AS a (oid, level)
                       JOIN pg_partitioned_table k ON k.partrelid = a.oid
                       JOIN pg_class p ON p.oid = a.oid
                       JOIN pg_namespace f ON f.oid = p.relnamespace
                      WHERE c.relispartition
                        AND k.partstrat = 'h'
                      ORDER BY a.level DESC
                      LIMIT 1) AS h ON true
 WHERE c.relkind = 'r'
   AND c.relpersistence <> 't'
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
 ORDER BY 1, 2
