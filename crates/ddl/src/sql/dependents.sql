-- Views, and rules, policies and triggers of relations ("own"), each with a column on which it depends, or with a relation of which it uses no
-- single column. The server drops a rule, policy or trigger with its relation, and notes for each view that it depends on itself. A trigger of
-- a partitioned table has one on each partition, from PostgreSQL 13 on with the column tgparentid.
WITH relations AS (
    SELECT c.oid, c.relkind, n.nspname::text AS schema, c.relname::text AS name
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.oid >= 16384
), objects (classid, oid, kind, relation, own) AS (
    SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, r.oid,
           CASE WHEN r.rulename <> '_RETURN' THEN 'rule' WHEN c.relkind = 'm' THEN 'materialized view' ELSE 'view' END,
           r.ev_class, CASE WHEN r.rulename <> '_RETURN' THEN r.rulename::text END
      FROM pg_catalog.pg_rewrite r JOIN relations c ON c.oid = r.ev_class
    UNION ALL
    SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, 'policy', p.polrelid, p.polname::text
      FROM pg_catalog.pg_policy p
    UNION ALL
    SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, g.oid, 'trigger', g.tgrelid, g.tgname::text
      FROM pg_catalog.pg_trigger g
     WHERE NOT g.tgisinternal AND coalesce(pg_catalog.to_jsonb(g) ->> 'tgparentid', '0') = '0'
)
SELECT DISTINCT t.schema AS on_schema, t.name AS on_name, a.attname::text AS on_column, o.kind, r.schema, r.name, o.own
  FROM pg_catalog.pg_depend d
  JOIN objects o ON o.classid = d.classid AND o.oid = d.objid
  JOIN relations t ON t.oid = d.refobjid
  JOIN relations r ON r.oid = o.relation
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND d.refobjsubid > 0
 WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype = 'n'
   AND (o.own IS NOT NULL OR d.refobjid <> o.relation)
 ORDER BY 1, 2, 3, 4, 5, 6, 7
