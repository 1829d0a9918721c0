-- In force in this session, and in others that are opened like it: PGOPTIONS and settings of role and database as well.
-- The two names that are left out are those that pgrig sends itself.
-- Of shell commands and connection strings, only whether they are set: they may contain passwords.
SELECT name,
       CASE WHEN (name = 'primary_conninfo' OR name LIKE '%\_command') AND current_setting(name, true) <> '' THEN '(set)'
            ELSE current_setting(name, true) END AS value,
       source
  FROM pg_settings
 WHERE source NOT IN ('default', 'override')
   AND NOT (source IN ('client', 'session') AND name IN ('application_name', 'client_encoding'))
   AND current_setting(name, true) IS NOT NULL
 ORDER BY name
