-- Tables of which a part has pages, but no number of rows, because it was not analyzed, with an estimate of all their rows from sizes and the
-- types of columns: close to that of the planner (tableam.c: table_block_relation_estimate_size; lsyscache.c: get_typavgwidth). As there,
-- the number of rows counts only with one of pages: before PostgreSQL 14 it is 0, not -1.
SELECT n.nspname || '.' || c.relname AS name, pg_catalog.sum(leaf.rows)::int8 AS rows
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  CROSS JOIN LATERAL (
      SELECT pg_catalog.array_agg(p.relid::oid) AS oids FROM pg_catalog.pg_partition_tree(c.oid) p WHERE p.isleaf) parts
  CROSS JOIN LATERAL (
      SELECT known.yes OR size.pages = 0 AS is_known,
             CASE WHEN known.yes THEN r.reltuples::float8
                  ELSE size.pages * greatest(1, pg_catalog.floor((size.page - 24) * size.filled / (28 + 8 * pg_catalog.ceil(width.bytes / 8.0)))) END AS rows
        FROM pg_catalog.unnest(coalesce(parts.oids, ARRAY[c.oid])) AS part (oid)
        JOIN pg_catalog.pg_class r ON r.oid = part.oid
        CROSS JOIN LATERAL (SELECT r.reltuples >= 0 AND r.relpages > 0 AS yes) known
        CROSS JOIN LATERAL (
            SELECT b.page, coalesce(pg_catalog.pg_relation_size(r.oid), 0) / b.page AS pages,
                   coalesce((SELECT o.option_value::float8 FROM pg_catalog.pg_options_to_table(r.reloptions) o
                              WHERE o.option_name = 'fillfactor'), 100) / 100 AS filled
              FROM (SELECT pg_catalog.current_setting('block_size')::int8 AS page) b) size
        CROSS JOIN LATERAL (
            SELECT coalesce(pg_catalog.sum(
                       CASE WHEN a.attlen > 0 THEN a.attlen
                            -- A limit in characters.
                            WHEN a.atttypid IN ('pg_catalog.varchar'::pg_catalog.regtype, 'pg_catalog.bpchar'::pg_catalog.regtype)
                                 AND a.atttypmod > 4 THEN least(a.atttypmod - 3, (least(a.atttypmod, 1000) + 32) / 2)
                            ELSE 32 END), 0)::float8 AS bytes
              FROM pg_catalog.pg_attribute a WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped) width) leaf
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't' AND c.oid >= 16384
 GROUP BY c.oid, n.nspname, c.relname
HAVING pg_catalog.bool_or(NOT leaf.is_known)
 ORDER BY 1
