-- What it takes to have a statement compiled; NULL while nothing is.
SELECT CASE WHEN current_setting('jit')::bool AND current_setting('jit_above_cost')::float8 >= 0
            THEN current_setting('jit_above_cost')::float8 END AS above
