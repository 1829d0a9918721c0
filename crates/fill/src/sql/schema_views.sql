-- $1: tables, as SQL names them. Materialized views that are made from them, directly or by way of other views, each
-- after those that it is made from.
WITH RECURSIVE made (oid, depth) AS (
    SELECT to_regclass(name)::oid, 0 FROM unnest($1::text[]) name
    UNION
    SELECT r.ev_class, made.depth + 1
      FROM made
      JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = made.oid
                      AND d.classid = 'pg_rewrite'::regclass
      JOIN pg_rewrite r ON r.oid = d.objid AND r.ev_class <> made.oid
     WHERE made.depth < 100
)
SELECT format('%I.%I', n.nspname, c.relname) AS name
  FROM (SELECT oid, max(depth) AS depth FROM made GROUP BY oid) view
  JOIN pg_class c ON c.oid = view.oid AND c.relkind = 'm'
  JOIN pg_namespace n ON n.oid = c.relnamespace
 ORDER BY view.depth, c.oid
