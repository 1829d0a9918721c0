-- $1: a table's quoted name. Itself or, if it is partitioned, its largest leaf; its blocks.
SELECT leaf::regclass::text AS name,
       pg_relation_size(leaf) / current_setting('block_size')::bigint AS blocks
  FROM (SELECT relid FROM pg_partition_tree($1::text::regclass) WHERE isleaf
         UNION
        SELECT $1::text::regclass) AS leaves (leaf)
 ORDER BY blocks DESC, leaf
 LIMIT 1
