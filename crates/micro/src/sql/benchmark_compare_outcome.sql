CREATE VIEW benchmark.compare_outcome AS
SELECT run_id,
       min(run_at) AS run_at,
       candidate,
       'all'::text AS samples,
       count(*) AS sample_count,
       max(row_count) AS row_count,
       stddev_samp(seconds / row_count) * 1e9 AS stddev_ns_per_row,
       avg(seconds / row_count) * 1e9 AS avg_ns_per_row,
       min(seconds / row_count) * 1e9 AS min_ns_per_row,
       max(seconds / row_count) * 1e9 AS max_ns_per_row
  FROM benchmark.outcome
 GROUP BY run_id, candidate
