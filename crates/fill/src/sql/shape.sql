-- $1: schema; $2: pgbench's bulk table. How the relations that hold its rows are made.
SELECT leaf.relname::text AS name,
       coalesce(pg_get_expr(leaf.relpartbound, leaf.oid), '') AS bound,
       coalesce(options.fillfactor, 100) AS fillfactor,
       NOT coalesce(options.off, false) AS autovacuum,
       (SELECT spcname::text FROM pg_tablespace t WHERE t.oid = leaf.reltablespace) AS tablespace,
       id.atttypid = 'bigint'::regtype AS wide_ids
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf) tree
  JOIN pg_class leaf ON leaf.oid = tree.oid AND leaf.relkind = 'r'
  JOIN pg_attribute id ON id.attrelid = leaf.oid AND id.attnum = 1
 CROSS JOIN LATERAL (
       SELECT max(option_value) FILTER (WHERE option_name = 'fillfactor')::int AS fillfactor,
              bool_or(option_name = 'autovacuum_enabled' AND NOT option_value::bool) AS off
         FROM pg_options_to_table(leaf.reloptions)
     ) options
 WHERE n.nspname = $1 AND c.relname = $2
