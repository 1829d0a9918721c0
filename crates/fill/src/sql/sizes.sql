-- $1: schema; $2: table names. Bytes that they and their partitions take now.
SELECT coalesce(sum(pg_table_size(part.oid)), 0)::bigint AS heap,
       coalesce(sum(pg_indexes_size(part.oid)), 0)::bigint AS index
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (
       SELECT c.oid
        UNION
       SELECT relid FROM pg_partition_tree(c.oid)
     ) part
 WHERE n.nspname = $1 AND c.relname = ANY ($2::text[])
