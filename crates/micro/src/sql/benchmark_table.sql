CREATE TABLE benchmark.outcome (
    run_id text NOT NULL,
    run_at timestamptz NOT NULL DEFAULT now(),
    candidate text NOT NULL,
    statement text NOT NULL,
    round int NOT NULL,
    row_count bigint NOT NULL,
    seconds double precision NOT NULL,
    PRIMARY KEY (run_id, candidate, round)
)
