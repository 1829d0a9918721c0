-- $1: oid of a relation. What the catalogs say of it, as one document: catalog::TableInfo.
-- Columns of catalogs that not every release since 13 has are read through to_jsonb.
WITH RECURSIVE columns AS (
    SELECT * FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped
), types (oid) AS (
    SELECT atttypid FROM columns
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
), tree AS (
    -- pg_partition_tree is empty for what neither is partitioned nor a partition.
    SELECT relid, level FROM pg_partition_tree($1) WHERE isleaf AND relid <> $1::oid
), self AS (
    -- The relation and those it is a partition of.
    SELECT $1::oid AS oid UNION SELECT relid FROM pg_partition_ancestors($1)
)
SELECT jsonb_build_object(
    'oid', c.oid::bigint,
    'schema', n.nspname,
    'name', c.relname,
    'kind', c.relkind,
    'temporary', c.relpersistence = 't',
    'partition_key', pg_get_partkeydef(c.oid),
    'role', quote_ident(current_user),
    'rights', jsonb_build_object(
        'may_insert', has_table_privilege(c.oid, 'INSERT'),
        'may_select', has_table_privilege(c.oid, 'SELECT'),
        'may_create_temporary', has_database_privilege(current_database(), 'TEMPORARY')),
    'row_security', row_security_active(c.oid),
    'triggers', coalesce((
        SELECT jsonb_agg(t.tgname ORDER BY t.tgname) FROM pg_trigger t
         -- 4: fires on INSERT (catalog/pg_trigger.h).
         WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 4 <> 0 AND t.tgenabled IN ('O', 'A')
    ), '[]'),
    'columns', coalesce((
        SELECT jsonb_agg(jsonb_build_object(
                   'name', a.attname,
                   'number', a.attnum,
                   'type_oid', a.atttypid::bigint,
                   'type_sql', format_type(a.atttypid, a.atttypmod),
                   'collation', (SELECT format('%I.%I', cn.nspname, co.collname)
                                   FROM pg_collation co JOIN pg_namespace cn ON cn.oid = co.collnamespace
                                  WHERE co.oid = a.attcollation AND co.collname <> 'default'),
                   'not_null', a.attnotnull,
                   'may_insert', has_column_privilege(c.oid, a.attnum, 'INSERT'),
                   'identity', nullif(a.attidentity::text, ''),
                   'generated', nullif(a.attgenerated::text, ''),
                   'expression', pg_get_expr(d.adbin, d.adrelid),
                   'sequence', d.oid IS NOT NULL AND EXISTS (
                       SELECT FROM pg_depend p JOIN pg_class s ON s.oid = p.refobjid
                        WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
                          AND p.refclassid = 'pg_class'::regclass AND s.relkind = 'S'),
                   'own_sequence', (
                       SELECT jsonb_build_object(
                                  'oid', s.oid::bigint,
                                  'name', format('%I.%I', sn.nspname, s.relname),
                                  'next', q.seqstart,
                                  'increment', q.seqincrement,
                                  'least', q.seqmin,
                                  'greatest', q.seqmax,
                                  'cycles', q.seqcycle)
                         FROM pg_depend p
                         JOIN pg_class s ON s.oid = p.objid AND s.relkind = 'S'
                         JOIN pg_namespace sn ON sn.oid = s.relnamespace
                         JOIN pg_sequence q ON q.seqrelid = s.oid
                        WHERE p.classid = 'pg_class'::regclass AND p.refclassid = 'pg_class'::regclass
                          AND (p.refobjid, p.refobjsubid) = (a.attrelid, a.attnum)
                          -- An identity's sequence, or one that OWNED BY gives to the column whose default it is.
                          AND CASE WHEN a.attidentity <> '' THEN p.deptype = 'i'
                                   ELSE p.deptype = 'a'
                                        AND pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(''%''::regclass)'
                                        AND pg_get_expr(d.adbin, d.adrelid) NOT LIKE '%) %'
                                        AND EXISTS (SELECT FROM pg_depend u
                                                     WHERE (u.classid, u.objid) = ('pg_attrdef'::regclass, d.oid)
                                                       AND (u.refclassid, u.refobjid) = ('pg_class'::regclass, s.oid))
                              END
                          -- No other column takes its values from it, but the same one of partitions.
                          AND NOT EXISTS (SELECT FROM pg_depend u LEFT JOIN pg_attrdef ud ON ud.oid = u.objid
                                           WHERE u.classid = 'pg_attrdef'::regclass AND u.objid IS DISTINCT FROM d.oid
                                             AND (u.refclassid, u.refobjid) = ('pg_class'::regclass, s.oid)
                                             AND NOT EXISTS (SELECT FROM pg_partition_tree(a.attrelid) t
                                                              WHERE t.relid = ud.adrelid))
                          -- Conditions come in no certain order, and this one fails for what is no sequence.
                          AND CASE WHEN s.relkind = 'S'
                                   THEN has_sequence_privilege(s.oid, 'SELECT') AND has_sequence_privilege(s.oid, 'UPDATE')
                              END
                        LIMIT 1)
               ) ORDER BY a.attnum)
          FROM columns a LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
    ), '[]'),
    'types', (
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
               )), '{}')
          FROM types JOIN pg_type t USING (oid)
          LEFT JOIN pg_range r ON t.oid IN (r.rngtypid, (to_jsonb(r) ->> 'rngmultitypid')::oid)
    ),
    'checks', coalesce((
        SELECT jsonb_agg(jsonb_build_object(
                   'name', k.conname, 'expression', pg_get_expr(k.conbin, k.conrelid)) ORDER BY k.conname)
          FROM pg_constraint k
         WHERE k.conrelid = c.oid AND k.contype = 'c'
           AND coalesce((to_jsonb(k) ->> 'conenforced')::bool, true)
           -- A partitioned table's NO INHERIT constraint holds for no row.
           AND NOT (k.connoinherit AND c.relkind = 'p')
    ), '[]'),
    'keys', coalesce((
        SELECT jsonb_agg(jsonb_build_object(
                   'name', x.relname,
                   'primary', i.indisprimary,
                   'exclusion', i.indisexclusion,
                   'elements', (
                       SELECT jsonb_agg(jsonb_build_object(
                                  'column', (SELECT attname FROM pg_attribute
                                              WHERE attrelid = i.indrelid AND attnum = i.indkey[e - 1]),
                                  'expression', CASE WHEN i.indkey[e - 1] = 0
                                                     THEN pg_get_indexdef(i.indexrelid, e, true) END,
                                  -- Operators of exclusion constraints are known by name.
                                  'equality', k.conexclop IS NULL OR (
                                      SELECT o.oprname = '=' FROM pg_operator o WHERE o.oid = k.conexclop[e]),
                                  'overlap', k.conexclop IS NOT NULL AND (
                                      SELECT o.oprname = '&&' FROM pg_operator o WHERE o.oid = k.conexclop[e])
                              ) ORDER BY e)
                         FROM generate_series(1, i.indnkeyatts) e),
                   'predicate', pg_get_expr(i.indpred, i.indrelid),
                   'definition', coalesce(pg_get_constraintdef(k.oid), pg_get_indexdef(i.indexrelid)),
                   'index', substr(
                       pg_get_indexdef(i.indexrelid),
                       strpos(pg_get_indexdef(i.indexrelid), format(' %I.%I USING ', tn.nspname, t.relname))
                           + length(format(' %I.%I', tn.nspname, t.relname)))
               ) ORDER BY i.indrelid <> c.oid, NOT i.indisprimary, x.relname)
          FROM pg_index i
          JOIN pg_class x ON x.oid = i.indexrelid
          JOIN pg_class t ON t.oid = i.indrelid
          JOIN pg_namespace tn ON tn.oid = t.relnamespace
          LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')
         WHERE (i.indisunique OR i.indisexclusion) AND i.indislive
           AND (i.indrelid = c.oid
                -- A partition's own.
                OR i.indrelid IN (SELECT relid FROM tree)
                   AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid))
    ), '[]'),
    'foreign_keys', coalesce((
        SELECT jsonb_agg(jsonb_build_object(
                   'name', k.conname,
                   'columns', (SELECT jsonb_agg(a.attname ORDER BY p.position)
                                 FROM unnest(k.conkey) WITH ORDINALITY p (attnum, position)
                                 JOIN pg_attribute a ON (a.attrelid, a.attnum) = (k.conrelid, p.attnum)),
                   'referenced', jsonb_build_object(
                       'schema', rn.nspname,
                       'table', rc.relname,
                       'columns', (SELECT jsonb_agg(a.attname ORDER BY p.position)
                                     FROM unnest(k.confkey) WITH ORDINALITY p (attnum, position)
                                     JOIN pg_attribute a ON (a.attrelid, a.attnum) = (k.confrelid, p.attnum)),
                       'partitioned', rc.relkind = 'p',
                       -- As of the last ANALYZE; below 0 if there was none.
                       'rows', rc.reltuples::bigint,
                       'may_select', (SELECT bool_and(has_column_privilege(k.confrelid, p.attnum, 'SELECT'))
                                        FROM unnest(k.confkey) p (attnum))),
                   'to_itself', k.confrelid IN (SELECT oid FROM self),
                   'period', coalesce((to_jsonb(k) ->> 'conperiod')::bool, false),
                   'definition', pg_get_constraintdef(k.oid)
               ) ORDER BY k.conrelid <> c.oid, k.conname)
          FROM pg_constraint k
          JOIN pg_class rc ON rc.oid = k.confrelid
          JOIN pg_namespace rn ON rn.oid = rc.relnamespace
         WHERE k.contype = 'f'
           AND (k.conrelid = c.oid
                -- A partition's own.
                OR k.conrelid IN (SELECT relid FROM tree) AND k.conparentid = 0)
           AND coalesce((to_jsonb(k) ->> 'conenforced')::bool, true)
           -- A key to a partitioned table has a copy for each of its partitions.
           AND NOT EXISTS (SELECT FROM pg_constraint parent
                            WHERE parent.oid = k.conparentid AND parent.conrelid = k.conrelid)
    ), '[]'),
    'partition_of', (
        SELECT pg_get_partition_constraintdef(c.oid) WHERE c.relispartition
    ),
    'leaves', coalesce((
        SELECT jsonb_agg(jsonb_build_object(
                   'name', format('%I.%I', pn.nspname, p.relname),
                   'kind', p.relkind,
                   'bound', pg_get_partition_constraintdef(p.oid)) ORDER BY p.oid)
          FROM tree JOIN pg_class p ON p.oid = tree.relid JOIN pg_namespace pn ON pn.oid = p.relnamespace
    ), '[]')
) AS document
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = $1
