-- The relations that are not the server's own, with the files that hold them, and what this session's transaction has read
-- and written of them so far (pgstatfuncs.c: pg_stat_get_xact_*). pg_relation_filenode is 0 or NULL without storage.
SELECT c.oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
       coalesce(pg_catalog.pg_relation_filenode(c.oid), 0::oid) AS file,
       c.reltablespace AS tablespace,
       coalesce(i.indrelid, t.oid, 0::oid) AS owner,
       coalesce(h.inhparent, 0::oid) AS parent,
       CASE WHEN c.relkind IN ('r', 'm', 't', 'i') THEN coalesce(pg_catalog.pg_relation_size(c.oid), 0) ELSE 0 END AS bytes,
       greatest(c.reltuples, 0)::float8 AS rows,
       c.relpersistence = 't' AS temporary,
       coalesce(c.oid::text = ANY (pg_catalog.string_to_array(current_setting('pgrig.rewritten', true), ' ')), false) AS rewritten,
       pg_catalog.pg_stat_get_xact_numscans(c.oid) AS scans,
       pg_catalog.pg_stat_get_xact_tuples_returned(c.oid) AS returned,
       pg_catalog.pg_stat_get_xact_blocks_fetched(c.oid) AS blocks,
       pg_catalog.pg_stat_get_xact_tuples_inserted(c.oid) AS inserted,
       pg_catalog.pg_stat_get_xact_tuples_updated(c.oid) AS updated,
       pg_catalog.pg_stat_get_xact_tuples_deleted(c.oid) AS deleted
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
  LEFT JOIN pg_catalog.pg_class t ON t.reltoastrelid = c.oid AND c.relkind = 't'
  LEFT JOIN LATERAL (SELECT inhparent FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid ORDER BY inhseqno LIMIT 1) h ON true
 WHERE c.oid >= 16384
