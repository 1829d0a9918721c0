-- $1: OIDs of tables. Their extended statistics, with the values that the role may see: none, unless it owns the table.
SELECT s.stxrelid AS relation, format('%s.%s', n.nspname, s.stxname) AS name, pg_has_role(c.relowner, 'USAGE') AS is_owner,
       e.statistics_name IS NOT NULL AS is_seen,
       ARRAY(SELECT a.attnum::int4 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (s.stxkeys) ORDER BY a.attnum) AS numbers,
       ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (s.stxkeys) ORDER BY a.attnum) AS names,
       e.n_distinct::text AS n_distinct, e.dependencies::text AS dependencies,
       -- A combination after another, each with its columns in the order of their numbers, then its expressions.
       ARRAY(SELECT {read}v.value{as} FROM unnest(e.most_common_vals) WITH ORDINALITY v (value, place) ORDER BY v.place) AS common,
       e.most_common_freqs AS shares
  FROM pg_statistic_ext s JOIN pg_class c ON c.oid = s.stxrelid
  JOIN pg_namespace n ON n.oid = s.stxnamespace
  -- Since PostgreSQL 15 a parent may have two rows: with its children and without.
  LEFT JOIN pg_stats_ext e ON e.statistics_schemaname = n.nspname AND e.statistics_name = s.stxname
       AND coalesce((to_jsonb(e) ->> 'inherited')::boolean, c.relkind = 'p') = (c.relkind = 'p')
 WHERE s.stxrelid = ANY ($1::oid[])
 ORDER BY name
