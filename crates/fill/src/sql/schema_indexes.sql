-- $1: a table's qualified name. Its valid indexes, each from its access method on.
SELECT i.indisunique AS is_unique, substring(pg_get_indexdef(i.indexrelid) FROM ' (USING .*)$') AS definition
  FROM pg_index i
 WHERE i.indrelid = to_regclass($1) AND i.indisvalid
 ORDER BY i.indexrelid
