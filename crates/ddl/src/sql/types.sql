-- The columns of all tables, with their types: of a column that has no other type, these numbers do not change. And the constraints with indexes.
SELECT c.oid, p.number, p.rule, n.nspname::text AS schema, c.relname::text AS name, p.name::text AS part, p.type, p.modifier, p.collation
  FROM (SELECT attrelid, attnum, NULL::pg_catalog.oid, attname, atttypid, atttypmod, attcollation
          FROM pg_catalog.pg_attribute
         WHERE attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT conrelid, NULL, oid, conname, 0::pg_catalog.oid, -1, 0::pg_catalog.oid
          FROM pg_catalog.pg_constraint
         WHERE contype IN ('p', 'u', 'x')) AS p (relation, number, rule, name, type, modifier, "collation")
  JOIN pg_catalog.pg_class c ON c.oid = p.relation
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND c.oid >= 16384
