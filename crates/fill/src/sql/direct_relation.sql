-- $1: qualified name of a table; $2: tables that may be truncated together with it. What it is; asked before a fill is planned, and again within the
-- transaction that fills it. Columns of catalogs that not every release since 13 has are read through to_jsonb.
WITH RECURSIVE closure (oid) AS (
    -- What a TRUNCATE of the table has to name too, and partitions and heirs of that.
    SELECT to_regclass($1)::oid
    UNION
    SELECT next.oid
      FROM closure
     CROSS JOIN LATERAL (
           SELECT coalesce(pg_partition_root(k.conrelid), k.conrelid)
             FROM pg_constraint k WHERE k.confrelid = closure.oid AND k.contype = 'f'
           UNION ALL
           SELECT h.inhrelid FROM pg_inherits h WHERE h.inhparent = closure.oid
           ) next (oid)
), referring AS (
    SELECT closure.oid, EXISTS (SELECT FROM unnest($2::text[]) name WHERE to_regclass(name) = closure.oid) AS is_together
      FROM closure JOIN pg_class t USING (oid)
     WHERE NOT t.relispartition AND closure.oid <> to_regclass($1)
), truncated AS (
    SELECT to_regclass($1)::oid AS oid UNION SELECT oid FROM referring WHERE is_together
    UNION SELECT relid::oid FROM pg_partition_tree(to_regclass($1))
), triggers AS (
    -- Those of users that fire on INSERT (4, catalog/pg_trigger.h). Before 15 a partition's copies of its parent's triggers
    -- are marked as internal.
    SELECT t.tgname::text AS name, t.tgenabled AS enabled
      FROM pg_trigger t
     WHERE t.tgrelid = to_regclass($1) AND t.tgtype & 4 <> 0
       AND (NOT t.tgisinternal
            OR t.tgparentid <> 0
               AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.oid = t.tgconstraint AND k.contype <> 't'))
)
SELECT pg_relation_filepath(c.oid) AS path,
       (SELECT amname::text FROM pg_am WHERE oid = c.relam) AS access_method,
       c.relkind::text AS kind,
       c.relpersistence::text AS persistence,
       c.reltoastrelid <> 0 AS has_toast,
       (SELECT option_value::int FROM pg_options_to_table(c.reloptions) WHERE option_name = 'toast_tuple_target') AS toast_target,
       pg_relation_size(c.oid) AS bytes,
       -- Its row in pg_class is of this transaction: it was created or truncated here.
       coalesce(c.xmin::text::bigint = pg_current_xact_id_if_assigned()::text::bigint % 4294967296, false) AS is_new,
       EXISTS (
           SELECT FROM pg_locks l
            WHERE l.locktype = 'relation' AND l.relation = c.oid AND l.pid = pg_backend_pid() AND l.granted
              AND l.mode = 'AccessExclusiveLock'
              AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       ) AS is_locked,
       coalesce((
           SELECT jsonb_agg(jsonb_build_object(
                      'name', a.attname,
                      'dropped', a.attisdropped,
                      'type_sql', format_type(a.atttypid, a.atttypmod),
                      'base_oid', base.oid::bigint,
                      'base_modifier', base.modifier,
                      'base_sql', format_type(base.oid, base.modifier),
                      'has_domain_checks', base.has_checks,
                      'not_null', a.attnotnull OR base.not_null,
                      'element_oid', base.element::bigint,
                      'enum_labels', ARRAY(
                          SELECT e.enumlabel::text FROM pg_enum e
                           WHERE e.enumtypid = coalesce(base.element, base.oid) ORDER BY e.enumsortorder),
                      'enum_oids', ARRAY(
                          SELECT e.oid::bigint FROM pg_enum e
                           WHERE e.enumtypid = coalesce(base.element, base.oid) ORDER BY e.enumsortorder),
                      -- Of ranges and multiranges whose values are stored as they are given; built-in ones have known forms.
                      'range_subtype', (
                          SELECT r.rngsubtype::bigint FROM pg_range r
                           WHERE coalesce(base.element, base.oid) IN (r.rngtypid, (to_jsonb(r) ->> 'rngmultitypid')::oid)
                             AND (r.rngcanonical = 0 OR r.rngtypid < 16384)),
                      -- A dropped field keeps a place in each value, and has no type.
                      'fields', coalesce((
                          SELECT jsonb_agg(jsonb_build_object(
                                     'oid', f.atttypid::bigint,
                                     'modifier', f.atttypmod,
                                     'enum_labels', ARRAY(SELECT e.enumlabel::text FROM pg_enum e
                                                           WHERE e.enumtypid = f.atttypid ORDER BY e.enumsortorder),
                                     'enum_oids', ARRAY(SELECT e.oid::bigint FROM pg_enum e
                                                         WHERE e.enumtypid = f.atttypid ORDER BY e.enumsortorder)
                                 ) ORDER BY f.attnum)
                            FROM pg_type t JOIN pg_attribute f ON f.attrelid = t.typrelid
                           WHERE t.oid = coalesce(base.element, base.oid) AND f.attnum > 0), '[]'),
                      'length', a.attlen,
                      'align', a.attalign,
                      'storage', a.attstorage,
                      -- Version 14 added other methods of compression than pglz; a build may lack them.
                      'compression', CASE coalesce(nullif(to_jsonb(a) ->> 'attcompression', ''),
                                                   left(current_setting('default_toast_compression', true), 1), 'p')
                                     WHEN 'p' THEN 'pglz'
                                     WHEN 'l' THEN (SELECT 'lz4' FROM pg_settings
                                                     WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals))
                                     END,
                      -- Values of tsquery never have short headers.
                      'has_plain_storage', a.attlen = -1 AND a.attstorage = 'p' AND base.oid <> 'tsquery'::regtype,
                      'generated', nullif(a.attgenerated, ''),
                      'generation', (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d
                                      WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated <> ''),
                      -- In Turkish and Azeri the lower case of I is no i.
                      'folds_ascii', (
                          SELECT concat_ws(' ', CASE co.collprovider WHEN 'd' THEN d.datctype ELSE co.collctype END,
                                     to_jsonb(co) ->> 'colliculocale', to_jsonb(co) ->> 'colllocale',
                                     CASE co.collprovider WHEN 'd' THEN to_jsonb(d) ->> 'daticulocale' END,
                                     CASE co.collprovider WHEN 'd' THEN to_jsonb(d) ->> 'datlocale' END) !~* '(^| )(tr|az)'
                            FROM pg_collation co, pg_database d
                           WHERE co.oid = a.attcollation AND d.datname = current_database())
                  ) ORDER BY a.attnum)
             FROM pg_attribute a
            CROSS JOIN LATERAL (
                  -- Below the domains that the type is made of; a dropped column has no type.
                  WITH RECURSIVE chain (depth, oid, modifier, not_null, has_checks) AS (
                      SELECT 0, a.atttypid, a.atttypmod, false, false
                      UNION ALL
                      SELECT depth + 1, t.typbasetype, t.typtypmod, chain.not_null OR t.typnotnull,
                             chain.has_checks OR EXISTS (
                                 SELECT FROM pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c')
                        FROM chain JOIN pg_type t ON t.oid = chain.oid AND t.typtype = 'd'
                  )
                  SELECT chain.*, CASE WHEN t.typcategory = 'A' THEN t.typelem END AS element
                    FROM chain LEFT JOIN pg_type t ON t.oid = chain.oid ORDER BY depth DESC LIMIT 1
                  ) base
            WHERE a.attrelid = c.oid AND a.attnum > 0
       ), '[]') AS attributes,
       coalesce((
           SELECT jsonb_agg(jsonb_build_object(
                      'name', k.conname, 'expression', pg_get_expr(k.conbin, k.conrelid)) ORDER BY k.conname)
             FROM pg_constraint k
            WHERE k.conrelid = c.oid AND k.contype = 'c'
              AND coalesce((to_jsonb(k) ->> 'conenforced')::bool, true)
       ), '[]') AS checks,
       CASE WHEN c.relispartition THEN pg_get_partition_constraintdef(c.oid) END AS partition_bounds,
       coalesce((
           SELECT jsonb_agg(jsonb_build_object(
                      'name', k.conname,
                      -- As the server's own checks read it (ri_triggers.c).
                      'referenced', format('%s%I.%I', CASE WHEN r.relkind = 'p' THEN '' ELSE 'ONLY ' END, n.nspname, r.relname),
                      'referenced_rows', CASE WHEN r.reltuples >= 0 THEN r.reltuples::bigint END,
                      'is_self', r.oid = c.oid,
                      'is_inherited', EXISTS (
                          SELECT FROM pg_constraint parent
                           WHERE parent.oid = k.conparentid AND parent.conrelid <> k.conrelid
                             AND coalesce((to_jsonb(parent) ->> 'conenforced')::bool, true)),
                      'is_circular', EXISTS (SELECT FROM referring WHERE referring.oid = coalesce(pg_partition_root(r.oid), r.oid)),
                      'may_prove', has_table_privilege(r.oid, 'SELECT') AND NOT row_security_active(r.oid)
                          -- What a SHARE lock wants.
                          AND (has_table_privilege(r.oid, 'UPDATE') OR has_table_privilege(r.oid, 'DELETE')
                               OR has_table_privilege(r.oid, 'TRUNCATE')),
                      'match_full', k.confmatchtype = 'f',
                      'has_period', coalesce((to_jsonb(k) ->> 'conperiod')::bool, false),
                      'columns', (
                          SELECT jsonb_agg(jsonb_build_object(
                                     'name', fa.attname,
                                     'referenced', ra.attname,
                                     'equal', format('r.%I OPERATOR(%I.%s) f.%I%s', ra.attname, opn.nspname, o.oprname, fa.attname,
                                         -- The referenced column's collation decides.
                                         (SELECT format(' COLLATE %I.%I', cn.nspname, co.collname)
                                            FROM pg_collation co JOIN pg_namespace cn ON cn.oid = co.collnamespace
                                           WHERE co.oid = ra.attcollation AND ra.attcollation <> fa.attcollation)),
                                     'is_integer', ra.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
                                         AND fa.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
                                 ) ORDER BY p.position)
                            FROM unnest(k.conkey, k.confkey, k.conpfeqop) WITH ORDINALITY
                                     p (attnum, referenced, operator, position)
                            JOIN pg_attribute fa ON (fa.attrelid, fa.attnum) = (k.conrelid, p.attnum)
                            JOIN pg_attribute ra ON (ra.attrelid, ra.attnum) = (k.confrelid, p.referenced)
                            JOIN pg_operator o ON o.oid = p.operator
                            JOIN pg_namespace opn ON opn.oid = o.oprnamespace)
                  ) ORDER BY k.conname)
             FROM pg_constraint k
             JOIN pg_class r ON r.oid = k.confrelid
             JOIN pg_namespace n ON n.oid = r.relnamespace
            WHERE k.conrelid = c.oid AND k.contype = 'f'
              AND coalesce((to_jsonb(k) ->> 'conenforced')::bool, true)
              -- A key to a partitioned table has a copy for each of its partitions.
              AND NOT EXISTS (SELECT FROM pg_constraint parent
                               WHERE parent.oid = k.conparentid AND parent.conrelid = k.conrelid)
       ), '[]') AS foreign_keys,
       ARRAY(SELECT name FROM triggers WHERE enabled IN ('O', 'A') ORDER BY name) AS triggers,
       ARRAY(SELECT name FROM triggers WHERE enabled = 'A' ORDER BY name) AS always_triggers,
       ARRAY(SELECT name FROM triggers WHERE enabled = 'R' ORDER BY name) AS replica_triggers,
       ARRAY(
           SELECT k.conname::text FROM pg_constraint k
            WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'x') AND k.condeferrable
            ORDER BY k.conname
       ) AS deferrable_keys,
       -- What is in the way of a TRUNCATE.
       ARRAY(
           SELECT t.tgname::text FROM pg_trigger t JOIN truncated ON truncated.oid = t.tgrelid
            -- 32: fires on TRUNCATE.
            WHERE NOT t.tgisinternal AND t.tgtype & 32 <> 0 AND t.tgenabled IN ('O', 'A')
            ORDER BY t.tgname
       ) AS truncate_triggers,
       ARRAY(
           SELECT referring.oid::regclass::text FROM referring WHERE NOT is_together ORDER BY 1
       ) AS referenced_by,
       ARRAY(
           SELECT format('%I.%I', n.nspname, t.relname)
             FROM referring JOIN pg_class t ON t.oid = referring.oid JOIN pg_namespace n ON n.oid = t.relnamespace
            WHERE is_together ORDER BY t.oid
       ) AS truncated_with,
       EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid) AS has_children,
       (SELECT bool_and(has_table_privilege(oid, 'TRUNCATE')) FROM truncated) AS may_truncate,
       (SELECT bool_and(has_table_privilege(oid, 'SELECT')) FROM truncated) AS may_select,
       pg_has_role(c.relowner, 'USAGE')
           -- A privilege of its own since 17.
           OR CASE WHEN current_setting('server_version_num')::int >= 170000
                   THEN has_table_privilege(c.oid, 'MAINTAIN') END IS TRUE AS may_reindex,
       current_setting('server_version_num')::int >= 170000 AS has_maintain,
       (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_namespace n WHERE n.oid = c.relnamespace) AS shown,
       quote_ident(current_user) AS role
  FROM pg_class c
 WHERE c.oid = to_regclass($1)
