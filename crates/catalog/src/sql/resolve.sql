-- $1: a table's name as SQL has it, looked up along search_path. What it is; if there is none, the name without
-- its schema, and the tables that there are, with and without theirs.
WITH asked AS (
    SELECT parse_ident($1) AS parts
), hidden AS (
    -- Its schema, if the role may not use it: to_regclass would fail.
    SELECT format('%I', n.nspname) AS schema
      FROM pg_namespace n JOIN asked ON n.nspname = parts[1]
     WHERE array_length(parts, 1) = 2 AND NOT has_schema_privilege(n.oid, 'USAGE')
), found AS MATERIALIZED (
    SELECT CASE WHEN NOT EXISTS (SELECT FROM hidden) THEN to_regclass($1)::oid END AS oid
), others AS (
    SELECT c.relname, format('%I.%I', n.nspname, c.relname) AS shown
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE (SELECT oid FROM found) IS NULL AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
     ORDER BY shown LIMIT 10000
)
SELECT (SELECT oid FROM found) AS oid,
       (SELECT schema FROM hidden) AS hidden,
       quote_ident(current_user) AS role,
       (parse_ident($1))[array_upper(parse_ident($1), 1)] AS name,
       ARRAY(SELECT relname::text FROM others ORDER BY shown) AS names,
       ARRAY(SELECT shown FROM others ORDER BY shown) AS shown
