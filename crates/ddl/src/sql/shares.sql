-- The share of its table's rows that each default partition has, as ANALYZE has counted them in all partitions. Takes no locks on them.
SELECT pg_catalog.format('%s.%s', n.nspname, c.relname) AS name, (c.reltuples / s.rows)::float8 AS share
  FROM pg_catalog.pg_partitioned_table t
  JOIN pg_catalog.pg_class c ON c.oid = t.partdefid AND c.relkind = 'r'
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN LATERAL (SELECT pg_catalog.sum(l.reltuples) AS rows, pg_catalog.min(l.reltuples) AS least
                  FROM pg_catalog.pg_inherits h JOIN pg_catalog.pg_class l ON l.oid = h.inhrelid
                 WHERE h.inhparent = t.partrelid) s ON s.rows > 0 AND s.least >= 0
