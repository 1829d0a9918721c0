-- The other databases of a restored server. A connection limit of -2 marks one whose DROP DATABASE was interrupted.
SELECT pg_catalog.current_setting('is_superuser') = 'on' AS is_superuser,
       ARRAY(SELECT d.datname::text
               FROM pg_catalog.pg_database d
              WHERE d.datallowconn
                AND d.datconnlimit <> -2
                AND d.datname NOT IN (pg_catalog.current_database(), 'template0')
              ORDER BY 1) AS databases
