-- $1: qualified name of a table. Its indexes; key_column is that of a plain ascending B-tree over one column.
SELECT format('%I.%I', n.nspname, c.relname) AS name,
       coalesce((SELECT option_value::int FROM pg_options_to_table(c.reloptions)
                  WHERE option_name = 'fillfactor'), 90) AS fillfactor,
       CASE WHEN m.amname = 'btree' AND i.indnatts = 1 AND i.indexprs IS NULL AND i.indpred IS NULL
                 AND i.indoption[0] = 0
                 AND (SELECT opcdefault FROM pg_opclass WHERE oid = i.indclass[0])
            THEN (SELECT attname::text FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[0])
       END AS key_column
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_am m ON m.oid = c.relam
 WHERE i.indrelid = to_regclass($1)
 ORDER BY i.indexrelid
