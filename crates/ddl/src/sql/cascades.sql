-- Foreign keys that change the rows of their tables if rows that they reference are removed or changed, with the columns that they reference, and
-- their own.
SELECT coalesce(pg_catalog.pg_partition_root(f.conrelid)::oid, f.conrelid) AS own_table,
       coalesce(pg_catalog.pg_partition_root(f.confrelid)::oid, f.confrelid) AS referenced,
       f.confdeltype::text AS on_delete, f.confupdtype::text AS on_update,
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = f.confrelid AND a.attnum = ANY (f.confkey)) AS referenced_columns,
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)) AS own_columns
  FROM pg_catalog.pg_constraint f
 WHERE f.contype = 'f' AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))
