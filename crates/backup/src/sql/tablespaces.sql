-- Tablespaces beside PostgreSQL's own, and their directories on the server's machine. The directory is relative for one within the data
-- directory, which only developers create (allow_in_place_tablespaces).
SELECT t.oid,
       t.spcname::text AS name,
       pg_tablespace_location(t.oid) AS location
  FROM pg_tablespace t
 WHERE t.spcname NOT IN ('pg_default', 'pg_global')
 ORDER BY t.oid
