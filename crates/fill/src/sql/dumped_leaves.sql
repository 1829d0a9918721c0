-- $1: a table's quoted name. Itself or, if it is partitioned, its leaves, in pg_dump's order.
SELECT leaf::regclass::text AS name,
       pg_relation_size(leaf) / current_setting('block_size')::bigint AS blocks,
       -- pg_dump leaves generated columns out.
       (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
          FROM pg_attribute
         WHERE attrelid = leaf AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns,
       -- Line pointers that a page can have.
       current_setting('block_size')::int / 28 AS lines
  FROM (SELECT relid::oid FROM pg_partition_tree($1::text::regclass) WHERE isleaf
         UNION
        SELECT $1::text::regclass::oid) AS leaves (leaf)
  JOIN pg_class c ON c.oid = leaf AND c.relkind = 'r'
 ORDER BY 1
