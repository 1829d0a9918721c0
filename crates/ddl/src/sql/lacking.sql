-- Objects to which a migration may refer, and that the SQL of a capture may not have: kind, schema and name (of the relation, if it belongs to
-- one), and the name of what belongs to the relation. "made" is a part of that SQL if it makes the object; NULL if it never does. Those of
-- extensions come with these.
WITH of_extensions AS (
    SELECT classid, objid FROM pg_catalog.pg_depend WHERE deptype = 'e'
), schemas AS (
    SELECT oid, nspname::text AS schema FROM pg_catalog.pg_namespace
     WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^pg_' AND nspname !~ '^pgrig($|_)'
), relations AS (
    SELECT c.oid, c.relkind, n.schema, c.relname::text AS name
      FROM pg_catalog.pg_class c JOIN schemas n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't'
       AND NOT EXISTS (SELECT FROM of_extensions e WHERE e.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND e.objid = c.oid)
), tables AS (
    SELECT * FROM relations WHERE relkind IN ('r', 'p')
), others (classid, oid, kind, schema, name, made) AS (
    -- A window function is made as a function; an identity column has its own sequence.
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, 'sequence', c.schema, c.name,
           pg_catalog.format('CREATE SEQUENCE %I.%I AS', c.schema, c.name)
      FROM relations c
     WHERE c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                                            WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'i')
    UNION ALL
    SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid,
           CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' ELSE 'function' END, n.schema, p.proname::text,
           CASE WHEN p.prokind IN ('f', 'w') THEN pg_catalog.format('FUNCTION %I.%I(', n.schema, p.proname) END
      FROM pg_catalog.pg_proc p JOIN schemas n ON n.oid = p.pronamespace
    UNION ALL
    SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, 'type', n.schema, t.typname::text,
           pg_catalog.format(CASE t.typtype WHEN 'd' THEN 'CREATE DOMAIN %I.%I AS' ELSE 'CREATE TYPE %I.%I AS' END, n.schema, t.typname)
      FROM pg_catalog.pg_type t JOIN schemas n ON n.oid = t.typnamespace
     WHERE t.typtype IN ('e', 'd', 'r')
        OR t.typtype = 'c' AND EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c')
    UNION ALL
    SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid, 'operator', n.schema, o.oprname::text, NULL
      FROM pg_catalog.pg_operator o JOIN schemas n ON n.oid = o.oprnamespace
    UNION ALL
    SELECT 'pg_catalog.pg_opclass'::pg_catalog.regclass, o.oid, 'operator class', n.schema, o.opcname::text, NULL
      FROM pg_catalog.pg_opclass o JOIN schemas n ON n.oid = o.opcnamespace
    UNION ALL
    SELECT 'pg_catalog.pg_collation'::pg_catalog.regclass, k.oid, 'collation', n.schema, k.collname::text,
           pg_catalog.format('CREATE COLLATION IF NOT EXISTS %I.%I (', n.schema, k.collname)
      FROM pg_catalog.pg_collation k JOIN schemas n ON n.oid = k.collnamespace
    UNION ALL
    SELECT 'pg_catalog.pg_ts_config'::pg_catalog.regclass, c.oid, 'text search configuration', n.schema, c.cfgname::text, NULL
      FROM pg_catalog.pg_ts_config c JOIN schemas n ON n.oid = c.cfgnamespace
    UNION ALL
    SELECT 'pg_catalog.pg_ts_dict'::pg_catalog.regclass, d.oid, 'text search dictionary', n.schema, d.dictname::text, NULL
      FROM pg_catalog.pg_ts_dict d JOIN schemas n ON n.oid = d.dictnamespace
    UNION ALL
    SELECT 'pg_catalog.pg_extension'::pg_catalog.regclass, x.oid, 'extension', NULL, x.extname::text,
           pg_catalog.format('CREATE EXTENSION IF NOT EXISTS %I WITH', x.extname)
      FROM pg_catalog.pg_extension x WHERE x.extname <> 'plpgsql'
    UNION ALL
    SELECT 'pg_catalog.pg_foreign_server'::pg_catalog.regclass, s.oid, 'foreign server', NULL, s.srvname::text, NULL
      FROM pg_catalog.pg_foreign_server s
    UNION ALL
    SELECT 'pg_catalog.pg_publication'::pg_catalog.regclass, p.oid, 'publication', NULL, p.pubname::text, NULL
      FROM pg_catalog.pg_publication p
    UNION ALL
    SELECT 'pg_catalog.pg_event_trigger'::pg_catalog.regclass, t.oid, 'event trigger', NULL, t.evtname::text, NULL
      FROM pg_catalog.pg_event_trigger t
)
SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END AS kind,
       schema, name, NULL::text AS own, NULL::text AS made
  FROM relations WHERE relkind IN ('v', 'm', 'f')
UNION ALL
-- A trigger of a partitioned table has one on each partition, from PostgreSQL 13 on with the column tgparentid.
SELECT 'trigger', t.schema, t.name, g.tgname::text, NULL
  FROM pg_catalog.pg_trigger g JOIN tables t ON t.oid = g.tgrelid
 WHERE NOT g.tgisinternal AND coalesce(pg_catalog.to_jsonb(g) ->> 'tgparentid', '0') = '0'
UNION ALL
SELECT 'rule', t.schema, t.name, r.rulename::text, NULL
  FROM pg_catalog.pg_rewrite r JOIN tables t ON t.oid = r.ev_class
UNION ALL
SELECT 'policy', t.schema, t.name, p.polname::text, NULL
  FROM pg_catalog.pg_policy p JOIN tables t ON t.oid = p.polrelid
UNION ALL
SELECT o.kind, o.schema, o.name, NULL, o.made
  FROM others o
 WHERE NOT EXISTS (SELECT FROM of_extensions e WHERE e.classid = o.classid AND e.objid = o.oid)
