-- $1: qualified name of a table or index. What it is; asked before a fill is planned, and again within the
-- transaction that fills it. Columns of catalogs that not every release since 13 has are read through to_jsonb.
SELECT pg_relation_filepath(c.oid) AS path,
       (SELECT amname::text FROM pg_am WHERE oid = c.relam) AS access_method,
       c.relkind::text AS kind,
       c.relpersistence::text AS persistence,
       c.reltoastrelid <> 0 AS has_toast,
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
                      'has_plain_storage', a.attlen = -1 AND a.attstorage = 'p'
                  ) ORDER BY a.attnum)
             FROM pg_attribute a
            CROSS JOIN LATERAL (
                  -- Below the domains that the type is made of.
                  WITH RECURSIVE chain (depth, oid, modifier, not_null, has_checks) AS (
                      SELECT 0, a.atttypid, a.atttypmod, false, false
                      UNION ALL
                      SELECT depth + 1, t.typbasetype, t.typtypmod, chain.not_null OR t.typnotnull,
                             chain.has_checks OR EXISTS (
                                 SELECT FROM pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c')
                        FROM chain JOIN pg_type t ON t.oid = chain.oid AND t.typtype = 'd'
                  )
                  SELECT * FROM chain ORDER BY depth DESC LIMIT 1
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
       ARRAY(
           SELECT k.conname::text FROM pg_constraint k
            WHERE k.conrelid = c.oid AND k.contype = 'f'
              AND coalesce((to_jsonb(k) ->> 'conenforced')::bool, true)
            ORDER BY k.conname
       ) AS foreign_keys,
       ARRAY(
           SELECT t.tgname::text FROM pg_trigger t
            -- 4: fires on INSERT (catalog/pg_trigger.h).
            WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 4 <> 0 AND t.tgenabled IN ('O', 'A')
            ORDER BY t.tgname
       ) AS triggers,
       -- What is in the way of a TRUNCATE.
       ARRAY(
           SELECT t.tgname::text FROM pg_trigger t
            -- 32: fires on TRUNCATE.
            WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 32 <> 0 AND t.tgenabled IN ('O', 'A')
            ORDER BY t.tgname
       ) AS truncate_triggers,
       ARRAY(
           SELECT DISTINCT k.conrelid::regclass::text FROM pg_constraint k
            WHERE k.confrelid = c.oid AND k.contype = 'f' AND k.conrelid <> c.oid
            ORDER BY 1
       ) AS referenced_by,
       EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid) AS has_children,
       has_table_privilege(c.oid, 'TRUNCATE') AS may_truncate,
       has_table_privilege(c.oid, 'SELECT') AS may_select,
       pg_has_role(c.relowner, 'USAGE')
           -- A privilege of its own since 17.
           OR CASE WHEN current_setting('server_version_num')::int >= 170000
                   THEN has_table_privilege(c.oid, 'MAINTAIN') END IS TRUE AS may_reindex
  FROM pg_class c
 WHERE c.oid = to_regclass($1)
