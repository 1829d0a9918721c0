-- Connections that other sessions have, and those that the server keeps for superusers.
SELECT (SELECT count(*) FROM pg_stat_activity
         WHERE datid IS NOT NULL AND pid <> pg_backend_pid() AND coalesce(backend_type, 'client backend') = 'client backend')
     + current_setting('superuser_reserved_connections')::bigint
     + coalesce(current_setting('reserved_connections', true), '0')::bigint
