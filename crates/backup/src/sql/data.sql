-- Bytes of all tables of the user's, with their indexes.
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
  FROM pg_class c
 WHERE c.relkind IN ('r', 'm')
   AND c.relpersistence <> 't'
   AND c.oid >= 16384
