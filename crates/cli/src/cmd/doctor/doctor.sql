-- The rights of this session's role that verbs depend on.
WITH own_tables AS (
       SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')
SELECT r.rolsuper AS is_superuser,
       r.rolsuper OR r.rolcreatedb AS may_create_databases,
       has_database_privilege(current_database(), 'CREATE') AS may_create_schemas,
       EXISTS (SELECT FROM pg_namespace n
                WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
                  AND has_schema_privilege(n.oid, 'CREATE')) AS may_create_tables,
       EXISTS (SELECT FROM pg_namespace n
                WHERE n.nspname = 'pgrig_blockio' AND has_schema_privilege(n.oid, 'CREATE')) AS has_blockio_schema,
       (SELECT quote_ident(min(n.nspname)) FROM pg_namespace n
         WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
           AND has_schema_privilege(n.oid, 'CREATE')) AS a_schema,
       pg_has_role(current_user, 'pg_monitor', 'USAGE') AS may_monitor,
       -- The role pg_checkpoint and privileges on settings exist from PostgreSQL 15 on.
       r.rolsuper OR EXISTS (SELECT FROM pg_roles p
                              WHERE p.rolname = 'pg_checkpoint' AND pg_has_role(p.oid, 'USAGE')) AS may_checkpoint,
       current_setting('server_version_num')::int >= 150000 AS can_grant_settings,
       (SELECT count(*) FROM own_tables) AS tables,
       (SELECT count(*) FROM own_tables WHERE NOT has_any_column_privilege(oid, 'SELECT')) AS unreadable_tables,
       -- Of the tables of a model.
       ARRAY(SELECT DISTINCT quote_ident(n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
                AND n.nspname !~ '^(pg_|pgrig($|_))' AND n.nspname <> 'information_schema'
                AND NOT has_schema_privilege(n.oid, 'USAGE')
                AND NOT EXISTS (SELECT FROM pg_depend d
                                 WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
              ORDER BY 1) AS closed_schemas
  FROM pg_roles r
 WHERE r.rolname = current_user
