-- $1: schema; $2: table names. Bytes that stand there now.
SELECT coalesce(sum(pg_table_size(c.oid)), 0)::bigint AS heap,
       coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint AS index
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = ANY ($2::text[])
