-- $1: what pgrig testdb bench says in the comment of the first database that a run makes. Those that are there and
-- may be dropped, whether a run that is alive has them, and what the same run has made besides. Without any comment are
-- those whose run was killed before it could say that; then only the role's very own are meant. All of them have the
-- mark that pgrig creates databases with (clone.rs), unless dropping them was interrupted.
SELECT d.datname::text AS anchor,
       EXISTS (SELECT FROM pg_stat_activity a
                WHERE a.datname = d.datname OR a.application_name = d.datname::text) AS is_used,
       ARRAY(SELECT o.datname::text FROM pg_database o
              WHERE starts_with(o.datname::text, d.datname || '_')
                AND o.datconnlimit IN (1885827689, -2) ORDER BY 1) AS others
  FROM pg_database d
  LEFT JOIN pg_shdescription c ON c.objoid = d.oid AND c.classoid = 'pg_database'::regclass
 WHERE d.datconnlimit IN (1885827689, -2)
   AND d.datname ~ '^pgrig_testdb_bench_[0-9a-f]{16}$'
   AND (c.description = $1 AND pg_has_role(d.datdba, 'USAGE')
        OR c.description IS NULL AND d.datdba = quote_ident(current_user)::regrole)
