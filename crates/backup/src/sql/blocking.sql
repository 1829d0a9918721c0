-- Prepared transactions of the database with locks on tables that reads or checks of constraints wait for.
SELECT p.gid::text AS gid
  FROM pg_catalog.pg_prepared_xacts p
 WHERE p.database = current_database()
   AND EXISTS (SELECT FROM pg_catalog.pg_locks l
                WHERE l.virtualtransaction = '-1/' || p.transaction::text
                  AND l.locktype = 'relation'
                  AND l.mode IN ('AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock',
                                 'ShareUpdateExclusiveLock'))
 ORDER BY p.prepared, 1
