-- Where pg_buffercache's function that evicts a relation is, and whether the extension can be had. From
-- version 1.6 on (PostgreSQL 18), for superusers only.
SELECT (SELECT n.nspname::text
          FROM pg_proc p
          JOIN pg_namespace n ON n.oid = p.pronamespace
          JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
          JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
         WHERE e.extname = 'pg_buffercache' AND p.proname = 'pg_buffercache_evict_relation') AS schema,
       EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_buffercache') AS installed,
       EXISTS (SELECT FROM pg_available_extensions
                WHERE name = 'pg_buffercache' AND string_to_array(default_version, '.')::int[] >= '{1,6}')
           AS available,
       current_setting('is_superuser')::bool AS superuser
