-- The triggers of users that run, with the statement that changes them. Before 15 a partition's copies of its parent's triggers are marked as
-- internal, and only a superuser may disable them.
SELECT pg_catalog.format('ALTER TABLE ONLY %I.%I', n.nspname, c.relname) AS statement,
       pg_catalog.format('%I', t.tgname) AS name,
       pg_catalog.format('%s on %s.%s', t.tgname, n.nspname, c.relname) AS shown,
       t.tgenabled::text AS enabled,
       NOT t.tgisinternal OR (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) AS may_disable
  FROM pg_catalog.pg_trigger t
  JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND c.oid >= 16384 AND t.tgenabled <> 'D'
   AND (NOT t.tgisinternal
        OR t.tgparentid <> 0
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.oid = t.tgconstraint AND k.contype <> 't'))
 ORDER BY c.oid, t.oid
