-- $1: tables, OIDs. Their constraints, and their indexes, also those of constraints, in the order in which the server made them. Before
-- PostgreSQL 18, NOT NULL is no constraint.
SELECT c.oid, c.conrelid AS owner, c.contype::text AS kind, c.conname::text AS name, c.conparentid AS parent,
       CASE WHEN c.contype = 'n' THEN (SELECT a.attname::text FROM pg_catalog.pg_attribute a
                                        WHERE a.attrelid = c.conrelid AND a.attnum = c.conkey[1]) END AS attribute
  FROM pg_catalog.pg_constraint c
 WHERE c.conrelid = ANY ($1)
UNION ALL
SELECT i.indexrelid, i.indrelid, 'i', x.relname::text, coalesce(h.inhparent, 0::oid), NULL
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
  LEFT JOIN pg_catalog.pg_inherits h ON h.inhrelid = i.indexrelid
 WHERE i.indrelid = ANY ($1)
 ORDER BY 1
