-- $1: names of settings. Their values in this session, in SHOW's spelling.
SELECT name, current_setting(name) AS value
  FROM pg_catalog.pg_settings
 WHERE name = ANY ($1)
