//! Triggers of a schema: disabled in its SQL, and afterwards enabled as they were.

use connect::Connection;
use fill::{SchemaAmount, SchemaRequest, SchemaTriggers, triggers_of_schema};
use server::{DataDirectory, Survey};
use testkit::{RELEASES, block_on};

use crate::support::Tables;

/// Triggers of each kind and state. The last statement ends with a comment.
const SCHEMA: &str = "
    CREATE SCHEMA \"My shop\";
    CREATE TABLE \"My shop\".\"T\" (id int NOT NULL, note text) PARTITION BY RANGE (id);
    CREATE TABLE \"My shop\".t_1 PARTITION OF \"My shop\".\"T\" FOR VALUES FROM (0) TO (100);
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no rows today''; END';
    CREATE TRIGGER \"Of rows\" BEFORE INSERT ON \"My shop\".\"T\" FOR EACH ROW EXECUTE FUNCTION refuse();
    CREATE TRIGGER always AFTER INSERT ON \"My shop\".t_1 FOR EACH STATEMENT EXECUTE FUNCTION refuse();
    ALTER TABLE \"My shop\".t_1 ENABLE ALWAYS TRIGGER always;
    CREATE TRIGGER of_replicas AFTER INSERT ON \"My shop\".t_1 FOR EACH STATEMENT EXECUTE FUNCTION refuse();
    ALTER TABLE \"My shop\".t_1 ENABLE REPLICA TRIGGER of_replicas;
    CREATE TRIGGER off AFTER INSERT ON \"My shop\".t_1 FOR EACH STATEMENT EXECUTE FUNCTION refuse();
    ALTER TABLE \"My shop\".t_1 DISABLE TRIGGER off;
    CREATE FUNCTION refuse_statements() RETURNS event_trigger LANGUAGE plpgsql AS
        'BEGIN RAISE EXCEPTION ''no tables today''; END';
    CREATE EVENT TRIGGER \"No tables\" ON ddl_command_start WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE')
        EXECUTE FUNCTION refuse_statements();
    CREATE EVENT TRIGGER off_too ON ddl_command_start EXECUTE FUNCTION refuse_statements();
    ALTER EVENT TRIGGER off_too DISABLE -- as in the original";

/// All triggers with their states.
const STATES: &str = "
    SELECT string_agg(state, ', ' ORDER BY state COLLATE \"C\")
      FROM (SELECT concat_ws(' ', tgrelid::regclass, tgname, tgenabled) AS state FROM pg_trigger
            UNION ALL SELECT concat_ws(' ', evtname, evtenabled) FROM pg_event_trigger) AS all_states";

const FILL: &str = "INSERT INTO \"My shop\".\"T\" VALUES (1); CREATE TABLE another ()";

async fn triggers(tables: &Tables, sql: &str) -> SchemaTriggers {
    let directory = DataDirectory::Own(tables.server.data_dir());
    let survey = Survey::for_tables(&tables.connection, &directory, "test").await.unwrap();
    let request = SchemaRequest::of_script(sql.to_owned(), SchemaAmount::Rows(1));
    triggers_of_schema(&survey, &tables.connection, &request, &server::unwatched).await.unwrap()
}

async fn refusal(connection: &Connection, sql: &str) -> String {
    let error = connection.client.batch_execute(sql).await.expect_err(sql);
    error.as_db_error().unwrap().message().to_owned()
}

#[test]
fn triggers_are_disabled_in_the_sql_and_enabled_as_they_were() {
    for major in RELEASES {
        block_on(async {
            let expected = Tables::new(major, SCHEMA).await;
            assert_eq!(refusal(&expected.connection, FILL).await, "no rows today");
            assert_eq!(refusal(&expected.connection, "CREATE TABLE another ()").await, "no tables today");

            let tables = Tables::new(major, "").await;
            let triggers = triggers(&tables, SCHEMA).await;
            assert!(triggers.running().is_empty(), "{major}: {triggers:?}");
            assert_eq!(tables.value::<i64>("SELECT count(*) FROM pg_event_trigger").await, 0);
            tables.execute(&triggers.disabled_after(SCHEMA)).await;
            tables.execute(FILL).await;
            tables.execute(&triggers.enable()).await;
            let states: String = tables.value(STATES).await;
            assert_eq!(states, expected.value::<String>(STATES).await, "{major}");
            assert_eq!(refusal(&tables.connection, FILL).await, "no rows today");
        });
    }
}

#[test]
fn sql_without_triggers_stays_as_it_is() {
    block_on(async {
        let tables = Tables::new(RELEASES[0], "").await;
        let sql = "CREATE TABLE a (id int)";
        assert_eq!(triggers(&tables, sql).await.disabled_after(sql), sql);
    });
}
