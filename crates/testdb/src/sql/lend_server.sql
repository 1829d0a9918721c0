-- What decides whether databases can be lent here. Statistics are reset by crash recovery, and never by a clean
-- restart: when they began tells one stretch of the server's life from the next.
SELECT current_setting('server_version') AS version,
       r.rolname::text AS role,
       r.rolsuper OR r.rolcreatedb AS may_create,
       coalesce(extract(epoch FROM b.stats_reset)::text, 'unknown') AS epoch
  FROM pg_roles r CROSS JOIN pg_stat_bgwriter b
 WHERE r.rolname = current_user
