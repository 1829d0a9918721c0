-- $1: a database. What changes whenever something in it does: rows of catalogs count too, so that DDL does.
SELECT format('%s %s %s %s %s', d.oid, s.tup_inserted, s.tup_updated, s.tup_deleted, extract(epoch FROM s.stats_reset))
       AS fingerprint
  FROM pg_database d LEFT JOIN pg_stat_database s ON s.datid = d.oid
 WHERE d.datname = $1
