-- $1: names of settings. Those that this server knows, with their values in this session in SHOW's spelling, and whether the role may set them.
SELECT name,
       current_setting(name) AS value,
       context = 'user' OR (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) AS may_set
  FROM pg_catalog.pg_settings
 WHERE name = ANY ($1)
 ORDER BY name
