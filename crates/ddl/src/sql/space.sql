-- $1: a database. Bytes of its files, and of the temporary files of its sessions (fd.c: pgsql_tmpPID.N; of parallel workers together
-- in a directory pgsql_tmpPID.N.fileset). A file that goes away meanwhile has no size.
WITH temporary AS (
    SELECT 'base/pgsql_tmp/' || name AS path
      FROM pg_catalog.pg_ls_dir('base/pgsql_tmp', true, false) name
     WHERE pg_catalog.split_part(pg_catalog.substr(name, 10), '.', 1)
           IN (SELECT pid::text FROM pg_catalog.pg_stat_activity WHERE datname = $1::text)
), seen AS (
    SELECT path, file.size, file.isdir FROM temporary CROSS JOIN LATERAL pg_catalog.pg_stat_file(path, true) file
), within AS (
    SELECT file.size
      FROM seen CROSS JOIN LATERAL pg_catalog.pg_ls_dir(path, true, false) name
           CROSS JOIN LATERAL pg_catalog.pg_stat_file(path || '/' || name, true) file
     WHERE seen.isdir
)
SELECT pg_catalog.pg_database_size($1::text::name)::int8 AS files,
       (coalesce((SELECT pg_catalog.sum(size) FROM seen WHERE NOT isdir), 0)
        + coalesce((SELECT pg_catalog.sum(size) FROM within), 0))::int8 AS temp
