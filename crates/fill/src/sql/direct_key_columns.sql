-- $1: qualified name of an index. The columns of its key, in its order, without those of expressions.
SELECT ARRAY(SELECT a.attname::text
               FROM pg_index i
               CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
               JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
              WHERE i.indexrelid = to_regclass($1::text) AND k.place <= i.indnkeyatts
              ORDER BY k.place) AS columns
