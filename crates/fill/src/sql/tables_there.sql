-- $1: an existing schema, or one that is going to be created; $2: names of the tables to be created; $3: the
-- ledger's name.
WITH RECURSIVE existing AS (
    SELECT oid FROM pg_namespace WHERE nspname = $1::text
), ledger AS (
    SELECT c.oid FROM pg_class c JOIN existing ON c.relnamespace = existing.oid
     WHERE c.relname = $3::text AND c.relkind = 'r'
), taken AS (
    SELECT c.relname::text AS name, c.relkind IN ('r', 'p') AS is_table, c.oid
      FROM pg_class c JOIN existing ON c.relnamespace = existing.oid
     WHERE c.relname = ANY ($2::text[])
), tree AS (
    SELECT oid FROM taken
     UNION
    SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
)
SELECT ARRAY(SELECT name FROM taken ORDER BY name) AS taken,
       EXISTS (SELECT FROM ledger) AS ledger_exists,
       (SELECT obj_description(oid, 'pg_class') FROM ledger) AS ledger_comment,
       -- As of the last vacuum: asking for the size itself would wait for others' locks.
       (SELECT coalesce(sum(c.relpages::bigint), 0) * current_setting('block_size')::bigint
          FROM pg_class c
         WHERE c.oid IN (SELECT oid FROM tree)
            OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM tree))
       )::bigint AS taken_bytes,
       ARRAY(SELECT name FROM taken WHERE NOT is_table ORDER BY name) AS taken_by_others
