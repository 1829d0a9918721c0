-- $1: schema; $2: a table's name; $3: whether it will be vacuumed. Bytes that it and its partitions take,
-- with the visibility maps that a vacuum makes: two bits a block, at least a block for each relation.
WITH leaf AS (
    SELECT part.oid, toasted.reltoastrelid AS toast
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid)) part
      JOIN pg_class toasted ON toasted.oid = part.oid
     WHERE n.nspname = $1 AND c.relname = $2::text
), heap AS (
    SELECT pg_relation_size(oid) AS main, pg_relation_size(oid, 'vm') AS map
      FROM (SELECT oid FROM leaf UNION ALL SELECT toast FROM leaf WHERE toast <> 0) relation
     WHERE $3
), block AS (
    SELECT current_setting('block_size')::bigint AS size
)
SELECT (SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM leaf)::bigint
       -- Of a map's block 24 bytes are its header.
       + (SELECT coalesce(sum(greatest(ceil(main / size::numeric / ((size - 24) * 4)) * size - map, 0)), 0)
            FROM heap, block)::bigint AS bytes,
       -- None if the rows are in partitions, cannot be read, or are not in a heap.
       (SELECT pg_relation_size(c.oid) / size FROM block, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          JOIN pg_am a ON a.oid = c.relam AND a.amname = 'heap'
         WHERE n.nspname = $1 AND c.relname = $2::text AND has_table_privilege(c.oid, 'SELECT'))::bigint AS blocks,
       (SELECT size FROM block) AS block_size
