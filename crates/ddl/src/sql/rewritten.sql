-- Notes in a setting the tables for which the server says that it writes them anew (event_trigger.c: EventTriggerTableRewrite).
CREATE FUNCTION pg_temp.pgrig_rewritten() RETURNS event_trigger LANGUAGE plpgsql AS $pgrig$
BEGIN
    PERFORM pg_catalog.set_config('pgrig.rewritten', pg_catalog.concat_ws(' ',
        pg_catalog.current_setting('pgrig.rewritten', true), pg_catalog.pg_event_trigger_table_rewrite_oid()), false);
END
$pgrig$;
CREATE EVENT TRIGGER pgrig_rewritten ON table_rewrite EXECUTE FUNCTION pg_temp.pgrig_rewritten()
