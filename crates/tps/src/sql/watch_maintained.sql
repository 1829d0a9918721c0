-- $1: seconds since 1970. Which tables were vacuumed or analyzed after that, and when each was finished; all by the server's clock.
SELECT done.who AS who, relid::regclass::text AS relation, extract(epoch FROM done.at)::float8 AS at
  FROM pg_stat_all_tables,
       LATERAL (VALUES ('autovacuum', last_autovacuum), ('autovacuum', last_autoanalyze),
                       ('VACUUM', last_vacuum), ('ANALYZE', last_analyze)) AS done (who, at)
 WHERE done.at > to_timestamp($1)
 ORDER BY done.at
