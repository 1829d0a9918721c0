-- Sequences, also those of identity columns, as far as they are dumped: those of extensions are not, nor those of tables of extensions
-- (pg_dump.c: getOwnedSeqs). A base backup has no values of unlogged ones, and a standby cannot read them. `file` changes with each
-- ALTER SEQUENCE and TRUNCATE … RESTART IDENTITY. `drawn`: a materialized view may draw values when it is refreshed.
SELECT c.oid,
       n.nspname::text AS schema,
       c.relname::text AS name,
       pg_relation_filenode(c.oid) AS file,
       s.seqincrement AS increment,
       s.seqcycle AS cycles,
       c.relpersistence = 'p' AS logged,
       NOT (c.relpersistence = 'u' AND pg_is_in_recovery()) AS readable,
       coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), false) AS permitted,
       EXISTS (SELECT FROM pg_depend d
                 JOIN pg_rewrite r ON r.oid = d.objid
                 JOIN pg_class v ON v.oid = r.ev_class
                WHERE d.classid = 'pg_rewrite'::regclass
                  AND d.refclassid = 'pg_class'::regclass
                  AND d.refobjid = c.oid
                  AND v.relkind = 'm') AS drawn
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_sequence s ON s.seqrelid = c.oid
 WHERE c.relkind = 'S'
   AND c.relpersistence <> 't'
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass
                      AND d.deptype = 'e'
                      AND (d.objid = c.oid
                           OR d.objid IN (SELECT o.refobjid FROM pg_depend o
                                           WHERE o.classid = 'pg_class'::regclass
                                             AND o.objid = c.oid
                                             AND o.refclassid = 'pg_class'::regclass
                                             AND o.deptype IN ('a', 'i'))))
 ORDER BY 2, 3
