-- Locks of prepared transactions on tables of this database, on their indexes and their TOAST tables, by the statements that wait for them:
-- 3: each read, 2: also ROW SHARE, 1: only SHARE UPDATE EXCLUSIVE. `family` is the table with its ancestors.
SELECT p.gid::text AS gid,
       l.relation,
       t.oid AS table,
       ARRAY(WITH RECURSIVE up (oid) AS (SELECT t.oid
                                          UNION
                                         SELECT h.inhparent FROM pg_catalog.pg_inherits h JOIN up ON h.inhrelid = up.oid)
             SELECT up.oid FROM up) AS family,
       CASE l.mode WHEN 'AccessExclusiveLock' THEN 3 WHEN 'ExclusiveLock' THEN 2 ELSE 1 END AS level
  FROM pg_catalog.pg_prepared_xacts p
  JOIN pg_catalog.pg_locks l ON l.virtualtransaction = '-1/' || p.transaction::text
  LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = l.relation
  LEFT JOIN pg_catalog.pg_class o ON o.reltoastrelid = coalesce(i.indrelid, l.relation)
 CROSS JOIN LATERAL (SELECT coalesce(o.oid, i.indrelid, l.relation)) AS t (oid)
 WHERE p.database = current_database()
   AND l.locktype = 'relation'
   AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
   AND (l.mode = 'AccessExclusiveLock'
        OR t.oid = l.relation AND l.mode IN ('ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock', 'ShareUpdateExclusiveLock'))
 ORDER BY p.prepared, 1, 2, 5
