-- What is active in this session, and what the database's tables are; those of extensions and the system's aside.
WITH tables AS (
  SELECT c.relpersistence FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'
     AND NOT EXISTS (SELECT FROM pg_depend d
                      WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
)
SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit, current_setting('wal_level') AS wal_level,
       (SELECT count(*) FROM tables WHERE relpersistence = 'p') AS logged,
       (SELECT count(*) FROM tables WHERE relpersistence = 'u') AS unlogged
