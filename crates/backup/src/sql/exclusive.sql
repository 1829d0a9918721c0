-- Who holds an ACCESS EXCLUSIVE lock on a relation of this database, or waits for one, the first of these relations, and the sessions behind which it
-- waits.
SELECT x.pid,
       x.gid,
       x.granted,
       x.tables,
       x.relation::regclass::text AS name,
       coalesce(a.application_name, '') AS program,
       coalesce(a.state, '') AS state,
       coalesce(a.backend_type = 'startup', false) AS replays,
       ARRAY(SELECT CASE WHEN b.pid = 0 THEN 'a prepared transaction' ELSE 'session ' || b.pid END
                    || coalesce(' (' || nullif(concat_ws(', ', nullif(s.application_name, ''), s.state), '') || ')', '')
               FROM unnest(CASE WHEN NOT x.granted THEN pg_blocking_pids(x.pid) END) AS b (pid)
               LEFT JOIN pg_catalog.pg_stat_activity s ON s.pid = b.pid) AS behind
  FROM (SELECT l.pid,
               p.gid::text AS gid,
               l.granted,
               min(l.relation) AS relation,
               count(DISTINCT l.relation) AS tables
          FROM pg_catalog.pg_locks l
          -- A prepared transaction keeps the virtual one of its session, until the server restarts.
          LEFT JOIN pg_catalog.pg_locks own
                 ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid'
                    AND own.virtualtransaction = l.virtualtransaction
          LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction = own.transactionid
         WHERE l.locktype = 'relation'
           AND l.mode = 'AccessExclusiveLock'
           AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
         GROUP BY 1, 2, 3) AS x
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = x.pid
 ORDER BY x.granted DESC, x.gid, x.pid
