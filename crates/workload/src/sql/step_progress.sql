-- $1: process id of the session that vacuums or builds an index. Done and total of its current phase.
SELECT coalesce(nullif(tuples_total, 0), blocks_total) AS total,
       CASE WHEN tuples_total > 0 THEN tuples_done ELSE blocks_done END AS done
  FROM pg_stat_progress_create_index
 WHERE pid = $1
UNION ALL
SELECT heap_blks_total, heap_blks_scanned
  FROM pg_stat_progress_vacuum
 WHERE pid = $1
