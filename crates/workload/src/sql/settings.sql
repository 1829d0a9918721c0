SELECT name, current_setting(name, true) AS value, source
  FROM pg_settings
 WHERE source NOT IN ('default', 'override', 'client', 'session')
   AND current_setting(name, true) IS NOT NULL
 ORDER BY name
