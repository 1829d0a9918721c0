SELECT current_setting(name) AS value,
       coalesce(sourcefile LIKE '%/pgrig.conf', false) AND NOT pending_restart AS from_pgrig_conf
  FROM pg_settings
 WHERE name = $1
