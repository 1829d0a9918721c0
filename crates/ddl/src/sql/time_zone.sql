-- The session's time zone, and whether the user has asked for it: by --set, which pgrig writes into pgrig.conf, or by PGTZ.
SELECT setting AS zone, source = 'client' OR coalesce(sourcefile LIKE '%pgrig.conf', false) AS is_given
  FROM pg_catalog.pg_settings
 WHERE name = 'TimeZone'
