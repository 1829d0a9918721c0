-- The triggers of users that run, with the statements that disable and enable them. Event triggers of extensions are left out. Before 15 a partition's copies of its parent's triggers are marked as internal, and only a
-- superuser may disable them.
SELECT is_of_events, statement, name, shown, enabled, may_disable
  FROM (SELECT true AS is_of_events, e.oid AS of_table, e.oid,
               'ALTER EVENT TRIGGER ' || pg_catalog.quote_ident(e.evtname) AS statement,
               '' AS name,
               'event trigger ' || e.evtname AS shown,
               e.evtenabled::text AS enabled,
               pg_catalog.pg_has_role(e.evtowner, 'USAGE') AS may_disable
          FROM pg_catalog.pg_event_trigger e
         WHERE e.evtenabled <> 'D'
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                            WHERE d.classid = 'pg_catalog.pg_event_trigger'::pg_catalog.regclass AND d.objid = e.oid AND d.deptype = 'e')
        UNION ALL
        SELECT false, c.oid, t.oid,
               pg_catalog.format('ALTER TABLE ONLY %I.%I', n.nspname, c.relname),
               pg_catalog.format(' TRIGGER %I', t.tgname),
               pg_catalog.format('%s on %s.%s', t.tgname, n.nspname, c.relname),
               t.tgenabled::text,
               NOT t.tgisinternal OR (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
          FROM pg_catalog.pg_trigger t
          JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p') AND c.oid >= 16384 AND t.tgenabled <> 'D'
           AND (NOT t.tgisinternal
                OR t.tgparentid <> 0
                   AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.oid = t.tgconstraint AND k.contype <> 't'))) AS triggers
 ORDER BY of_table, oid
