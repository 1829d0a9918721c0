-- The files of tables that are not the server's own, each with its table: for an index and for a TOAST table the table to which it
-- belongs. pg_relation_size is NULL for a relation that is dropped meanwhile.
SELECT pg_catalog.pg_relation_filenode(c.oid)::oid AS file, coalesce(t.oid, i.indrelid, c.oid) AS owner,
       coalesce(pg_catalog.pg_relation_size(c.oid), 0)::int8 AS bytes
  FROM pg_catalog.pg_class c
  LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
  LEFT JOIN pg_catalog.pg_class t ON t.reltoastrelid = coalesce(i.indrelid, c.oid)
 WHERE c.relkind IN ('r', 'm', 't', 'i') AND c.oid >= 16384 AND pg_catalog.pg_relation_filenode(c.oid) IS NOT NULL
