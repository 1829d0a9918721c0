-- Columns with their types, those under domains, those of enums with their values, whether a unique index begins with the column, whether it comes from a parent, and
-- the table's file.
SELECT a.attrelid AS oid, a.attnum, a.attname::text AS name, t.oid AS type_oid, t.typname::text AS type, t.typcategory::text AS category,
       pg_catalog.format_type(a.atttypid, a.atttypmod) AS full_type,
       (WITH RECURSIVE base AS (
            SELECT a.atttypid AS oid, a.atttypmod AS modifier
            UNION ALL
            SELECT d.typbasetype, d.typtypmod FROM base JOIN pg_catalog.pg_type d ON d.oid = base.oid WHERE d.typtype = 'd')
        SELECT pg_catalog.format_type(b.oid, b.modifier) FROM base b JOIN pg_catalog.pg_type u ON u.oid = b.oid
         WHERE u.typtype <> 'd') AS base_type,
       ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder) AS labels,
       EXISTS (SELECT FROM pg_catalog.pg_index i
                WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indkey[0] = a.attnum) AS is_unique,
       a.attinhcount > 0 AS is_inherited,
       c.relfilenode AS file,
       EXISTS (SELECT FROM pg_catalog.pg_constraint k
                WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND a.attnum = ANY (k.conkey)) AS is_reference
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
 WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.oid >= 16384
