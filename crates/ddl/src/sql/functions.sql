-- $1: names. The functions and procedures in SQL and PL/pgSQL that have them, but those of the server, of extensions and of triggers, with their
-- bodies. A body in standard SQL (BEGIN ATOMIC) has no text of its own. Languages have constant OIDs (pg_language.dat: internal, C), or come
-- with a new database. `pg_language` is not read: a scan of it is a mark of pgrig's.
SELECT p.oid, n.nspname::text AS schema, p.proname::text AS name, pg_catalog.pg_function_is_visible(p.oid) AS is_visible,
       CASE WHEN p.prosrc = '' THEN pg_catalog.pg_get_functiondef(p.oid) ELSE p.prosrc END AS body,
       count(*) OVER (PARTITION BY n.oid, p.proname) > 1 AS is_overloaded
  FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
 WHERE p.proname::text = ANY ($1) AND p.prokind IN ('f', 'p') AND p.oid >= 16384
   AND p.prolang NOT IN (12, 13) AND p.prolang < 16384
   AND p.prorettype NOT IN ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                    WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e')
