SELECT current_user::text AS role,
       current_database()::text AS database,
       current_setting('server_version_num')::int AS version_num,
       r.rolsuper AS superuser,
       -- From PostgreSQL 17 on; elsewhere always possible.
       coalesce(current_setting('allow_alter_system', true)::bool, true) AS allowed,
       has_function_privilege('pg_reload_conf()', 'EXECUTE') AS may_reload,
       has_table_privilege('pg_file_settings', 'SELECT')
           AND has_function_privilege('pg_show_all_file_settings()', 'EXECUTE') AS sees_files,
       pg_has_role('pg_read_all_settings', 'USAGE') AS sees_sources
  FROM pg_roles r
 WHERE r.rolname = current_user
