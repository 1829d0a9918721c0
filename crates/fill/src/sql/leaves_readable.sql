-- Whether the role can read pages of indexes, and the function that does so if the extension is there.
SELECT current_setting('is_superuser')::bool
       AND EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pageinspect') AS is_possible,
       (SELECT format('%I.%I', nspname, proname)
          FROM pg_proc p
          JOIN pg_namespace n ON n.oid = pronamespace
          JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
          JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
         WHERE extname = 'pageinspect' AND proname = 'bt_page_stats'
         LIMIT 1) AS function
