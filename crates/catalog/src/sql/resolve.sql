-- $1: a table's name as SQL has it, looked up along search_path. What it is; if there is none, the name without
-- its schema, and the tables that there are, with and without theirs.
WITH others AS (
    SELECT c.relname, format('%I.%I', n.nspname, c.relname) AS shown
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE to_regclass($1) IS NULL AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
     ORDER BY shown LIMIT 10000
)
SELECT to_regclass($1)::oid AS oid,
       (parse_ident($1))[array_upper(parse_ident($1), 1)] AS name,
       ARRAY(SELECT relname::text FROM others ORDER BY shown) AS names,
       ARRAY(SELECT shown FROM others ORDER BY shown) AS shown
