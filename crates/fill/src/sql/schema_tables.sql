-- $1: a schema, or NULL for all but the system's. Tables that rows can be put into, as SQL names them: no partitions,
-- since rows go to the table that they are partitions of; none of extensions, of sessions, or of pgrig.
SELECT format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
   AND ($1::text IS NULL OR n.nspname = $1)
   AND c.relname !~ '^pgrig_(chunks|unlogged_chunks|ballast)_' AND c.relname <> 'pgrig_schema_fill'
   AND n.nspname !~ '^pgrig($|_)'
   AND NOT EXISTS (
       SELECT FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
 ORDER BY c.oid
