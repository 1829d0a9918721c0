-- Every foreign key; those that partitions have from their partitioned table name it as their parent.
SELECT oid, nullif(conparentid, 0) AS parent, conrelid AS referencing, confrelid AS referenced, convalidated AS is_valid
  FROM pg_constraint
 WHERE contype = 'f'
