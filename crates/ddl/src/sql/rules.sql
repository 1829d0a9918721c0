-- The rules that rows of a table keep, as SQL that adds each to the table: NOT NULL, constraints and unique indexes; and those of a domain. The
-- session has an empty search_path, so that all names have their schema. NOT NULL of a parent holds for its children, too: a child
-- cannot drop it ("inherited"). "id" is that of a rule of a table, also after its columns were renamed.
SELECT a.attrelid AS oid, 'column ' || a.attnum AS id, NULL::text AS domain,
       'ALTER COLUMN ' || pg_catalog.quote_ident(a.attname) || ' SET NOT NULL' AS action, NULL::text AS index,
       EXISTS (SELECT FROM pg_catalog.pg_inherits h
                 JOIN pg_catalog.pg_attribute p ON p.attrelid = h.inhparent AND p.attname = a.attname AND p.attnotnull
                WHERE h.inhrelid = a.attrelid) AS inherited
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
 WHERE a.attnotnull AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND c.oid >= 16384
UNION ALL
SELECT conrelid, 'constraint ' || oid, NULL,
       pg_catalog.regexp_replace(pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(oid), '^PRIMARY KEY', 'UNIQUE'),
       ' NOT VALID$', ''), NULL, false
  FROM pg_catalog.pg_constraint
 WHERE contype IN ('p', 'u', 'c', 'f', 'x') AND conparentid = 0 AND conrelid >= 16384
UNION ALL
SELECT 0::oid, 'constraint ' || oid, pg_catalog.format_type(contypid, NULL),
       pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(oid), ' NOT VALID$', ''), NULL, false
  FROM pg_catalog.pg_constraint
 WHERE contype = 'c' AND contypid >= 16384
UNION ALL
SELECT 0::oid, 'domain ' || oid, pg_catalog.format_type(oid, NULL), 'SET NOT NULL', NULL, false
  FROM pg_catalog.pg_type
 WHERE typtype = 'd' AND typnotnull AND oid >= 16384
UNION ALL
SELECT i.indrelid, 'index ' || i.indexrelid, NULL, pg_catalog.pg_get_indexdef(i.indexrelid),
       pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), false
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indisunique AND i.indrelid >= 16384 AND c.relkind IN ('i', 'I')
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = i.indexrelid)
