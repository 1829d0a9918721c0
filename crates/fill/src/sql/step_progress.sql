-- $1: process id of the session that vacuums or builds an index. How much of that is done, 0 to 1:
-- for an index reading the table counts 60 %, writing the sorted keys 40 %.
SELECT CASE
           WHEN phase LIKE '%scanning table%' THEN 0.6 * blocks_done / nullif(blocks_total, 0)
           WHEN phase LIKE '%sorting%' THEN 0.6
           WHEN phase LIKE '%loading%' THEN 0.6 + 0.4 * tuples_done / nullif(tuples_total, 0)
       END::float8 AS fraction
  FROM pg_stat_progress_create_index
 WHERE pid = $1
UNION ALL
SELECT heap_blks_scanned::float8 / nullif(heap_blks_total, 0)
  FROM pg_stat_progress_vacuum
 WHERE pid = $1
