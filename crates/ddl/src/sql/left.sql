-- $1: the mark with which pgrig ddl creates databases. Databases of runs that no longer live: a run is connected with the
-- name of its first database as application_name, and copies are named after it. Statements of a killed run may be at work still.
SELECT d.datname::text AS name
  FROM pg_catalog.pg_database d
 WHERE d.datconnlimit IN ($1, -2)
   AND d.datname ~ '^pgrig_ddl_[0-9a-f]{16}(_[a-z0-9]+)?$'
   AND pg_catalog.pg_has_role(d.datdba, 'USAGE')
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a
                    WHERE a.application_name = pg_catalog.left(d.datname::text, 26))
 ORDER BY 1
