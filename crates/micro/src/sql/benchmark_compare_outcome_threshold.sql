-- Without the samples below the 10th and above the 90th percentile (as percentile_cont() tells them).
CREATE VIEW benchmark.compare_outcome_threshold AS
SELECT run_id,
       min(run_at) AS run_at,
       candidate,
       'truncated'::text AS samples,
       count(*) AS sample_count,
       max(row_count) AS row_count,
       stddev_samp(seconds / row_count) * 1e9 AS stddev_ns_per_row,
       avg(seconds / row_count) * 1e9 AS avg_ns_per_row,
       min(seconds / row_count) * 1e9 AS min_ns_per_row,
       max(seconds / row_count) * 1e9 AS max_ns_per_row
  FROM (SELECT *,
               row_number() OVER (PARTITION BY run_id, candidate ORDER BY seconds, round) AS place,
               count(*) OVER (PARTITION BY run_id, candidate) AS places
          FROM benchmark.outcome) AS ranked
 WHERE place > (places + 8) / 10 AND place <= places - (places + 8) / 10
 GROUP BY run_id, candidate
