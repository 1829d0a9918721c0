-- Dead row versions in all tables of the user's and in their TOAST tables, which pgstattuple does not read with their tables. For
-- pgstattuple, a version is dead once the transaction that has replaced or deleted it is committed, even if VACUUM has to keep it for a
-- snapshot (pgstattuple.c: pgstat_heap with SnapshotDirty).
SELECT coalesce(sum(s.dead_tuple_len), 0)::bigint AS bytes,
       coalesce(sum(s.dead_tuple_count), 0)::bigint AS versions
  FROM pg_class c
 CROSS JOIN LATERAL SCHEMA.pgstattuple(c.oid::regclass) s
 WHERE c.relkind IN ('r', 'm', 't')
   AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'heap')
   AND c.relpersistence <> 't'
   AND c.oid >= 16384
