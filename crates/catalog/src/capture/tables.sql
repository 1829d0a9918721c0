-- $1: a schema, or NULL for all but the system's. Tables that a model has: no partitions, whose rows are their parent's;
-- none of extensions, of sessions, or of pgrig.
SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS sql_name, n.nspname || '.' || c.relname AS name,
       present.rows,
       -- At least so many rows it had when it was analyzed; NULL: not known (reset counters, a standby). VACUUM and CREATE INDEX renew
       -- reltuples alone. ANALYZE counts a partitioned table from PostgreSQL 14 on.
       CASE WHEN c.relkind = 'p' THEN CASE WHEN c.reltuples > 0 THEN c.reltuples::int8 END
            WHEN times.analyzed IS NULL THEN NULL
            WHEN times.vacuumed > times.analyzed THEN greatest(present.rows - least(present.changed, s.n_tup_ins), 0)
            -- Counters of a session that has inserted all rows come after those of its ANALYZE.
            WHEN s.n_tup_ins > present.changed
                 THEN greatest(least(present.rows, s.n_live_tup - least(present.changed, s.n_ins_since_vacuum)), 0)
            ELSE present.rows END AS analyzed_rows,
       (SELECT coalesce(sum(pg_relation_size(t)), 0)::int8 FROM unnest(leaves.oids) t) AS heap,
       -- Not the first pages of the indexes of empty TOAST tables of partitions: they would count as values.
       (SELECT coalesce(sum(pg_total_relation_size(r.reltoastrelid)), 0)::int8
          FROM unnest(leaves.oids) t JOIN pg_class r ON r.oid = t AND r.reltoastrelid <> 0
         WHERE c.relkind <> 'p' OR pg_relation_size(r.reltoastrelid) > 0) AS toast,
       (SELECT coalesce(sum(pg_indexes_size(t)), 0)::int8 FROM unnest(leaves.oids) t) AS indexes,
       -- Of leaves with different fillfactors, their mean.
       (SELECT avg(coalesce((SELECT option_value::int FROM pg_options_to_table(r.reloptions)
                              WHERE option_name = 'fillfactor'), 100))::int8
          FROM unnest(leaves.oids) t JOIN pg_class r ON r.oid = t) AS fillfactor,
       current_setting('block_size')::int8 AS block_size,
       to_char(times.analyzed, 'YYYY-MM-DD HH24:MI:SS"Z"') AS analyzed,
       -- Partitions are analyzed on their own, too.
       CASE WHEN c.relkind = 'p' AND c.reltuples > 0 THEN greatest(present.changed, abs(present.rows - c.reltuples::int8))
            ELSE present.changed END AS changed,
       -- As ANALYZE does with the setting of this session. Before PostgreSQL 17, -1 means the setting.
       (SELECT 300 * greatest(1, max(CASE WHEN a.attstattarget >= 0 THEN a.attstattarget
                                          ELSE current_setting('default_statistics_target')::int END))::int8
          FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS sampled,
       -- As pg_stats has it.
       c.relrowsecurity AND row_security_active(c.oid) AS row_security,
       (SELECT coalesce(array_agg(a.attname::text ORDER BY a.attnum), '{}') FROM pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT')) AS denied,
       defaults.names AS default_partitions, defaults.rows AS default_rows
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
  CROSS JOIN LATERAL (
      SELECT array_agg(p.relid::oid) AS oids FROM pg_partition_tree(c.oid) p WHERE p.isleaf) l
  CROSS JOIN LATERAL (SELECT coalesce(l.oids, ARRAY[c.oid]) AS oids) leaves
  CROSS JOIN LATERAL (SELECT greatest(s.last_analyze, s.last_autoanalyze) AS analyzed,
                             greatest(s.last_vacuum, s.last_autovacuum) AS vacuumed) times
  -- Rows of partitions that autovacuum has analyzed since then count as changed.
  CROSS JOIN LATERAL (
      SELECT coalesce(sum(greatest(r.reltuples, 0)), 0)::int8 AS rows,
             coalesce(sum(CASE WHEN c.relkind = 'p' AND pg_stat_get_last_autoanalyze_time(r.oid) > times.analyzed
                               THEN greatest(r.reltuples, 0)::int8
                               -- All rows that ever came, and ANALYZE has seen them: its own session reported them later.
                               WHEN counters.changed = counters.inserted + counters.others
                                    AND r.reltuples >= counters.inserted - counters.others AND counters.vacuumed IS NOT TRUE
                               THEN 0
                               ELSE counters.changed END), 0)::int8 AS changed
        FROM unnest(leaves.oids) t JOIN pg_class r ON r.oid = t
       CROSS JOIN LATERAL (
            SELECT pg_stat_get_mod_since_analyze(t) AS changed, pg_stat_get_tuples_inserted(t) AS inserted,
                   pg_stat_get_tuples_updated(t) + pg_stat_get_tuples_deleted(t) AS others,
                   greatest(pg_stat_get_last_vacuum_time(t), pg_stat_get_last_autovacuum_time(t))
                       > greatest(pg_stat_get_last_analyze_time(t), pg_stat_get_last_autoanalyze_time(t)) AS vacuumed
       ) counters) present
  -- Default partitions with rows, beside others; none that is within another one.
 CROSS JOIN LATERAL (
      SELECT coalesce(array_agg(format('%I.%I', dn.nspname, d.relname) ORDER BY dn.nspname, d.relname), '{}') AS names,
             coalesce(sum(inside.rows), 0)::int8 AS rows
        FROM pg_partition_tree(c.oid) p JOIN pg_class d ON d.oid = p.relid JOIN pg_namespace dn ON dn.oid = d.relnamespace
       CROSS JOIN LATERAL (
            SELECT sum(greatest(r.reltuples, 0))::int8 AS rows
              FROM pg_partition_tree(d.oid) t JOIN pg_class r ON r.oid = t.relid WHERE t.isleaf) inside
       WHERE pg_get_expr(d.relpartbound, d.oid) = 'DEFAULT' AND inside.rows > 0
         AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = p.parentrelid AND i.inhrelid <> d.oid)
         AND NOT EXISTS (
             SELECT FROM pg_partition_ancestors(d.oid) a JOIN pg_class o ON o.oid = a.relid
              WHERE o.oid <> d.oid AND pg_get_expr(o.relpartbound, o.oid) = 'DEFAULT')) defaults
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
   AND ($1::text IS NULL OR n.nspname = $1)
   AND n.nspname !~ '^pgrig($|_)'
   AND c.relname !~ '^pgrig_(chunks|unlogged_chunks|ballast)_' AND c.relname <> 'pgrig_schema_fill'
   AND NOT EXISTS (
       SELECT FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
 ORDER BY n.nspname, c.relname
