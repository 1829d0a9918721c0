-- Views and functions, and rules, policies, triggers and places in publications of relations ("own"), each with the relation that it uses, and the
-- column or constraint ("used" and "part") if it uses a single one; also with each function that it calls. The server drops a rule, policy,
-- trigger or place in a publication with its relation, and notes for each view that it depends on itself. A trigger of a partitioned table has one
-- on each partition, from PostgreSQL 13 on with the column tgparentid. Functions have dependencies in their bodies from PostgreSQL 14 on, and
-- places in publications from 15 on.
WITH relations AS (
    SELECT c.oid, c.relkind, n.nspname::text AS schema, c.relname::text AS name
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.oid >= 16384
), functions AS (
    SELECT p.oid, n.nspname::text AS schema, p.proname::text AS name, CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END AS kind,
           coalesce((SELECT pg_catalog.string_agg(pg_catalog.format_type(a.type, NULL), ', ' ORDER BY a.place)
                       FROM pg_catalog.unnest(p.proargtypes::pg_catalog.oid[]) WITH ORDINALITY AS a (type, place)), '') AS arguments
      FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
     WHERE p.prokind <> 'a' AND p.oid >= 16384
), objects (classid, oid, kind, schema, name, own, relation) AS (
    SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, r.oid,
           CASE WHEN r.rulename <> '_RETURN' THEN 'rule' WHEN c.relkind = 'm' THEN 'materialized view' ELSE 'view' END,
           c.schema, c.name, CASE WHEN r.rulename <> '_RETURN' THEN r.rulename::text END, c.oid
      FROM pg_catalog.pg_rewrite r JOIN relations c ON c.oid = r.ev_class
    UNION ALL
    SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, 'policy', c.schema, c.name, p.polname::text, c.oid
      FROM pg_catalog.pg_policy p JOIN relations c ON c.oid = p.polrelid
    UNION ALL
    SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, g.oid, 'trigger', c.schema, c.name, g.tgname::text, c.oid
      FROM pg_catalog.pg_trigger g JOIN relations c ON c.oid = g.tgrelid
     WHERE NOT g.tgisinternal AND coalesce(pg_catalog.to_jsonb(g) ->> 'tgparentid', '0') = '0'
    UNION ALL
    SELECT 'pg_catalog.pg_publication_rel'::pg_catalog.regclass, m.oid, 'publication', c.schema, c.name, p.pubname::text, c.oid
      FROM pg_catalog.pg_publication_rel m
      JOIN pg_catalog.pg_publication p ON p.oid = m.prpubid
      JOIN relations c ON c.oid = m.prrelid
    UNION ALL
    SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, f.oid, f.kind, f.schema, f.name, f.arguments, NULL::pg_catalog.oid
      FROM functions f
), uses (classid, objid, schema, name, used, part, relation) AS (
    SELECT d.classid, d.objid, t.schema, t.name, CASE WHEN a.attname IS NULL THEN 'relation' ELSE 'column' END, a.attname::text, t.oid
      FROM pg_catalog.pg_depend d
      JOIN relations t ON t.oid = d.refobjid
      LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND d.refobjsubid > 0
     WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype = 'n'
    UNION ALL
    SELECT d.classid, d.objid, t.schema, t.name, 'constraint', k.conname::text, t.oid
      FROM pg_catalog.pg_depend d
      JOIN pg_catalog.pg_constraint k ON k.oid = d.refobjid
      JOIN relations t ON t.oid = k.conrelid
     WHERE d.refclassid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.deptype = 'n'
    UNION ALL
    -- The row type of a relation, and arrays of it.
    SELECT d.classid, d.objid, t.schema, t.name, 'relation', NULL, t.oid
      FROM pg_catalog.pg_depend d
      JOIN pg_catalog.pg_type y ON y.oid = d.refobjid
      LEFT JOIN pg_catalog.pg_type e ON e.oid = y.typelem
      JOIN relations t ON t.oid = CASE WHEN y.typrelid <> 0 THEN y.typrelid ELSE e.typrelid END
     WHERE d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.deptype = 'n'
    UNION ALL
    SELECT d.classid, d.objid, f.schema, f.name, 'function', f.arguments, NULL::pg_catalog.oid
      FROM pg_catalog.pg_depend d
      JOIN functions f ON f.oid = d.refobjid
     WHERE d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'n'
)
SELECT DISTINCT u.schema AS on_schema, u.name AS on_name, u.used, u.part, o.kind, o.schema, o.name, o.own
  FROM uses u
  JOIN objects o ON o.classid = u.classid AND o.oid = u.objid
 WHERE o.own IS NOT NULL OR u.relation IS DISTINCT FROM o.relation
 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
