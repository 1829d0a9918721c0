-- In force in this session, and in others that are opened like it: PGOPTIONS and settings of role and database as well.
-- The two names that are left out are those that pgrig sends itself.
SELECT name, current_setting(name, true) AS value, source
  FROM pg_settings
 WHERE source NOT IN ('default', 'override')
   AND NOT (source IN ('client', 'session') AND name IN ('application_name', 'client_encoding'))
   AND current_setting(name, true) IS NOT NULL
 ORDER BY name
