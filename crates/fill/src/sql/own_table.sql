-- $1: a table's oid. What a fill needs of it beside its constraints.
SELECT n.nspname::text AS schema,
       current_user::text AS role,
       has_schema_privilege(n.oid, 'CREATE') AS may_create_tables,
       pg_has_role(c.relowner, 'USAGE')
           OR (SELECT pg_has_role(d.datdba, 'USAGE') FROM pg_database d WHERE d.datname = current_database())
           -- A privilege of its own since 17.
           OR CASE WHEN current_setting('server_version_num')::int >= 170000
                   THEN has_table_privilege(c.oid, 'MAINTAIN') END IS TRUE AS may_vacuum
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = $1::oid
