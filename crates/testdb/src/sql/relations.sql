-- Every table, sequence and materialized view that is neither the system's nor temporary, as a change of persistence
-- has to know it.
WITH RECURSIVE
-- Types that columns have, and what these types are made of (tablecmds.c, find_composite_type_dependencies).
used (relation, attribute, type) AS (
    SELECT a.attrelid, a.attname, a.atttypid
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relkind IN ('r', 'p', 'm') AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384
    UNION
    SELECT u.relation, u.attribute, part.type
      FROM used u, LATERAL (
           SELECT t.typelem FROM pg_type t WHERE t.oid = u.type AND t.typelem <> 0
           UNION ALL
           SELECT t.typbasetype FROM pg_type t WHERE t.oid = u.type AND t.typbasetype <> 0
           UNION ALL
           SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = u.type
           UNION ALL
           SELECT a.atttypid
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.reltype = u.type AND c.relkind = 'c' AND a.attnum > 0 AND NOT a.attisdropped
           ) AS part (type)
), row_type AS (
    SELECT t.typrelid AS relation, min(format('%s.%I', u.relation::regclass, u.attribute)) AS used_by
      FROM used u JOIN pg_type t ON t.oid = u.type
     WHERE t.typrelid <> 0
     GROUP BY t.typrelid
), published AS (
    SELECT g.relid, p.pubname::text AS publication, p.puballtables AS of_all
      FROM pg_publication p, LATERAL pg_get_publication_tables(p.pubname::text) g
)
SELECT c.oid,
       n.nspname::text AS schema,
       c.relname::text AS name,
       c.relkind::text AS kind,
       c.relpersistence::text AS persistence,
       pg_has_role(c.relowner, 'USAGE') AS is_owner,
       pg_get_userbyid(c.relowner)::text AS owner,
       CASE WHEN c.relkind = 'r' THEN pg_total_relation_size(c.oid) END AS bytes,
       ARRAY(SELECT a.relid::oid FROM pg_partition_ancestors(c.oid) a WHERE a.relid <> c.oid) AS ancestors,
       row_type.used_by AS row_type_used_by,
       ARRAY(SELECT p.publication
               FROM published p
              WHERE NOT p.of_all
                AND (p.relid = c.oid OR p.relid IN (SELECT relid FROM pg_partition_ancestors(c.oid)))) AS publications,
       ARRAY(SELECT p.publication
               FROM published p
              WHERE p.of_all
                AND (p.relid = c.oid OR p.relid IN (SELECT relid FROM pg_partition_ancestors(c.oid)))) AS publications_of_all,
       (SELECT e.extname::text
          FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
         WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0
           AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e') AS extension,
       (SELECT min(d.refobjid::int8)::oid
          FROM pg_depend d
         WHERE c.relkind = 'S' AND d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0
           AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')) AS owned_by
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN row_type ON row_type.relation = c.oid
 WHERE c.relkind IN ('r', 'p', 'S', 'm', 'f')
   AND c.relpersistence <> 't'
   AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema')
 ORDER BY n.nspname, c.relname
