-- Who vacuums or analyzes which table now. Rows that this role may not see have no relation.
SELECT DISTINCT
       CASE WHEN session.backend_type = 'autovacuum worker' THEN 'autovacuum' ELSE progress.command END AS who,
       CASE WHEN place.datname = current_database() THEN progress.relid::regclass::text
            ELSE 'a table of database ' || place.datname END AS relation
  FROM (SELECT 'VACUUM' AS command, pid, datid, relid FROM pg_stat_get_progress_info('VACUUM')
        UNION ALL
        SELECT 'ANALYZE', pid, datid, relid FROM pg_stat_get_progress_info('ANALYZE')) AS progress
  JOIN pg_stat_get_activity(NULL) AS session ON session.pid = progress.pid
  JOIN pg_database AS place ON place.oid = progress.datid
 WHERE progress.relid IS NOT NULL AND session.backend_type IS NOT NULL
