-- All that a database's catalogs say of its objects, by their names and without their persistence: a line each.
WITH class AS (
    SELECT oid, oid::regclass::text AS name, relkind, relispartition, relrowsecurity, relreplident, reloptions, reltype,
           pg_get_expr(relpartbound, oid) AS bound, pg_get_partkeydef(oid) AS key, obj_description(oid, 'pg_class') AS comment
    FROM pg_class
    WHERE relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema') AND relnamespace::regnamespace::text !~ '^pg_'
)
SELECT concat_ws('|', 'class', name, relkind, relispartition, relrowsecurity, relreplident, reloptions, bound, key, comment) FROM class
UNION ALL
SELECT concat_ws('|', 'attribute', name, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
                 attislocal, attinhcount, attisdropped, pg_get_expr(adbin, adrelid))
FROM class JOIN pg_attribute ON attrelid = class.oid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attnum > 0 AND relkind <> 'S'
UNION ALL
SELECT concat_ws('|', 'constraint', conname, conrelid::regclass, contypid::regtype, contype, condeferrable, condeferred, convalidated,
                 conislocal, pg_get_constraintdef(oid))
FROM pg_constraint WHERE connamespace::regnamespace::text !~ '^(pg_|information_schema)'
UNION ALL
SELECT concat_ws('|', 'index', pg_get_indexdef(indexrelid), indisprimary, indisvalid, indisreplident)
FROM class JOIN pg_index ON indrelid = class.oid
UNION ALL
SELECT concat_ws('|', 'inherits', inhrelid::regclass, inhparent::regclass, inhseqno) FROM pg_inherits
UNION ALL
SELECT concat_ws('|', 'function', pg_get_functiondef(oid)) FROM pg_proc
WHERE pronamespace::regnamespace::text IN ('app', 'public', '"Größe"')
UNION ALL
SELECT concat_ws('|', 'trigger', pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT concat_ws('|', 'internal trigger', tgrelid::regclass, tgfoid::regproc, count(*)) FROM pg_trigger WHERE tgisinternal
GROUP BY tgrelid, tgfoid
UNION ALL
SELECT concat_ws('|', 'rule', ev_class::regclass, pg_get_ruledef(pg_rewrite.oid)) FROM pg_rewrite JOIN class ON class.oid = ev_class
UNION ALL
SELECT concat_ws('|', 'policy', polrelid::regclass, polname, pg_get_expr(polqual, polrelid)) FROM pg_policy
UNION ALL
SELECT concat_ws('|', 'type', oid::regtype, typtype, typnotnull, typdefault) FROM pg_type
WHERE typnamespace::regnamespace::text IN ('app', 'public', '"Größe"')
UNION ALL
SELECT concat_ws('|', 'enum', enumtypid::regtype, row_number() OVER (PARTITION BY enumtypid ORDER BY enumsortorder), enumlabel) FROM pg_enum
UNION ALL
SELECT concat_ws('|', 'sequence', seqrelid::regclass, format_type(seqtypid, NULL), seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle)
FROM pg_sequence
UNION ALL
SELECT concat_ws('|', 'owner', objid::regclass, refobjid::regclass, refobjsubid, deptype) FROM pg_depend
WHERE classid = 'pg_class'::regclass AND deptype IN ('a', 'i') AND objid IN (SELECT oid FROM class WHERE relkind = 'S')
UNION ALL
SELECT concat_ws('|', 'publication', pubname, puballtables, pubinsert, pubupdate, pubviaroot) FROM pg_publication
UNION ALL
SELECT concat_ws('|', 'published', pubname, prrelid::regclass) FROM pg_publication_rel JOIN pg_publication ON prpubid = pg_publication.oid
UNION ALL
SELECT concat_ws('|', 'statistics', pg_get_statisticsobjdef(oid)) FROM pg_statistic_ext
UNION ALL
SELECT concat_ws('|', 'operator', oid::regoperator, oprcode) FROM pg_operator WHERE oprnamespace = 'app'::regnamespace
UNION ALL
SELECT concat_ws('|', 'large object', oid, lo_get(oid), obj_description(oid, 'pg_largeobject')) FROM pg_largeobject_metadata
ORDER BY 1
