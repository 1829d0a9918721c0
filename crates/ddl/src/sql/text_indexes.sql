-- Indexes of texts in the order of the database (collation "default", whose OID is always 100), with their files.
SELECT c.oid, i.indrelid AS owner, coalesce(pg_catalog.pg_relation_filenode(c.oid), 0::oid) AS file, c.relname::text AS name
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid >= 16384 AND c.relkind = 'i' AND '100'::oid = ANY (i.indcollation)
 ORDER BY c.relname, c.oid
