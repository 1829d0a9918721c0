-- $1: a table's quoted name; $2: a column. Whether an index begins with that column.
SELECT EXISTS (
    SELECT FROM pg_index i
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
     WHERE i.indrelid = $1::text::regclass AND a.attname = $2::text AND i.indisvalid AND i.indpred IS NULL
) AS indexed
