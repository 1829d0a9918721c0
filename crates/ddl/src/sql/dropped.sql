-- Notes in a setting the locks of this session at the end of DROP INDEX: the event comes in the last transaction of DROP INDEX CONCURRENTLY,
-- which keeps ACCESS EXCLUSIVE on the index until its commit (index.c: index_drop; event_trigger.c: EventTriggerSQLDrop). It writes nothing.
CREATE FUNCTION pg_temp.pgrig_dropped() RETURNS event_trigger LANGUAGE plpgsql AS $pgrig$
BEGIN
    PERFORM pg_catalog.set_config('pgrig.dropped',
        coalesce(pg_catalog.string_agg(pg_catalog.concat(relation, ':', mode), ' '), ''), false)
       FROM pg_catalog.pg_locks
      WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND relation >= 16384 AND granted;
END
$pgrig$;
CREATE EVENT TRIGGER pgrig_dropped ON sql_drop WHEN TAG IN ('DROP INDEX') EXECUTE FUNCTION pg_temp.pgrig_dropped()
