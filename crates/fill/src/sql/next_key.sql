-- $1: a table's quoted name; $2: a column. The value that the column's sequence gives next, if it has one
-- that counts up by one.
SELECT CASE WHEN has_sequence_privilege(s.seqrelid, 'USAGE, SELECT')
            THEN coalesce(pg_sequence_last_value(s.seqrelid) + 1, s.seqstart)
            ELSE s.seqstart END AS next_key
  FROM pg_sequence s
 WHERE s.seqrelid = pg_get_serial_sequence($1, $2)::regclass AND s.seqincrement = 1
