-- The rules that rows of a table keep, as SQL that adds each to the table: NOT NULL, constraints and unique indexes; and those of a domain. The
-- session has an empty search_path, so that all names have their schema. NOT NULL of a parent holds for its children, too: a child
-- cannot drop it ("inherited"). "id" is that of a rule of a table, also after its columns were renamed, or its unique index became a
-- constraint. "kind" ascends from the rules that need no other one to foreign keys, which need a unique index; "number" ascends with the
-- creation; "is_valid" says whether all rows keep it. $1 has the OIDs of tables that were no partitions before the migration: a partition takes over keys and foreign keys of its parent, which
-- hold for the rows of those when they are attached. A foreign key to a partitioned table has a copy for each of its partitions.
SELECT a.attrelid AS oid, 'column ' || a.attnum AS id, NULL::text AS domain,
       'ALTER COLUMN ' || pg_catalog.quote_ident(a.attname) || ' SET NOT NULL' AS action, NULL::text AS index,
       EXISTS (SELECT FROM pg_catalog.pg_inherits h
                 JOIN pg_catalog.pg_attribute p ON p.attrelid = h.inhparent AND p.attname = a.attname AND p.attnotnull
                WHERE h.inhrelid = a.attrelid) AS inherited,
       0 AS kind, a.attrelid AS number, NULL::text AS name, ARRAY[a.attname::text] AS columns,
       NOT EXISTS (SELECT FROM pg_catalog.pg_constraint n
                    WHERE n.conrelid = a.attrelid AND n.contype = 'n' AND n.conkey = ARRAY[a.attnum] AND NOT n.convalidated) AS is_valid
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
 WHERE a.attnotnull AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND c.oid >= 16384
UNION ALL
SELECT k.conrelid, CASE WHEN k.contype IN ('p', 'u') THEN 'index ' || k.conindid ELSE 'constraint ' || k.oid END, NULL,
       pg_catalog.regexp_replace(pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(k.oid), '^PRIMARY KEY', 'UNIQUE'),
       ' NOT VALID$', ''), NULL, false,
       CASE k.contype WHEN 'c' THEN 1 WHEN 'f' THEN 3 ELSE 2 END, k.oid, k.conname::text,
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)),
       k.convalidated
  FROM pg_catalog.pg_constraint k
 WHERE k.contype IN ('p', 'u', 'c', 'f', 'x') AND k.conrelid >= 16384
   AND (k.conparentid = 0
        OR (k.conrelid = ANY ($1)
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint p WHERE p.oid = k.conparentid AND p.conrelid = k.conrelid)))
UNION ALL
SELECT 0::oid, 'constraint ' || oid, pg_catalog.format_type(contypid, NULL),
       pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(oid), ' NOT VALID$', ''), NULL, false,
       1, oid, conname::text, '{}'::text[], convalidated
  FROM pg_catalog.pg_constraint
 WHERE contype = 'c' AND contypid >= 16384
UNION ALL
SELECT 0::oid, 'domain ' || oid, pg_catalog.format_type(oid, NULL), 'SET NOT NULL', NULL, false,
       0, oid, NULL, '{}'::text[], true
  FROM pg_catalog.pg_type
 WHERE typtype = 'd' AND typnotnull AND oid >= 16384
UNION ALL
SELECT i.indrelid, 'index ' || i.indexrelid, NULL, pg_catalog.pg_get_indexdef(i.indexrelid),
       pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), false,
       2, i.indexrelid, NULL,
       ARRAY(SELECT DISTINCT a.attname::text FROM pg_catalog.pg_depend d
               JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
              WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = i.indexrelid
                AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = i.indrelid AND d.refobjsubid > 0), i.indisvalid
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indisunique AND i.indrelid >= 16384 AND c.relkind IN ('i', 'I')
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
   AND (i.indrelid = ANY ($1) OR NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = i.indexrelid))
