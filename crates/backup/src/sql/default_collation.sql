-- The same of the database's own collation, from version 15 on. Without a recorded version it is one of a library that has none (musl),
-- unless this machine's has none either: so with C and POSIX.
SELECT c.oid
  FROM pg_catalog.pg_collation c,
       pg_catalog.pg_database d
 WHERE c.collname = 'default'
   AND c.collnamespace = 'pg_catalog'::regnamespace
   AND d.datname = current_database()
   AND d.datcollversion IS DISTINCT FROM pg_catalog.pg_database_collation_actual_version(d.oid)
