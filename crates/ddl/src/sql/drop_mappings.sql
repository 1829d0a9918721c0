-- Drops all user mappings of the database, and notes in a setting whether there were any.
DO $pgrig$
DECLARE
    mapping record;
BEGIN
    FOR mapping IN SELECT umuser, usename, srvname FROM pg_catalog.pg_user_mappings LOOP
        EXECUTE pg_catalog.format('DROP USER MAPPING FOR %s SERVER %I',
            CASE WHEN mapping.umuser = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(mapping.usename::text) END, mapping.srvname);
        PERFORM pg_catalog.set_config('pgrig.user_mappings', 'dropped', false);
    END LOOP;
END
$pgrig$;
