-- $1: a table's name as SQL has it, looked up along search_path. What it is, and what else has
-- that name, letter case aside.
SELECT to_regclass($1)::oid AS oid,
       ARRAY(SELECT format('%I.%I', n.nspname, c.relname)
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE lower(c.relname) = lower((parse_ident($1))[array_upper(parse_ident($1), 1)])
                AND c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_'
              ORDER BY 1 LIMIT 5) AS alike
