-- The transactions that have locked tables of this database against all others, or wait for that, with their tables.
SELECT format('%s locks %s',
              coalesce('process ' || l.pid, 'a prepared transaction')
                  || coalesce(format(' (%s%s, %s)', a.usename, ' from ' || nullif(a.application_name, ''),
                                     coalesce(a.state, 'state unknown')), ''),
              string_agg(DISTINCT format('%I.%I', n.nspname, c.relname), ', ')) AS holder
  FROM pg_locks l
  JOIN pg_class c ON c.oid = l.relation
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()
   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
   AND c.relkind NOT IN ('i', 'I', 't')
 GROUP BY l.pid, l.virtualtransaction, a.usename, a.application_name, a.state, a.xact_start
 ORDER BY a.xact_start
 LIMIT 3
