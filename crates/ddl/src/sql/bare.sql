-- The partitions without pages, which have no rows. The size of a partition that somebody locks is not asked for, because that would wait.
SELECT pg_catalog.format('%s.%s', n.nspname, c.relname) AS name
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relispartition AND c.relkind = 'r'
   AND CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_locks l
                          WHERE l.relation = c.oid AND l.mode = 'AccessExclusiveLock'
                            AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()))
            THEN false ELSE pg_catalog.pg_relation_size(c.oid) = 0 END
