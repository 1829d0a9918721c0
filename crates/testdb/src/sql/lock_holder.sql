-- $1: a table's qualified name; null for any table. Who holds a lock that ACCESS EXCLUSIVE (for any table: ACCESS
-- SHARE) has to wait for, as a phrase, and the statement that ends it; no row if nobody.
SELECT l.relation::regclass::text AS table,
       coalesce(format('process %s (%s%s, %s)', l.pid, holder.usename,
                       coalesce(' from ' || nullif(holder.application_name, ''), ''),
                       coalesce(holder.state, 'state unknown')),
                'a prepared transaction') AS holder,
       CASE WHEN l.pid IS NULL THEN format('ROLLBACK PREPARED %L', prepared.gid)
            ELSE format('SELECT pg_terminate_backend(%s)', l.pid) END AS ending
  FROM pg_locks l
  LEFT JOIN pg_prepared_xacts prepared ON l.pid IS NULL AND l.virtualtransaction = '-1/' || prepared.transaction
  LEFT JOIN pg_stat_activity holder ON holder.pid = l.pid
 WHERE l.locktype = 'relation'
   AND l.granted
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND l.pid IS DISTINCT FROM pg_backend_pid()
   AND CASE WHEN $1::text IS NULL THEN l.mode = 'AccessExclusiveLock' AND l.relation >= 16384
            ELSE l.relation = to_regclass($1) END
 ORDER BY holder.xact_start
 LIMIT 1
