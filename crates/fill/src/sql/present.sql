-- $1: schema; $2: table. How the table, or its partitions, are stored; tablespaces are NULL for the
-- database's own.
SELECT coalesce(bool_or(part.relpersistence = 'u'), false) AS unlogged,
       coalesce(min((SELECT option_value::int FROM pg_options_to_table(part.reloptions)
                      WHERE option_name = 'fillfactor')), 100) AS fillfactor,
       min((SELECT spcname FROM pg_tablespace t WHERE t.oid = part.reltablespace))::text AS tablespace,
       coalesce(bool_or(key.atttypid = 'bigint'::regtype), false) AS wide_ids,
       coalesce(bool_or(index.relname IS NOT NULL), false) AS indexed,
       min(index.spcname)::text AS index_tablespace
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (
       SELECT c.oid
        UNION
       SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf
     ) tree
  JOIN pg_class part ON part.oid = tree.oid AND part.relkind = 'r'
  JOIN pg_attribute key ON key.attrelid = part.oid AND key.attnum = 1
  LEFT JOIN LATERAL (
       SELECT i.relname, t.spcname
         FROM pg_index
         JOIN pg_class i ON i.oid = indexrelid
         JOIN pg_am am ON am.oid = i.relam AND am.amname = 'btree'
         LEFT JOIN pg_tablespace t ON t.oid = i.reltablespace
        WHERE indrelid = part.oid
     ) index ON true
 WHERE n.nspname = $1 AND c.relname = $2
