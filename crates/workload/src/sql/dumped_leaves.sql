-- $1: a table's quoted name. Itself or, if it is partitioned, its leaves, in pg_dump's order.
SELECT leaf::regclass::text AS name,
       pg_relation_size(leaf) / current_setting('block_size')::bigint AS blocks,
       -- pg_dump leaves generated columns out.
       (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
          FROM pg_attribute
         WHERE attrelid = leaf AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns,
       -- Line pointers of a page: twice the mean, or as many as a page can have.
       CASE WHEN c.reltuples > 0 AND c.relpages > 0
            THEN least(ceil(2 * c.reltuples / c.relpages)::int, most) ELSE most END AS lines
  FROM (SELECT relid::oid FROM pg_partition_tree($1::text::regclass) WHERE isleaf
         UNION
        SELECT $1::text::regclass::oid) AS leaves (leaf)
  JOIN pg_class c ON c.oid = leaf AND c.relkind = 'r',
       (SELECT current_setting('block_size')::int / 28) AS page (most)
 ORDER BY 1
