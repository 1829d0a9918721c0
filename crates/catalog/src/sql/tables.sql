-- $1: OIDs of relations. The catalogs' description of each, in their order, as a document: catalog::TableInfo without the types
-- of columns, which types.sql has. NULL for a relation that is not there.
-- Columns of catalogs that not every release since 13 has are read through to_jsonb.
WITH asked AS MATERIALIZED (
    SELECT DISTINCT a.oid FROM unnest($1::oid[]) AS a (oid)
), tree AS MATERIALIZED (
    -- The partitions that hold rows. pg_partition_tree is empty for what neither is partitioned nor a partition.
    SELECT asked.oid AS relation, p.relid::oid AS oid
      FROM asked CROSS JOIN LATERAL pg_partition_tree(asked.oid) p
     WHERE p.isleaf AND p.relid <> asked.oid
), parts AS MATERIALIZED (
    -- The relation itself, and the partitions that hold rows.
    SELECT oid AS relation, oid FROM asked
    UNION ALL
    SELECT relation, oid FROM tree
), self AS MATERIALIZED (
    -- The relation and those it is a partition of.
    SELECT oid AS relation, oid FROM asked
    UNION
    SELECT asked.oid, p.relid::oid FROM asked CROSS JOIN LATERAL pg_partition_ancestors(asked.oid) p (relid)
), trigger_facts AS (
    SELECT t.tgrelid AS relation, jsonb_agg(t.tgname ORDER BY t.tgname) AS facts
      FROM asked JOIN pg_trigger t ON t.tgrelid = asked.oid
     -- 4: fires on INSERT (catalog/pg_trigger.h).
     WHERE NOT t.tgisinternal AND t.tgtype & 4 <> 0 AND t.tgenabled IN ('O', 'A')
     GROUP BY t.tgrelid
), column_facts AS (
    SELECT a.attrelid AS relation, jsonb_agg(jsonb_build_object(
               'name', a.attname,
               'number', a.attnum,
               'type_oid', a.atttypid::bigint,
               'type_sql', format_type(a.atttypid, a.atttypmod),
               'collation', (SELECT format('%I.%I', cn.nspname, co.collname)
                               FROM pg_collation co JOIN pg_namespace cn ON cn.oid = co.collnamespace
                              WHERE co.oid = a.attcollation AND co.collname <> 'default'),
               -- A row may come into any partition, also into one that alone refuses NULL.
               'not_null', a.attnotnull OR EXISTS (
                   SELECT FROM tree JOIN pg_attribute l ON l.attrelid = tree.oid
                    WHERE tree.relation = a.attrelid AND l.attname = a.attname AND l.attnotnull),
               'may_insert', has_column_privilege(a.attrelid, a.attnum, 'INSERT'),
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
                      -- Conditions come in no certain order, and this one fails for a relation that is no sequence.
                      AND CASE WHEN s.relkind = 'S'
                               THEN has_sequence_privilege(s.oid, 'SELECT') AND has_sequence_privilege(s.oid, 'UPDATE')
                          END
                    LIMIT 1)
           ) ORDER BY a.attnum) AS facts
      FROM asked JOIN pg_attribute a ON a.attrelid = asked.oid
      LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
     WHERE a.attnum > 0 AND NOT a.attisdropped
     GROUP BY a.attrelid
), check_facts AS (
    SELECT k.conrelid AS relation, jsonb_agg(jsonb_build_object(
               'name', k.conname, 'expression', pg_get_expr(k.conbin, k.conrelid)) ORDER BY k.conname) AS facts
      FROM asked JOIN pg_constraint k ON k.conrelid = asked.oid JOIN pg_class c ON c.oid = k.conrelid
     WHERE k.contype = 'c'
       AND coalesce((to_jsonb(k) ->> 'conenforced')::bool, true)
       -- A partitioned table's NO INHERIT constraint holds for no row.
       AND NOT (k.connoinherit AND c.relkind = 'p')
     GROUP BY k.conrelid
), key_facts AS (
    SELECT parts.relation, jsonb_agg(jsonb_build_object(
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
           ) ORDER BY i.indrelid <> parts.relation, NOT i.indisprimary, x.relname, x.oid) AS facts
      FROM parts
      JOIN pg_index i ON i.indrelid = parts.oid
      JOIN pg_class x ON x.oid = i.indexrelid
      JOIN pg_class t ON t.oid = i.indrelid
      JOIN pg_namespace tn ON tn.oid = t.relnamespace
      LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')
     WHERE (i.indisunique OR i.indisexclusion) AND i.indislive
       -- Of a partition only its own.
       AND (parts.oid = parts.relation
            OR NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid))
     GROUP BY parts.relation
), expression_facts AS (
    -- Of indexes that are no keys. A partial index has no expressions of other rows.
    SELECT parts.relation, jsonb_agg(jsonb_build_object(
               'name', x.relname,
               'expression', CASE WHEN i.indpred IS NULL THEN pg_get_indexdef(i.indexrelid, e, true)
                                  ELSE format('CASE WHEN %s THEN %s END', pg_get_expr(i.indpred, i.indrelid),
                                              pg_get_indexdef(i.indexrelid, e, true)) END
           ) ORDER BY x.relname, x.oid, e) AS facts
      FROM parts
      JOIN pg_index i ON i.indrelid = parts.oid
      JOIN pg_class x ON x.oid = i.indexrelid
     CROSS JOIN LATERAL generate_series(1, i.indnkeyatts) e
     WHERE NOT i.indisunique AND NOT i.indisexclusion AND i.indislive AND i.indkey[e - 1] = 0
       -- Of a partition only its own.
       AND (parts.oid = parts.relation
            OR NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid))
     GROUP BY parts.relation
), foreign_key_facts AS (
    SELECT parts.relation, jsonb_agg(jsonb_build_object(
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
               'to_itself', self.oid IS NOT NULL,
               'period', coalesce((to_jsonb(k) ->> 'conperiod')::bool, false),
               'definition', pg_get_constraintdef(k.oid)
           ) ORDER BY k.conrelid <> parts.relation, k.conname, k.oid) AS facts
      FROM parts
      JOIN pg_constraint k ON k.conrelid = parts.oid
      JOIN pg_class rc ON rc.oid = k.confrelid
      JOIN pg_namespace rn ON rn.oid = rc.relnamespace
      LEFT JOIN self ON (self.relation, self.oid) = (parts.relation, k.confrelid)
     WHERE k.contype = 'f'
       -- Of a partition only its own.
       AND (parts.oid = parts.relation OR k.conparentid = 0)
       AND coalesce((to_jsonb(k) ->> 'conenforced')::bool, true)
       -- A key to a partitioned table has a copy for each of its partitions.
       AND NOT EXISTS (SELECT FROM pg_constraint parent
                        WHERE parent.oid = k.conparentid AND parent.conrelid = k.conrelid)
     GROUP BY parts.relation
), leaf_facts AS (
    SELECT tree.relation, jsonb_agg(jsonb_build_object(
               'name', format('%I.%I', pn.nspname, p.relname),
               'kind', p.relkind,
               'bound', pg_get_partition_constraintdef(p.oid),
               -- Only those that the table does not have: a partition has the table's under the same names.
               'checks', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                              'name', k.conname, 'expression', pg_get_expr(k.conbin, k.conrelid)) ORDER BY k.conname), '[]')
                            FROM pg_constraint k
                           WHERE k.conrelid = p.oid AND k.contype = 'c'
                             AND coalesce((to_jsonb(k) ->> 'conenforced')::bool, true)
                             AND NOT EXISTS (SELECT FROM pg_constraint t
                                              WHERE t.conrelid = tree.relation AND t.contype = 'c'
                                                AND t.conname = k.conname AND NOT t.connoinherit
                                                AND coalesce((to_jsonb(t) ->> 'conenforced')::bool, true)))
               ) ORDER BY p.oid) AS facts
      FROM tree JOIN pg_class p ON p.oid = tree.oid JOIN pg_namespace pn ON pn.oid = p.relnamespace
     GROUP BY tree.relation
)
SELECT CASE WHEN c.oid IS NOT NULL THEN jsonb_build_object(
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
           'triggers', coalesce(trigger_facts.facts, '[]'),
           'columns', coalesce(column_facts.facts, '[]'),
           'checks', coalesce(check_facts.facts, '[]'),
           'keys', coalesce(key_facts.facts, '[]'),
           'expressions', coalesce(expression_facts.facts, '[]'),
           'foreign_keys', coalesce(foreign_key_facts.facts, '[]'),
           'partition_of', CASE WHEN c.relispartition THEN pg_get_partition_constraintdef(c.oid) END,
           'leaves', coalesce(leaf_facts.facts, '[]')
       ) END AS document
  FROM unnest($1::oid[]) WITH ORDINALITY AS a (oid, place)
  LEFT JOIN pg_class c ON c.oid = a.oid
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN trigger_facts ON trigger_facts.relation = c.oid
  LEFT JOIN column_facts ON column_facts.relation = c.oid
  LEFT JOIN check_facts ON check_facts.relation = c.oid
  LEFT JOIN key_facts ON key_facts.relation = c.oid
  LEFT JOIN expression_facts ON expression_facts.relation = c.oid
  LEFT JOIN foreign_key_facts ON foreign_key_facts.relation = c.oid
  LEFT JOIN leaf_facts ON leaf_facts.relation = c.oid
 ORDER BY a.place
