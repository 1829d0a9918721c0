-- $1: oid of a partitioned table. Columns that decide which partition a row goes to, at any level.
SELECT DISTINCT a.attname::text AS name
  FROM pg_partition_tree($1::oid) part
  JOIN pg_partitioned_table p ON p.partrelid = part.relid
  JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum > 0
 WHERE a.attnum = ANY (p.partattrs::int2[])
    -- Columns in expressions depend on the table itself (StorePartitionKey in heap.c).
    OR EXISTS (
       SELECT FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = p.partrelid AND d.objsubid = a.attnum
          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.partrelid AND d.refobjsubid = 0
       )
