-- Locks that other sessions of pgrig and its programs hold on tables of the user's in this database.
SELECT l.mode, count(DISTINCT l.relation) AS tables
  FROM pg_locks l
  JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE a.application_name = current_setting('application_name')
   AND l.pid <> ALL ($1)
   AND l.locktype = 'relation'
   AND l.granted
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND l.relation IN (SELECT c.oid FROM pg_class c WHERE c.relkind IN ('r', 'p', 'm') AND c.oid >= 16384)
 GROUP BY l.mode
