-- $names: qualified names as literals. Bytes of these tables, with their partitions and indexes, as a setting of the
-- transaction.
WITH RECURSIVE tree AS (
    SELECT name::regclass::oid AS oid FROM unnest(ARRAY[$names]::text[]) AS t (name)
     UNION
    SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
)
SELECT set_config('pgrig.dropped_bytes', coalesce(sum(pg_total_relation_size(oid)), 0)::text, true) FROM tree
