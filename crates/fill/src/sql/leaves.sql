-- $1: OID of a B-tree; $2: number of pages to read. The share of each leaf that its entries and its high key take, and the bytes
-- of one of these with its line pointer. 40 bytes of a page are its
-- header and the B-tree's, and free_size leaves out the line pointer of one more entry (PageGetFreeSpace).
SELECT coalesce(array_agg(1 - (free_size + 4) / (page_size - 40)::float8), '{}') AS shares,
       sum(page_size - 40 - (free_size + 4)) / nullif(sum(live_items + dead_items), 0)::float8 AS entry
  FROM pg_class c
 CROSS JOIN LATERAL (SELECT pg_relation_size(c.oid) / current_setting('block_size')::int AS number) blocks
 CROSS JOIN LATERAL generate_series(1, number - 1, greatest(number / $2::bigint, 1)) AS block
 CROSS JOIN LATERAL bt_page_stats(c.oid::regclass::text, block::int) page
 WHERE c.oid = $1 AND page.type = 'l'
