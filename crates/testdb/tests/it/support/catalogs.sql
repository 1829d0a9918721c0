-- What makes a database's schema, by name: one line for each thing. Persistence stands in lines of its own.
WITH class AS (
    SELECT c.*, c.oid::regclass::text AS shown
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relpersistence <> 't'
)
SELECT 'persistence ' || shown AS what, relpersistence::text AS value FROM class
UNION ALL
SELECT 'class ' || shown,
       format('%s %s %s %s %s %s %s %s %s %s', relkind, relowner::regrole, reloptions, relacl, relreplident,
              relrowsecurity, relhasindex, relispartition, pg_get_expr(relpartbound, oid),
              pg_get_partkeydef(oid))
  FROM class
UNION ALL
SELECT 'toast of ' || shown, (reltoastrelid <> 0)::text FROM class
UNION ALL
SELECT 'column ' || c.shown || '.' || a.attname,
       format('%s %s %s %s %s %s %s %s %s %s %s %s', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull,
              a.attidentity, a.attgenerated, a.attstorage, a.attstattarget, a.attcollation::regcollation, a.attacl,
              a.attisdropped, pg_get_expr(d.adbin, d.adrelid), a.attinhcount)
  FROM class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
UNION ALL
SELECT 'index ' || c.shown,
       format('%s %s %s %s %s %s', pg_get_indexdef(i.indexrelid), i.indisclustered, i.indisreplident, i.indisvalid,
              i.indisprimary, i.indisunique)
  FROM class c JOIN pg_index i ON i.indexrelid = c.oid
UNION ALL
SELECT format('constraint %s of %s', k.conname, k.conrelid::regclass),
       format('%s %s %s %s %s %s %s %s %s', pg_get_constraintdef(k.oid), k.contype, k.condeferrable, k.condeferred,
              k.convalidated, k.confrelid::regclass, k.conindid::regclass, k.coninhcount, k.conislocal)
  FROM pg_constraint k JOIN class c ON c.oid = k.conrelid
UNION ALL
SELECT format('trigger %s of %s', t.tgname, c.shown), pg_get_triggerdef(t.oid) || t.tgenabled::text
  FROM pg_trigger t JOIN class c ON c.oid = t.tgrelid
 WHERE NOT t.tgisinternal
UNION ALL
SELECT format('internal triggers of %s', c.shown),
       string_agg(format('%s %s %s %s %s %s', t.tgfoid::regproc, t.tgtype, t.tgenabled, t.tgdeferrable,
                         t.tginitdeferred, k.conname), ', '
                  ORDER BY k.conname, t.tgfoid::regproc::text, t.tgtype, t.tgconstrrelid::regclass::text)
  FROM pg_trigger t JOIN class c ON c.oid = t.tgrelid JOIN pg_constraint k ON k.oid = t.tgconstraint
 WHERE t.tgisinternal
 GROUP BY c.shown
UNION ALL
SELECT format('comment on %s', pg_describe_object(classoid, objoid, objsubid)), description
  FROM pg_description
 WHERE objoid >= 16384
UNION ALL
SELECT 'inherits ' || inhrelid::regclass, format('%s %s', inhparent::regclass, inhseqno) FROM pg_inherits
UNION ALL
SELECT 'sequence ' || seqrelid::regclass,
       format('%s %s %s %s %s', s.seqstart, s.seqincrement, s.seqmax, s.seqcycle, p.last_value)
  FROM pg_sequence s
  JOIN class c ON c.oid = s.seqrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_sequences p ON p.schemaname = n.nspname AND p.sequencename = c.relname
UNION ALL
SELECT 'view ' || c.shown, pg_get_viewdef(c.oid) FROM class c WHERE c.relkind IN ('v', 'm')
UNION ALL
SELECT 'rule ' || r.rulename || c.shown, pg_get_ruledef(r.oid)
  FROM pg_rewrite r JOIN class c ON c.oid = r.ev_class
UNION ALL
SELECT 'policy ' || polname, format('%s %s', polrelid::regclass, pg_get_expr(polqual, polrelid)) FROM pg_policy
UNION ALL
SELECT 'statistics ' || stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext
UNION ALL
SELECT 'owned ' || pg_describe_object(classid, objid, objsubid),
       format('%s %s', pg_describe_object(refclassid, refobjid, refobjsubid), deptype)
  FROM pg_depend
 WHERE deptype IN ('a', 'i', 'e') AND classid = 'pg_class'::regclass AND objid >= 16384
   AND (SELECT relkind FROM pg_class WHERE oid = objid) IN ('S', 'r')
UNION ALL
SELECT 'function ' || oid::regprocedure, pg_get_functiondef(oid)
  FROM pg_proc
 WHERE oid >= 16384 AND prokind = 'f'
UNION ALL
SELECT 'type ' || oid::regtype, format('%s %s', typtype, typbasetype::regtype)
  FROM pg_type
 WHERE oid >= 16384 AND typnamespace <> 'pg_toast'::regnamespace
ORDER BY 1, 2
