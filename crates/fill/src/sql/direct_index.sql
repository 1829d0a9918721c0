-- $1: qualified name of an index. Its main fork, in the transaction that makes it.
SELECT pg_relation_filepath(c.oid) AS path,
       (SELECT amname::text FROM pg_am WHERE oid = c.relam) AS access_method,
       pg_relation_size(c.oid) AS bytes,
       coalesce(c.xmin::text::bigint = pg_current_xact_id_if_assigned()::text::bigint % 4294967296, false) AS is_new
  FROM pg_class c
 WHERE c.oid = to_regclass($1)
