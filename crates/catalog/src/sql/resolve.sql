-- $1: names of tables as SQL has them, looked up along search_path. In their order, what each is; if there is no such table, its
-- name without its schema, and the tables that there are, with and without theirs.
WITH asked AS MATERIALIZED (
    SELECT a.written, a.place, parse_ident(a.written) AS parts
      FROM unnest($1::text[]) WITH ORDINALITY AS a (written, place)
), hidden AS (
    -- Its schema, if the role may not use it: to_regclass would fail.
    SELECT asked.place, format('%I', n.nspname) AS schema
      FROM asked JOIN pg_namespace n ON n.nspname = asked.parts[1]
     WHERE array_length(asked.parts, 1) = 2 AND NOT has_schema_privilege(n.oid, 'USAGE')
), found AS MATERIALIZED (
    SELECT asked.place, asked.parts, hidden.schema AS hidden,
           CASE WHEN hidden.schema IS NULL THEN to_regclass(asked.written)::oid END AS oid
      FROM asked LEFT JOIN hidden ON hidden.place = asked.place
), others AS MATERIALIZED (
    SELECT c.relname, format('%I.%I', n.nspname, c.relname) AS shown
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE EXISTS (SELECT FROM found WHERE found.oid IS NULL) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
     ORDER BY shown LIMIT 10000
)
SELECT found.oid, found.hidden,
       quote_ident(current_user) AS role,
       found.parts[array_upper(found.parts, 1)] AS name,
       CASE WHEN found.oid IS NULL THEN ARRAY(SELECT relname::text FROM others ORDER BY shown) END AS names,
       CASE WHEN found.oid IS NULL THEN ARRAY(SELECT shown FROM others ORDER BY shown) END AS shown
  FROM found
 ORDER BY found.place
