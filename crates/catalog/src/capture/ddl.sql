-- $1: a schema, or NULL for all but the system's. Statements that make the tables with their types, constraints and
-- indexes, in an order in which they can be run. To be run with an empty search_path, so that all names are qualified.
WITH tables AS (
    SELECT c.*, n.nspname, format('%I.%I', n.nspname, c.relname) AS name
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
       AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
       AND ($1::text IS NULL OR n.nspname = $1)
       -- A partition of a table of another schema has no table of which it could be one.
       AND ($1::text IS NULL OR NOT EXISTS (
               SELECT FROM pg_partition_ancestors(c.oid) a JOIN pg_class p ON p.oid = a.relid
                 JOIN pg_namespace m ON m.oid = p.relnamespace
                WHERE m.nspname <> $1))
       AND n.nspname !~ '^pgrig($|_)'
       AND c.relname !~ '^pgrig_(chunks|unlogged_chunks|ballast)_' AND c.relname <> 'pgrig_schema_fill'
       AND NOT EXISTS (
           SELECT FROM pg_depend d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
), parts AS (
    -- What belongs to the tables and may refer to types, functions and sequences.
    SELECT 'pg_class'::regclass AS classid, oid AS objid FROM tables
    UNION ALL SELECT 'pg_attrdef'::regclass, d.oid FROM pg_attrdef d JOIN tables t ON t.oid = d.adrelid
    UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint k JOIN tables t ON t.oid = k.conrelid
    UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index i JOIN tables t ON t.oid = i.indrelid
), direct AS (
    SELECT d.refclassid, d.refobjid FROM pg_depend d JOIN parts p ON p.classid = d.classid AND p.objid = d.objid
), types AS (
    -- A column may have an array of a type; a domain stands on a type.
    WITH RECURSIVE used (oid) AS (
        SELECT refobjid FROM direct WHERE refclassid = 'pg_type'::regclass
        UNION
        SELECT x.oid FROM used u JOIN pg_type t ON t.oid = u.oid
          LEFT JOIN pg_range r ON r.rngtypid = t.oid
          LEFT JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
          CROSS JOIN LATERAL (VALUES (t.typbasetype), (t.typelem), (r.rngsubtype), (a.atttypid)) x (oid)
         WHERE x.oid <> 0
    )
    SELECT t.*, format('%I.%I', n.nspname, t.typname) AS name, n.nspname
      FROM used u JOIN pg_type t ON t.oid = u.oid JOIN pg_namespace n ON n.oid = t.typnamespace
     WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
), functions AS (
    SELECT DISTINCT f.oid, n.nspname FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
     WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND f.prokind = 'f'
       AND (f.oid IN (SELECT refobjid FROM direct WHERE refclassid = 'pg_proc'::regclass)
            OR f.oid IN (SELECT d.refobjid FROM pg_depend d JOIN pg_constraint k
                            ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid
                         WHERE d.refclassid = 'pg_proc'::regclass AND k.contypid IN (SELECT oid FROM types)))
), owned AS (
    SELECT d.classid, d.objid, e.extname, n.nspname FROM pg_depend d
      JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
      JOIN pg_namespace n ON n.oid = e.extnamespace
     WHERE d.deptype = 'e'
), collations AS (
    SELECT DISTINCT k.oid, n.nspname, format('%I.%I', n.nspname, k.collname) AS name, k.collprovider, k.collcollate,
           k.collctype, k.collisdeterministic,
           -- Names of these columns differ between versions.
           coalesce(to_jsonb(k) ->> 'colllocale', to_jsonb(k) ->> 'colliculocale', k.collcollate) AS locale,
           to_jsonb(k) ->> 'collicurules' AS rules
      FROM direct d JOIN pg_collation k ON d.refclassid = 'pg_collation'::regclass AND d.refobjid = k.oid
      JOIN pg_namespace n ON n.oid = k.collnamespace WHERE n.nspname <> 'pg_catalog'
), sequences AS (
    SELECT c.oid, n.nspname, format('%I.%I', n.nspname, c.relname) AS name, s.*,
           (SELECT format('%s.%I', t.name, a.attname) FROM pg_depend d JOIN tables t ON t.oid = d.refobjid
              JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
             WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'a') AS owner
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence s ON s.seqrelid = c.oid
     WHERE c.relkind = 'S' AND c.oid IN (SELECT refobjid FROM direct WHERE refclassid = 'pg_class'::regclass)
), identities AS (
    -- Sequences of identity columns, with all options: they may have names of their own.
    SELECT d.refobjid AS attrelid, d.refobjsubid AS attnum, n.nspname,
           format('(SEQUENCE NAME %I.%I START WITH %s INCREMENT BY %s MINVALUE %s MAXVALUE %s CACHE %s%s)', n.nspname, c.relname, s.seqstart,
                  s.seqincrement, s.seqmin, s.seqmax, s.seqcache, CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END) AS options
      FROM pg_depend d JOIN tables t ON t.oid = d.refobjid
      JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
      JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence s ON s.seqrelid = c.oid
     WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'i'
), parents AS (
    -- Of partitions and of tables that inherit.
    SELECT i.* FROM pg_inherits i JOIN tables t ON t.oid = i.inhparent
), depths AS (
    -- A parent comes first, also if it was created later (ATTACH PARTITION, ALTER TABLE ... INHERIT).
    WITH RECURSIVE down (oid, depth) AS (
        SELECT oid, 0 FROM tables
        UNION
        SELECT p.inhrelid, d.depth + 1 FROM down d JOIN parents p ON p.inhparent = d.oid
    )
    SELECT oid, max(depth)::int8 AS depth FROM down GROUP BY oid
), not_nulls AS (
    -- From PostgreSQL 18 on, NOT NULL is a constraint. Those that NOT NULL of a column alone does not make: they have a name of their
    -- own, or are not valid.
    SELECT k.oid, k.conrelid, k.conkey[1] AS attnum, k.conname, k.convalidated, k.conislocal
      FROM pg_constraint k JOIN tables t ON t.oid = k.conrelid
      JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
     WHERE k.contype = 'n' AND NOT t.relispartition
       AND (NOT k.convalidated OR k.conname::text <> format('%s_%s_not_null', t.relname, a.attname))
), columns AS (
    SELECT a.attrelid, a.attnum, a.attname, a.attnotnull, a.attgenerated, pg_get_expr(d.adbin, d.adrelid) AS expression,
           u.conislocal AND NOT u.convalidated AS is_own_unvalidated,
           -- A parent's column of the same name. A child may not repeat how it is generated.
           h.attname IS NOT NULL AND (NOT a.attislocal OR a.attgenerated <> '') AS is_inherited, h.attnotnull AS parent_not_null, h.expression AS parent_expression,
           format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
           || CASE WHEN a.attcollation <> t.typcollation AND a.attcollation <> 0
                   THEN (SELECT format(' COLLATE %I.%I', n.nspname, k.collname) FROM pg_collation k
                           JOIN pg_namespace n ON n.oid = k.collnamespace WHERE k.oid = a.attcollation)
                   ELSE '' END AS data_type,
           CASE WHEN a.attidentity <> ''
                   THEN format(' GENERATED %s AS IDENTITY%s', CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
                               (SELECT ' ' || y.options FROM identities y WHERE y.attrelid = a.attrelid AND y.attnum = a.attnum))
                   WHEN a.attgenerated <> ''
                   THEN format(' GENERATED ALWAYS AS (%s) %s', pg_get_expr(d.adbin, d.adrelid),
                               CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END)
                   WHEN d.adbin IS NOT NULL THEN ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid)
                   ELSE '' END
           || CASE WHEN NOT a.attnotnull OR NOT u.convalidated THEN ''
                   WHEN u.conislocal THEN format(' CONSTRAINT %I NOT NULL', u.conname)
                   ELSE ' NOT NULL' END AS options
      FROM pg_attribute a JOIN tables c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
      LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      LEFT JOIN not_nulls u ON u.conrelid = a.attrelid AND u.attnum = a.attnum
      LEFT JOIN LATERAL (
          SELECT b.attname, bool_or(b.attnotnull) AS attnotnull, max(pg_get_expr(e.adbin, e.adrelid)) AS expression
            FROM parents p JOIN pg_attribute b ON b.attrelid = p.inhparent AND b.attname = a.attname AND b.attnum > 0
            LEFT JOIN pg_attrdef e ON e.adrelid = b.attrelid AND e.adnum = b.attnum
           WHERE p.inhrelid = a.attrelid AND NOT b.attisdropped GROUP BY b.attname) h ON NOT c.relispartition
     WHERE a.attnum > 0 AND NOT a.attisdropped
), statements (step, place, sql) AS (
    SELECT 1, 0, format('CREATE SCHEMA IF NOT EXISTS %I', x.nspname)
      FROM (SELECT nspname FROM tables UNION SELECT nspname FROM types UNION SELECT nspname FROM functions
            UNION SELECT nspname FROM sequences UNION SELECT nspname FROM identities UNION SELECT nspname FROM collations UNION SELECT nspname FROM owned o WHERE o.objid IN (
                SELECT oid FROM types UNION SELECT oid FROM functions)) x
     WHERE x.nspname <> 'public' AND x.nspname NOT LIKE 'pg\_%'
    UNION ALL
    SELECT DISTINCT 2, 0, format('CREATE EXTENSION IF NOT EXISTS %I WITH SCHEMA %I', o.extname, o.nspname)
      FROM owned o
     WHERE o.classid = 'pg_type'::regclass AND o.objid IN (SELECT oid FROM types)
        OR o.classid = 'pg_proc'::regclass AND o.objid IN (SELECT oid FROM functions)
        OR o.classid = 'pg_opclass'::regclass
           AND o.objid IN (SELECT refobjid FROM direct WHERE refclassid = 'pg_opclass'::regclass)
    UNION ALL
    SELECT 2, k.oid::int8, format('CREATE COLLATION IF NOT EXISTS %s (provider = %s, %s%s%s)', k.name,
           CASE k.collprovider WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' END,
           CASE WHEN k.collprovider IN ('i', 'b') THEN format('locale = %L', k.locale)
                ELSE format('lc_collate = %L, lc_ctype = %L', k.collcollate, k.collctype) END,
           CASE WHEN k.collisdeterministic THEN '' ELSE ', deterministic = false' END, CASE WHEN k.rules IS NULL THEN '' ELSE format(', rules = %L', k.rules) END)
      FROM collations k
    UNION ALL
    SELECT 3, t.oid::int8, format('CREATE TYPE %s AS ENUM (%s)', t.name,
           (SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid))
      FROM types t WHERE t.typtype = 'e'
    UNION ALL
    SELECT 4, t.oid::int8, CASE t.typtype
        WHEN 'd' THEN format('CREATE DOMAIN %s AS %s', t.name, format_type(t.typbasetype, t.typtypmod))
             || coalesce(' DEFAULT ' || t.typdefault, '') || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END
        WHEN 'r' THEN format('CREATE TYPE %s AS RANGE (subtype = %s)', t.name,
             (SELECT format_type(r.rngsubtype, NULL) FROM pg_range r WHERE r.rngtypid = t.oid))
        ELSE format('CREATE TYPE %s AS (%s)', t.name,
             (SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)) || coalesce(k.clause, ''), ', ' ORDER BY a.attnum)
                FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
                -- Those of PostgreSQL, and of columns: the copy has no others.
                LEFT JOIN (SELECT k.oid, format(' COLLATE %I.%I', n.nspname, k.collname) AS clause
                             FROM pg_collation k JOIN pg_namespace n ON n.oid = k.collnamespace
                            WHERE n.nspname = 'pg_catalog' OR k.oid IN (SELECT oid FROM collations)) k
                  ON k.oid = a.attcollation AND a.attcollation <> y.typcollation
               WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)) END
      FROM types t
     WHERE (t.typtype IN ('d', 'r') OR t.typtype = 'c' AND EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c'))
       AND t.oid NOT IN (SELECT objid FROM owned WHERE classid = 'pg_type'::regclass)
    UNION ALL
    SELECT 5, f.oid::int8, rtrim(pg_get_functiondef(f.oid), E'\n') FROM functions f
     WHERE f.oid NOT IN (SELECT objid FROM owned WHERE classid = 'pg_proc'::regclass)
    UNION ALL
    SELECT 6, k.oid::int8, format('ALTER DOMAIN %s ADD CONSTRAINT %I %s', t.name, k.conname, pg_get_constraintdef(k.oid))
      FROM pg_constraint k JOIN types t ON t.oid = k.contypid
     WHERE k.contype = 'c' AND t.oid NOT IN (SELECT objid FROM owned WHERE classid = 'pg_type'::regclass)
    UNION ALL
    SELECT 7, s.oid::int8, format('CREATE SEQUENCE %s AS %s INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s CACHE %s%s',
           s.name, format_type(s.seqtypid, NULL), s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache,
           CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END)
      FROM sequences s
    UNION ALL
    SELECT 8, (d.depth << 32) + t.oid::int8,
           CASE t.relpersistence WHEN 'u' THEN 'CREATE UNLOGGED TABLE ' ELSE 'CREATE TABLE ' END || t.name
           || CASE WHEN t.relispartition
                   THEN (SELECT format(' PARTITION OF %s %s', i.inhparent::regclass, pg_get_expr(t.relpartbound, t.oid))
                           FROM pg_inherits i WHERE i.inhrelid = t.oid)
                   WHEN t.reloftype <> 0
                   THEN (SELECT ' OF ' || y.name FROM types y WHERE y.oid = t.reloftype)
                        || coalesce((SELECT E' (\n    ' || string_agg(format('%I WITH OPTIONS%s', c.attname, c.options), E',\n    ' ORDER BY c.attnum) || E'\n)'
                                       FROM columns c WHERE c.attrelid = t.oid AND c.options <> ''), '')
                   ELSE format(E' (\n    %s\n)', (SELECT string_agg(c.data_type || c.options, E',\n    ' ORDER BY c.attnum)
                                                   FROM columns c WHERE c.attrelid = t.oid AND NOT c.is_inherited))
                        || coalesce((SELECT ' INHERITS (' || string_agg(p.inhparent::regclass::text, ', ' ORDER BY p.inhseqno) || ')'
                                       FROM parents p WHERE p.inhrelid = t.oid), '') END
           || CASE WHEN t.relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(t.oid) ELSE '' END
           || coalesce((SELECT ' WITH (' || string_agg(o.parameter, ', ') || ')'
                          FROM (SELECT unnest(t.reloptions) AS parameter
                                UNION ALL
                                SELECT 'toast.' || unnest(x.reloptions) FROM pg_class x WHERE x.oid = t.reltoastrelid) o), '')
      FROM tables t JOIN depths d ON d.oid = t.oid
    UNION ALL
    SELECT 9, (d.depth << 32) + c.attrelid::int8, format('ALTER TABLE %s ALTER %I %s', t.name, c.attname, x.action)
      FROM columns c JOIN tables t ON t.oid = c.attrelid JOIN depths d ON d.oid = t.oid
      CROSS JOIN LATERAL (VALUES
          (c.attnotnull AND NOT c.parent_not_null AND c.is_own_unvalidated IS NOT TRUE, 'SET NOT NULL'),
          (c.attgenerated = '' AND c.expression IS DISTINCT FROM c.parent_expression,
           coalesce('SET DEFAULT ' || c.expression, 'DROP DEFAULT'))) x (is_own, action)
     WHERE c.is_inherited AND x.is_own
    UNION ALL
    SELECT 9, s.oid::int8, format('ALTER SEQUENCE %s OWNED BY %s', s.name, s.owner) FROM sequences s WHERE s.owner IS NOT NULL
    UNION ALL
    -- Those that are not valid, which only PostgreSQL 18 knows: a valid one of an inherited column came by SET NOT NULL, without its name,
    -- because earlier servers take no other form. Those of children come first: one of a parent is theirs, too.
    SELECT 10, u.oid::int8 - (d.depth << 32), format('ALTER TABLE %s ADD CONSTRAINT %I %s', t.name, u.conname, pg_get_constraintdef(u.oid))
      FROM not_nulls u JOIN columns c ON c.attrelid = u.conrelid AND c.attnum = u.attnum
      JOIN tables t ON t.oid = u.conrelid JOIN depths d ON d.oid = t.oid
     WHERE c.is_own_unvalidated AND NOT (c.is_inherited AND c.parent_not_null)
    UNION ALL
    SELECT CASE k.contype WHEN 'f' THEN 13 WHEN 'c' THEN 10 ELSE 11 END, k.oid::int8,
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', t.name, k.conname, pg_get_constraintdef(k.oid))
      FROM pg_constraint k JOIN tables t ON t.oid = k.conrelid
     WHERE k.contype IN ('p', 'u', 'x', 'c', 'f') AND k.conparentid = 0 AND k.conislocal AND k.coninhcount = 0
       AND (k.contype <> 'f' OR k.confrelid IN (SELECT oid FROM tables))
    UNION ALL
    SELECT 12, i.indexrelid::int8, replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ')
      FROM pg_index i JOIN tables t ON t.oid = i.indrelid
     WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
       AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)
    UNION ALL
    SELECT 14, s.oid::int8, pg_get_statisticsobjdef(s.oid)
      FROM pg_statistic_ext s JOIN tables t ON t.oid = s.stxrelid
    UNION ALL
    SELECT 15, s.oid::int8, format('ALTER STATISTICS %I.%I SET STATISTICS %s', n.nspname, s.stxname, s.stxstattarget)
      FROM pg_statistic_ext s JOIN tables t ON t.oid = s.stxrelid JOIN pg_namespace n ON n.oid = s.stxnamespace
     WHERE s.stxstattarget >= 0
    UNION ALL
    -- Of this table alone: its partitions and children have their own.
    SELECT 15, a.attrelid::int8 * 2000 + a.attnum, format('ALTER TABLE ONLY %s ALTER %I %s', t.name, a.attname, x.action)
      FROM pg_attribute a JOIN tables t ON t.oid = a.attrelid JOIN pg_type y ON y.oid = a.atttypid
      CROSS JOIN LATERAL (VALUES
          (a.attstattarget >= 0, format('SET STATISTICS %s', a.attstattarget)),
          (a.attoptions IS NOT NULL, format('SET (%s)', array_to_string(a.attoptions, ', '))),
          (a.attstorage <> y.typstorage,
           'SET STORAGE ' || CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END),
          -- From PostgreSQL 14 on.
          (to_jsonb(a) ->> 'attcompression' IN ('p', 'l'),
           'SET COMPRESSION ' || CASE to_jsonb(a) ->> 'attcompression' WHEN 'l' THEN 'lz4' ELSE 'pglz' END)) x (is_own, action)
     WHERE a.attnum > 0 AND NOT a.attisdropped AND x.is_own
    UNION ALL
    -- The index of a partition that belongs to one of its parent may have another name in the copy.
    SELECT 16, t.oid::int8, format('ALTER TABLE ONLY %s REPLICA IDENTITY %s', t.name,
           CASE t.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' ELSE format('USING INDEX %I', i.relname) END)
      FROM tables t
      LEFT JOIN pg_index x ON x.indrelid = t.oid AND x.indisreplident
       AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = x.indexrelid)
      LEFT JOIN pg_class i ON i.oid = x.indexrelid
     WHERE t.relreplident IN ('f', 'n') OR t.relreplident = 'i' AND i.oid IS NOT NULL
    UNION ALL
    SELECT 16, x.indexrelid::int8, format('ALTER TABLE %s CLUSTER ON %I', t.name, i.relname)
      FROM pg_index x JOIN tables t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
     WHERE x.indisclustered AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = x.indexrelid)
)
SELECT sql FROM statements ORDER BY step, place
