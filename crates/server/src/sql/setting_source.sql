-- $1: a setting's name. Its value, whether that is pgrig's, and how to remove another value.
SELECT current_setting(name) AS value,
       coalesce(sourcefile LIKE '%/pgrig.conf', false) AND NOT pending_restart AS from_pgrig_conf,
       CASE source
           WHEN 'database' THEN format('run ALTER DATABASE %I RESET %s', current_database(), name)
           WHEN 'user' THEN format('run ALTER ROLE %I RESET %s', session_user, name)
           WHEN 'database user'
               THEN format('run ALTER ROLE %I IN DATABASE %I RESET %s', session_user, current_database(), name)
           WHEN 'global' THEN format('run ALTER ROLE ALL RESET %s', name)
           WHEN 'client' THEN format('leave %s out of PGOPTIONS and the connection string', name)
           WHEN 'configuration file' THEN
               CASE WHEN sourcefile LIKE '%/postgresql.auto.conf' THEN format('run ALTER SYSTEM RESET %s', name)
                    ELSE format('remove it from %s', coalesce(sourcefile, 'the server''s configuration files')) END
           WHEN 'command line' THEN format('start the server without %s on its command line', name)
           WHEN 'environment variable' THEN 'start the server without the environment variable that sets it'
           ELSE format('remove it (its source: %s)', source)
       END AS remedy
  FROM pg_settings
 WHERE name = $1
