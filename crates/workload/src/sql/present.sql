-- $1: schema; $2: table. How the table, or the first of its partitions, is stored; which index it has.
SELECT EXISTS (SELECT FROM pg_index i
                WHERE i.indrelid = min(c.oid::bigint)::oid AND i.indisprimary) AS has_primary_key,
       EXISTS (SELECT FROM pg_index i
                 JOIN pg_class index ON index.oid = i.indexrelid
                 JOIN pg_am am ON am.oid = index.relam
                WHERE i.indrelid = min(c.oid::bigint)::oid AND am.amname = 'brin') AS has_brin,
       coalesce(bool_or(part.relpersistence = 'u'), false) AS unlogged,
       coalesce(min((SELECT option_value::int FROM pg_options_to_table(part.reloptions)
                      WHERE option_name = 'fillfactor')), 100) AS fillfactor
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (
       SELECT c.oid
        UNION
       SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf
     ) tree
  JOIN pg_class part ON part.oid = tree.oid AND part.relkind = 'r'
 WHERE n.nspname = $1 AND c.relname = $2
