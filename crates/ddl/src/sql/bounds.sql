-- The bounds of tables that the migration attaches as partitions ($1 has the OIDs of tables that were none before), and of default partitions:
-- the columns of the partition keys; and the condition that the rows keep, of the former alone. pg_get_partition_constraintdef locks
-- the table and its parents. A key column is an internal part of its table (heap.c: StorePartitionKey).
SELECT c.oid,
       ARRAY(SELECT DISTINCT a.attname::text
               FROM pg_catalog.pg_partition_ancestors(c.oid) p
               JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = p.relid AND d.objsubid > 0
                AND d.refclassid = d.classid AND d.refobjid = p.relid AND d.refobjsubid = 0 AND d.deptype = 'i'
               JOIN pg_catalog.pg_attribute a ON a.attrelid = p.relid AND a.attnum = d.objsubid
              WHERE p.relid <> c.oid) AS columns,
       CASE WHEN c.oid = ANY ($1) THEN pg_catalog.pg_get_partition_constraintdef(c.oid) END AS condition
  FROM pg_catalog.pg_class c
 WHERE c.relispartition AND c.relkind IN ('r', 'p')
   AND (c.oid = ANY ($1) OR c.oid IN (SELECT t.partdefid FROM pg_catalog.pg_partitioned_table t))
