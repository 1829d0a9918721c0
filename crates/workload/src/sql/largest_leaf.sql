-- $1: a table's quoted name. Itself or, if it is partitioned, its largest leaf; what that takes.
SELECT leaf::regclass::text AS name,
       pg_relation_size(leaf) / current_setting('block_size')::bigint AS blocks,
       pg_table_size(leaf) AS bytes
  FROM (SELECT relid FROM pg_partition_tree($1::text::regclass) WHERE isleaf
         UNION
        SELECT $1::text::regclass) AS leaves (leaf)
 ORDER BY blocks DESC, leaf
 LIMIT 1
