-- Whether the clock has passed this time, and whether all rows of the witness are from before.
SELECT clock_timestamp() > $1::text::timestamptz AS has_passed,
       (SELECT max(at) < $1::text::timestamptz FROM pgrig_pitr.witness) AS is_after_witness
