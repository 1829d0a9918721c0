-- $1: names of settings. Those that this server knows, with their values in this session in SHOW's spelling, the way in which they are set, and
-- whether the role is a superuser.
SELECT name, current_setting(name) AS value, context,
       (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) AS is_superuser
  FROM pg_catalog.pg_settings
 WHERE name = ANY ($1)
 ORDER BY name
