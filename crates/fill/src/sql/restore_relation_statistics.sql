-- $1: qualified name of a table; $2: its rows. Blocks and rows of it and of its indexes.
SELECT pg_restore_relation_stats(
           'schemaname', n.nspname::text,
           'relname', c.relname::text,
           'version', current_setting('server_version_num')::int,
           'relpages', blocks.number,
           'reltuples', $2::bigint::real,
           'relallvisible', blocks.visible,
           'relallfrozen', blocks.visible
       )
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (
       SELECT pages AS number, CASE WHEN c.relkind = 'i' THEN 0 ELSE pages END AS visible
         FROM (SELECT (pg_relation_size(c.oid) / current_setting('block_size')::int)::int AS pages) size
       ) blocks
 WHERE c.oid = to_regclass($1)
    OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = to_regclass($1))
