-- $1: seconds. Which tables were vacuumed or analyzed in so many seconds, and how long ago each was finished.
SELECT done.who AS who, relid::regclass::text AS relation,
       extract(epoch FROM clock_timestamp() - done.at)::float8 AS ago
  FROM pg_stat_all_tables,
       LATERAL (VALUES ('autovacuum', last_autovacuum), ('autovacuum', last_autoanalyze),
                       ('VACUUM', last_vacuum), ('ANALYZE', last_analyze)) AS done (who, at)
 WHERE done.at > statement_timestamp() - make_interval(secs => $1)
 ORDER BY done.at
