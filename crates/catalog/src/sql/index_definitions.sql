-- $1: OID of a table. Its valid indexes: each from its access method on.
SELECT c.relname::text AS name, substring(pg_get_indexdef(i.indexrelid) FROM ' (USING .*)$') AS definition
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid = $1 AND i.indisvalid AND NOT i.indisunique AND NOT i.indisexclusion
 ORDER BY i.indexrelid
