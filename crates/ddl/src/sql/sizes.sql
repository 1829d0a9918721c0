-- The tables with rows of their own, their sizes, and the table of which each is a partition; else itself.
SELECT c.oid, coalesce(pg_catalog.pg_partition_root(c.oid)::oid, c.oid) AS root,
       pg_catalog.format('%s.%s', n.nspname, c.relname) AS name,
       greatest(c.reltuples, 0)::int8 AS rows, pg_catalog.pg_total_relation_size(c.oid)::int8 AS bytes,
       pg_catalog.pg_relation_size(c.oid)::int8 AS main
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm') AND c.oid >= 16384
