-- $1: a table's qualified name. Its foreign keys, keys and indexes that can be dropped and made again as they were: those that
-- nothing but foreign keys depends on, that have no comment, and whose definition is whole (pg_get_indexdef has no
-- tablespace, and no statistics targets of expressions). rests_on is the index that a foreign key rests on, referenced its table.
WITH candidate AS (
    SELECT c.oid AS relation, k.oid AS object, 'pg_constraint'::regclass AS catalog, NULL::oid AS index, k.conindid AS rests_on,
           k.conname AS name, k.confrelid AS referenced,
           format('ALTER TABLE %s DROP CONSTRAINT %I', $1::text, k.conname) AS drops,
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', $1::text, k.conname, pg_get_constraintdef(k.oid)) AS makes
      FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'f' AND k.conparentid = 0
     WHERE c.oid = to_regclass($1)
     UNION ALL
    SELECT c.oid, coalesce(k.oid, i.oid), CASE WHEN k.oid IS NULL THEN 'pg_class'::regclass ELSE 'pg_constraint'::regclass END,
           i.oid, NULL, NULL, NULL,
           CASE WHEN k.oid IS NULL THEN format('DROP INDEX %I.%I', n.nspname, i.relname)
                ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', $1::text, k.conname) END,
           CASE WHEN k.oid IS NULL THEN pg_get_indexdef(i.oid)
                ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', $1::text, k.conname, pg_get_constraintdef(k.oid)) END
      FROM pg_class c
      JOIN pg_index x ON x.indrelid = c.oid AND NOT x.indisexclusion
                     AND x.indisvalid AND NOT x.indisclustered AND NOT x.indisreplident AND x.indexprs IS NULL
      JOIN pg_class i ON i.oid = x.indexrelid AND i.reltablespace = 0
      JOIN pg_namespace n ON n.oid = i.relnamespace
      LEFT JOIN pg_constraint k ON k.conindid = i.oid AND k.contype IN ('p', 'u')
     WHERE c.oid = to_regclass($1)
)
SELECT drops, makes, index, rests_on, candidate.name, rn.nspname AS referenced_schema, r.relname AS referenced_name,
       (SELECT count(*) FROM pg_constraint f WHERE f.conindid = index AND f.contype = 'f') AS foreign_keys
  FROM candidate
  JOIN pg_class c ON c.oid = candidate.relation
  LEFT JOIN pg_class r ON r.oid = candidate.referenced
  LEFT JOIN pg_namespace rn ON rn.oid = r.relnamespace
 WHERE c.relkind = 'r' AND NOT c.relispartition AND pg_has_role(c.relowner, 'USAGE')
   AND NOT EXISTS (SELECT FROM pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent))
   AND NOT EXISTS (
       SELECT FROM pg_description d WHERE d.classoid = catalog AND d.objoid = object OR d.classoid = 'pg_class'::regclass AND d.objoid = index)
   -- The index of a constraint and the triggers of a foreign key go with it (i, I).
   AND NOT EXISTS (
       SELECT FROM pg_depend d WHERE d.refclassid = catalog AND d.refobjid = object AND d.deptype IN ('n', 'a', 'e', 'x'))
   AND NOT EXISTS (
       SELECT FROM pg_depend d WHERE (d.classid, d.objid) = (catalog, object) AND d.deptype IN ('e', 'x'))
 ORDER BY object
