-- $1: schema; $2: names of tables. The relations that hold the tables' rows: the tables themselves, or the
-- leaves of those that are partitioned.
SELECT c.relname::text AS table_name,
       c.oid AS root,
       format('%I.%I', n.nspname, c.relname) AS root_name,
       part.oid AS oid,
       part.relname::text AS relation,
       format('%I.%I', pn.nspname, part.relname) AS name,
       part.relpersistence = 'u' AS unlogged,
       has_table_privilege(part.oid, 'SELECT') AS may_select,
       pg_get_partition_constraintdef(part.oid) AS bound
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (
       SELECT c.oid
        UNION
       SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf
     ) tree
  JOIN pg_class part ON part.oid = tree.oid AND part.relkind <> 'p'
  JOIN pg_namespace pn ON pn.oid = part.relnamespace
 WHERE n.nspname = $1 AND c.relname = ANY ($2::text[])
 ORDER BY part.oid
