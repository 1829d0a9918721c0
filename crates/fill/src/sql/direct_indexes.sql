-- $1: qualified name of a table. Its indexes; key_columns are those of a plain ascending B-tree.
SELECT format('%I.%I', n.nspname, c.relname) AS name,
       coalesce((SELECT option_value::int FROM pg_options_to_table(c.reloptions)
                  WHERE option_name = 'fillfactor'), 90) AS fillfactor,
       -- The server makes an index valid that it builds anew.
       CASE WHEN m.amname = 'btree' AND i.indisvalid AND i.indisready AND i.indnatts = i.indnkeyatts AND i.indexprs IS NULL AND i.indpred IS NULL
                 AND 0 = ALL (i.indoption)
                 AND (SELECT bool_and(opcdefault) FROM unnest(i.indclass) class JOIN pg_opclass o ON o.oid = class)
            THEN ARRAY(
                SELECT a.attname::text
                  FROM unnest(i.indkey) WITH ORDINALITY key (attnum, position)
                  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (i.indrelid, key.attnum)
                 ORDER BY position)
       END AS key_columns,
       i.indisunique AS is_unique,
       -- Version 15 added indnullsnotdistinct.
       NOT coalesce((to_jsonb(i)->>'indnullsnotdistinct')::boolean, false)
       -- The server looks for keys that exclude each other when it builds the index.
       AND NOT i.indisexclusion
       AND coalesce((SELECT option_value::boolean FROM pg_options_to_table(c.reloptions)
                      WHERE option_name = 'deduplicate_items'), true) AS is_usual,
       -- C and POSIX, by themselves or as the database's default; version 17 added builtin locales, which all do so.
       NOT EXISTS (
           SELECT FROM unnest(i.indcollation) AS collations (id)
            WHERE id NOT IN (0, 950, 951)
              AND NOT (id = 100 AND (
                  SELECT coalesce(to_jsonb(d)->>'datlocprovider', 'c') = 'b'
                         OR coalesce(to_jsonb(d)->>'datlocprovider', 'c') = 'c' AND d.datcollate IN ('C', 'POSIX')
                    FROM pg_database d WHERE d.datname = current_database()))
       ) AS has_bytes
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_am m ON m.oid = c.relam
 WHERE i.indrelid = to_regclass($1)
 ORDER BY i.indexrelid
