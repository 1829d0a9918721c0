-- $1: names of settings. Their values in this session, in SHOW's spelling; also the planner's switches that are not as the server has them by
-- default.
SELECT name, current_setting(name) AS value
  FROM pg_catalog.pg_settings
 WHERE name = ANY ($1) OR name ~ '^enable_' AND setting <> boot_val
