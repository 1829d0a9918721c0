-- $1: qualified name of a partitioned table. It and its partitions at all levels, each after the one that it is part of.
SELECT c.oid AS oid,
       t.parentrelid::oid AS parent,
       format('%I.%I', n.nspname, c.relname) AS name,
       c.relkind::text AS kind,
       c.relpersistence::text AS persistence,
       coalesce((SELECT option_value::int FROM pg_options_to_table(c.reloptions)
                  WHERE option_name = 'fillfactor'), 100) AS fillfactor,
       p.partstrat::text AS strategy,
       pg_get_expr(c.relpartbound, c.oid) AS bound,
       coalesce((
           SELECT jsonb_agg(jsonb_build_object(
                      -- NULL: an expression.
                      'column', a.attname,
                      'is_usual', o.opcdefault,
                      -- C and POSIX, by themselves or as the database's default; version 17 added builtin locales.
                      'has_bytes', key.ordered_by IN (0, 950, 951)
                          OR key.ordered_by = 100 AND (
                              SELECT coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'b'
                                     OR coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c' AND d.datcollate IN ('C', 'POSIX')
                                FROM pg_database d WHERE d.datname = current_database()),
                      'is_deterministic', NOT EXISTS (
                          SELECT FROM pg_collation co WHERE co.oid = key.ordered_by AND NOT co.collisdeterministic)
                  ) ORDER BY key.position)
             FROM unnest(p.partattrs::int2[], p.partclass::oid[], p.partcollation::oid[]) WITH ORDINALITY
                      key (attnum, class, ordered_by, position)
             JOIN pg_opclass o ON o.oid = key.class
             LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = key.attnum
       ), '[]') AS keys
  FROM pg_partition_tree($1::text::regclass) t
  JOIN pg_class c ON c.oid = t.relid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_partitioned_table p ON p.partrelid = c.oid
 ORDER BY t.level, c.oid
