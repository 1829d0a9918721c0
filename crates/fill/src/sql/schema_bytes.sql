-- $1: qualified names of tables. Bytes that they, their partitions and their indexes take.
SELECT coalesce(sum(pg_total_relation_size(part.oid)), 0)::bigint AS bytes
  FROM unnest($1::text[]) AS name
 CROSS JOIN LATERAL (SELECT to_regclass(name)::oid UNION SELECT relid FROM pg_partition_tree(to_regclass(name))) part (oid)
