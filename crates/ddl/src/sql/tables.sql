-- The relations that may have rows, with the table of which each is a partition, its parents, and the relations whose rows it needs: those
-- that its foreign keys reference, and those that its query reads.
SELECT c.oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind, c.relkind IN ('r', 'p') AS is_table,
       coalesce(pg_catalog.pg_partition_root(c.oid)::oid, c.oid) AS root,
       ARRAY(SELECT h.inhparent FROM pg_catalog.pg_inherits h WHERE h.inhrelid = c.oid) AS parents,
       ARRAY(SELECT coalesce(pg_catalog.pg_partition_root(f.confrelid)::oid, f.confrelid)
               FROM pg_catalog.pg_constraint f WHERE f.contype = 'f' AND f.conrelid = c.oid) AS referenced,
       ARRAY(SELECT DISTINCT coalesce(pg_catalog.pg_partition_root(d.refobjid)::oid, d.refobjid)
               FROM pg_catalog.pg_rewrite r
               JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
              WHERE r.ev_class = c.oid AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid <> c.oid) AS read
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.oid >= 16384
