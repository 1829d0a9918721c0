-- Extensions of the database that the server does not have.
SELECT e.extname::text AS name
  FROM pg_catalog.pg_extension e
 WHERE e.extname NOT IN (SELECT a.name FROM pg_catalog.pg_available_extensions a)
 ORDER BY 1
