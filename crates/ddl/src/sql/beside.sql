-- The partitions beside default partitions, each with its bounds. "is_simple" is true if the table has one key column of its own (no expression), no
-- partition is partitioned itself or a foreign table, and no unique index of the column alone, foreign key, CHECK or EXCLUDE decides on
-- its values. pg_get_expr locks the partition.
SELECT t.partdefid AS "default", t.partrelid AS root, t.partstrat = 'r' AS is_range, a.attname::text AS "column",
       pg_catalog.format_type(a.atttypid, NULL) AS type,
       pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS bounds,
       t.partnatts = 1 AND t.partstrat IN ('r', 'l') AND NOT r.relispartition
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits o JOIN pg_catalog.pg_class l ON l.oid = o.inhrelid
                        WHERE o.inhparent = t.partrelid AND l.relkind <> 'r')
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i
                        WHERE i.indrelid = t.partrelid AND i.indisunique AND i.indnkeyatts = 1)
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k
                        WHERE k.contype IN ('f', 'c', 'x') AND k.conrelid = t.partrelid AND a.attnum = ANY (k.conkey)) AS is_simple
  FROM pg_catalog.pg_partitioned_table t
  JOIN pg_catalog.pg_class r ON r.oid = t.partrelid
  JOIN pg_catalog.pg_inherits h ON h.inhparent = t.partrelid AND h.inhrelid <> t.partdefid
  JOIN pg_catalog.pg_class c ON c.oid = h.inhrelid
  JOIN pg_catalog.pg_attribute a ON a.attrelid = t.partrelid AND a.attnum = t.partattrs[0]
 WHERE t.partdefid <> 0 AND c.relpartbound IS NOT NULL
