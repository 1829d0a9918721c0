-- $1: name of a run. Of each database that is not of this run: rows that were inserted, updated and deleted, as far as sessions have reported
-- them, and whether a session writes now. The changes of shared catalogs belong to no database.
SELECT d.oid, d.datname::text AS name,
       pg_catalog.pg_stat_get_db_tuples_inserted(d.oid) + pg_catalog.pg_stat_get_db_tuples_updated(d.oid)
       + pg_catalog.pg_stat_get_db_tuples_deleted(d.oid) AS changed,
       EXISTS (SELECT FROM pg_catalog.pg_stat_activity a
                WHERE a.datid = d.oid AND a.pid <> pg_catalog.pg_backend_pid() AND a.backend_xid IS NOT NULL
                  AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
                  AND coalesce(a.state, 'active') NOT LIKE 'idle%') AS is_written
  FROM pg_catalog.pg_database d
 WHERE d.datname <> $1::text AND NOT pg_catalog.starts_with(d.datname::text, $1::text || '_')
