-- Objects that read the tables or act on them, and that the SQL of a capture does not have: kind, the relation, and the name of what
-- belongs to it. Those of extensions come with these.
WITH relations AS (
    SELECT c.oid, c.relkind, n.nspname::text AS schema, c.relname::text AS name
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
       AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND n.nspname !~ '^pgrig($|_)'
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                        WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'e')
), tables AS (
    SELECT * FROM relations WHERE relkind IN ('r', 'p')
)
SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END AS kind,
       schema, name, NULL::text AS own
  FROM relations WHERE relkind IN ('v', 'm', 'f')
UNION ALL
-- A trigger of a partitioned table has one on each partition, from PostgreSQL 13 on with the column tgparentid.
SELECT 'trigger', t.schema, t.name, g.tgname::text
  FROM pg_catalog.pg_trigger g JOIN tables t ON t.oid = g.tgrelid
 WHERE NOT g.tgisinternal AND coalesce(pg_catalog.to_jsonb(g) ->> 'tgparentid', '0') = '0'
UNION ALL
SELECT 'rule', t.schema, t.name, r.rulename::text
  FROM pg_catalog.pg_rewrite r JOIN tables t ON t.oid = r.ev_class
UNION ALL
SELECT 'policy', t.schema, t.name, p.polname::text
  FROM pg_catalog.pg_policy p JOIN tables t ON t.oid = p.polrelid
