-- The event triggers that run at each login of this role, and whether the role may switch them off. From version 17 on.
SELECT ARRAY(SELECT e.evtname::text
               FROM pg_event_trigger e
              WHERE e.evtevent = 'login'
                AND e.evtenabled IN ('O', 'A')
                AND current_setting('event_triggers') = 'on'
              ORDER BY 1) AS triggers,
       r.rolname::text AS role,
       r.rolsuper AS is_superuser
  FROM pg_roles r
 WHERE r.rolname = session_user
