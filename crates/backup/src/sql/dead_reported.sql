-- Row versions that the server's statistics count as dead, in the same tables as dead.sql: after a VACUUM, those that it had to keep
-- (vacuumlazy.c: pgstat_report_vacuum). And whether the statistics show a VACUUM of each table since this time.
SELECT coalesce(sum(s.n_dead_tup), 0)::bigint AS versions,
       coalesce(bool_and(coalesce(s.last_vacuum >= $1::text::timestamptz, false)), true) AS shows_vacuum
  FROM pg_class c
  JOIN pg_stat_all_tables s ON s.relid = c.oid
 WHERE c.relkind IN ('r', 'm', 't')
   AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'heap')
   AND c.relpersistence <> 't'
   AND c.oid >= 16384
