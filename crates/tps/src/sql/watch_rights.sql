-- Whether this role may see what others' sessions and the server's own processes do.
SELECT quote_ident(current_user) AS role,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all
