-- $1: the key of an advisory lock, whose halves pg_locks has apart. Who has it in this database.
SELECT l.pid,
       format('connected %s since %s',
              coalesce('from ' || host(a.client_addr), 'through a Unix socket'),
              coalesce(to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SSOF'), 'a time that this role may not see')) AS seen
  FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND l.classid::bigint << 32 | l.objid::bigint = $1
