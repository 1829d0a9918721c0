-- Collations that the library of this machine has in another version than the one by which the indexes were made.
SELECT c.oid
  FROM pg_catalog.pg_collation c
 WHERE CASE WHEN c.collversion IS NOT NULL
            THEN c.collversion IS DISTINCT FROM pg_catalog.pg_collation_actual_version(c.oid)
            ELSE false
       END
