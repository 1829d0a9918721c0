-- $1: what pgrig testdb bench says in the comment of the first database that a run makes. Those that are there and
-- may be dropped, whether somebody is connected (a run that is alive), and what the same run has made besides.
SELECT d.datname::text AS anchor,
       EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = d.datname) AS is_used,
       ARRAY(SELECT o.datname::text FROM pg_database o
              WHERE starts_with(o.datname::text, d.datname || '_') ORDER BY 1) AS others
  FROM pg_database d
 WHERE d.datname ~ '^pgrig_testdb_bench_[0-9a-f]{16}$'
   AND shobj_description(d.oid, 'pg_database') = $1
   AND pg_has_role(d.datdba, 'USAGE')
