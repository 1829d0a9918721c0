-- $1: the run; then one element for each sample: candidates, statements, rounds, rows, seconds.
INSERT INTO benchmark.outcome (run_id, candidate, statement, round, row_count, seconds)
SELECT $1, sample.*
  FROM unnest($2::text[], $3::text[], $4::int[], $5::bigint[], $6::float8[]) AS sample
