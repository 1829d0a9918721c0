-- $1: OIDs of relations. The types of their columns, and those that these are made of, as one document: by OID.
-- Columns of catalogs that not every release since 13 has are read through to_jsonb.
WITH RECURSIVE types (oid) AS (
    SELECT atttypid FROM pg_attribute
     WHERE attrelid = ANY ($1::oid[]) AND attnum > 0 AND NOT attisdropped
    UNION
    SELECT inner_type.oid
      FROM types
      JOIN pg_type t ON t.oid = types.oid
      LEFT JOIN pg_range r ON t.oid IN (r.rngtypid, (to_jsonb(r) ->> 'rngmultitypid')::oid)
     CROSS JOIN LATERAL (
           VALUES (CASE WHEN t.typcategory = 'A' THEN t.typelem END), (t.typbasetype), (r.rngsubtype)
           UNION ALL
           SELECT f.atttypid FROM pg_attribute f
            WHERE t.typtype = 'c' AND f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped
           ) AS inner_type (oid)
     WHERE inner_type.oid <> 0
)
SELECT coalesce(jsonb_object_agg(t.oid::bigint, jsonb_build_object(
           'name', t.typname,
           'built_in', t.typnamespace = 'pg_catalog'::regnamespace,
           'sql', format_type(t.oid, NULL),
           'kind', t.typtype,
           'element', CASE WHEN t.typcategory = 'A' THEN nullif(t.typelem, 0)::bigint END,
           'subtype', r.rngsubtype::bigint,
           'base', nullif(t.typbasetype, 0)::bigint,
           'base_sql', CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) END,
           'not_null', t.typnotnull,
           'labels', coalesce((SELECT jsonb_agg(e.enumlabel ORDER BY e.enumsortorder)
                                 FROM pg_enum e WHERE e.enumtypid = t.oid), '[]'),
           'checks', coalesce((
               SELECT jsonb_agg(jsonb_build_object(
                          'name', k.conname, 'expression', pg_get_expr(k.conbin, 0)) ORDER BY k.conname)
                 FROM pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c'), '[]'),
           'fields', coalesce((
               SELECT jsonb_agg(jsonb_build_object(
                          'type_oid', f.atttypid::bigint,
                          'type_sql', format_type(f.atttypid, f.atttypmod)) ORDER BY f.attnum)
                 FROM pg_attribute f
                WHERE t.typtype = 'c' AND f.attrelid = t.typrelid AND f.attnum > 0
                  AND NOT f.attisdropped), '[]')
       )), '{}') AS document
  FROM types JOIN pg_type t USING (oid)
  LEFT JOIN pg_range r ON t.oid IN (r.rngtypid, (to_jsonb(r) ->> 'rngmultitypid')::oid)
