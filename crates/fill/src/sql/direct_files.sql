-- The files that this transaction has made, table by table and index by index, and what proves later on that they
-- are nobody's: see direct/record.rs. Of rows in pg_class that this transaction has changed, some are of files that
-- were there before; the server is asked for those before anything is removed.
SELECT c.oid::regclass::text AS name,
       c.reltablespace AS tablespace,
       pg_relation_filenode(c.oid) AS filenode,
       pg_relation_filepath(c.oid) AS path,
       (SELECT oid FROM pg_database WHERE datname = current_database()) AS database,
       (SELECT system_identifier FROM pg_control_system()) AS system_identifier,
       pg_current_xact_id()::text AS transaction,
       -- Changes with every start of the server, and with every crash.
       concat(extract(epoch FROM pg_postmaster_start_time()), '/',
              (SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'checkpointer')) AS lifetime,
       -- Since 17 a message in WAL need not wait for a commit to be flushed. It holds the transaction's number.
       current_setting('server_version_num')::int >= 170000 AS may_flush
  FROM pg_class c
 WHERE c.xmin::text::bigint = pg_current_xact_id()::text::bigint % 4294967296
   AND pg_relation_filenode(c.oid) IS NOT NULL
 ORDER BY c.oid
