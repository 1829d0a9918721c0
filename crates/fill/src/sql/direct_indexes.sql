-- $1: qualified name of a table. Its indexes; key_columns are those of a plain ascending B-tree.
SELECT format('%I.%I', n.nspname, c.relname) AS name,
       coalesce((SELECT option_value::int FROM pg_options_to_table(c.reloptions)
                  WHERE option_name = 'fillfactor'), 90) AS fillfactor,
       CASE WHEN m.amname = 'btree' AND i.indnatts = i.indnkeyatts AND i.indexprs IS NULL AND i.indpred IS NULL
                 AND 0 = ALL (i.indoption)
                 AND (SELECT bool_and(opcdefault) FROM unnest(i.indclass) class JOIN pg_opclass o ON o.oid = class)
            THEN ARRAY(
                SELECT a.attname::text
                  FROM unnest(i.indkey) WITH ORDINALITY key (attnum, position)
                  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (i.indrelid, key.attnum)
                 ORDER BY position)
       END AS key_columns
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_am m ON m.oid = c.relam
 WHERE i.indrelid = to_regclass($1)
 ORDER BY i.indexrelid
