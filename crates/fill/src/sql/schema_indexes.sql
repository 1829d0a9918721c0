-- $1: a table's qualified name. Its valid indexes: each from its access method on, and what it holds now. The first key is
-- NULL if the index does not hold all rows, or orders no keys.
SELECT i.indexrelid AS oid, i.indisunique AS is_unique, substring(pg_get_indexdef(i.indexrelid) FROM ' (USING .*)$') AS definition,
       a.amname = 'btree' AS is_btree, i.indnkeyatts::int AS keys,
       pg_relation_size(i.indexrelid) AS bytes, greatest(c.reltuples, 0)::float8 AS entries,
       CASE WHEN a.amname = 'btree' AND i.indpred IS NULL THEN pg_get_indexdef(i.indexrelid, 1, false) END AS first_key
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_am a ON a.oid = c.relam
 WHERE i.indrelid = to_regclass($1) AND i.indisvalid
 ORDER BY i.indexrelid
