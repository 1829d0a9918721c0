SELECT current_setting('server_version') AS version,
       current_setting('is_superuser') = 'on' AS is_superuser,
       ARRAY(SELECT datname::text FROM pg_database WHERE datallowconn ORDER BY 1) AS databases
