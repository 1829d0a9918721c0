//! `testdb::unlog` on real servers: only persistence changes, and all of it or nothing.

use failure::Classified;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::{Database, assert_same, but_persistence, client, on_each_release};
use testdb::unlog::{
    Direction, ObjectKind, Observer, Step, UnlogError, UnlogPlan, UnlogRequest, Unlogged, apply, plan,
};
use testkit::{Need, require};

fn unlogged() -> UnlogRequest {
    UnlogRequest::whole_database(Direction::Unlogged)
}

fn back() -> UnlogRequest {
    UnlogRequest::whole_database(Direction::Logged)
}

async fn run(database: &Database, request: &UnlogRequest) -> Result<(UnlogPlan, Unlogged), UnlogError> {
    let plan = plan(&database.target, request).await?;
    let done = apply(&database.target, &plan, &(), Box::pin(std::future::pending())).await?;
    Ok((plan, done))
}

/// Why the plan leaves an object as it is.
fn why(plan: &UnlogPlan, object: &str) -> String {
    let left = plan.left.iter().find(|left| left.object.to_string() == object);
    left.unwrap_or_else(|| panic!("{object} is not left: {:#?}", plan.left)).why.to_string()
}

fn assert_says(error: &UnlogError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "no \"{part}\" in: {text}");
    }
}

/// Tables of the rich schema that stay logged.
const STAY: [&str; 5] =
    ["public.extension_table", "public.money_amount", "public.sensors", "public.sites", "none"];

#[test]
fn only_persistence_changes_and_changes_back() {
    on_each_release(async |database| {
        let database = database.rich().await;
        let before = database.everything().await;
        let (plan, done) = run(&database, &unlogged()).await.unwrap();
        let between = database.everything().await;
        assert_same(&but_persistence(&between), &but_persistence(&before));

        let logged = database.of_persistence('p').await;
        let tables: Vec<&String> = logged.iter().filter(|name| STAY.contains(&name.as_str())).collect();
        assert_eq!(
            tables,
            ["public.extension_table", "public.money_amount", "public.sensors", "public.sites"]
        );
        if database.has_unlogged_sequences() {
            assert_eq!(logged.len(), 4, "{logged:?}");
            // customers' identity and orders' serial follow their tables.
            assert_eq!((plan.following, done.sequences), (2, 4));
        } else {
            assert!(logged.contains(&"public.free_sequence".to_owned()), "{logged:?}");
            assert_eq!(done.sequences, 0);
            assert!(why(&plan, "public.free_sequence").contains("from PostgreSQL 15 on"));
        }
        assert!(
            why(&plan, "public.sensors").contains("partitioned table public.measurements, which is always")
        );
        assert!(why(&plan, "public.sites").contains("public.sensors references it and stays logged"));
        assert!(why(&plan, "public.money_amount").contains("public.invoices.total has its row type"));
        assert!(why(&plan, "public.extension_table").contains("extension plpgsql"));
        assert!(why(&plan, "sales.totals").contains("no unlogged materialized views"));
        assert!(why(&plan, "public.elsewhere").contains("foreign table"));
        assert!(why(&plan, "public.measurements_2024").contains("only its partitions change"));
        assert_eq!(done.tables, plan.changes(ObjectKind::Table).count());
        assert_eq!(done.durability.0.len(), 4);
        assert_eq!(done.durability.0[1], ("fsync".to_owned(), "off".to_owned()));

        let again = plan_of(&database, &unlogged()).await;
        assert!(again.is_empty(), "{again:#?}");
        assert_eq!(again.already, done.tables + done.sequences);

        run(&database, &back()).await.unwrap();
        assert_same(&database.everything().await, &before);
        assert!(plan_of(&database, &back()).await.is_empty());
    });
}

async fn plan_of(database: &Database, request: &UnlogRequest) -> UnlogPlan {
    plan(&database.target, request).await.unwrap()
}

#[test]
fn cycles_are_opened_where_it_costs_least() {
    on_each_release(async |database| {
        let database = database.rich().await;
        let plan = plan_of(&database, &unlogged()).await;
        // One of each cycle; which one of the small tables' does not matter.
        assert_eq!(plan.cycles().count(), 2, "{:#?}", plan.steps);
        assert!(plan.cycles().all(|key| key.table.table.schema == "public"));
        let (of_two, of_three) = (["departments", "employees"], ["ring_a", "ring_b", "ring_c"]);
        for cycle in [of_two.as_slice(), of_three.as_slice()] {
            let opened = plan.cycles().filter(|key| cycle.contains(&key.table.table.name.as_str()));
            assert_eq!(opened.count(), 1);
        }
        // It is NOT VALID, so nothing has to be checked.
        assert!(plan.cycles().any(|key| key.name == "employees_department_fkey"));
    });
}

#[test]
fn a_cycle_with_disabled_triggers_is_refused() {
    on_each_release(async |database| {
        let cycle = "CREATE TABLE a (id int PRIMARY KEY, b int); \
                      CREATE TABLE b (id int PRIMARY KEY, a int CONSTRAINT to_a REFERENCES a); \
                      ALTER TABLE a ADD CONSTRAINT to_b FOREIGN KEY (b) REFERENCES b; \
                      ALTER TABLE a DISABLE TRIGGER ALL; ALTER TABLE b DISABLE TRIGGER ALL";
        database.sql(cycle).await;
        let error = plan(&database.target, &unlogged()).await.unwrap_err();
        assert_says(&error, &["to_", "disabled", "--exclude-table public."]);
        assert!(error.is_usage());
        // Kept, it holds the other one too.
        let request = UnlogRequest { keep: vec!["a".to_owned()], ..unlogged() };
        let plan = plan_of(&database, &request).await;
        assert!(plan.is_empty());
        assert!(why(&plan, "public.b").contains("public.a references it"));
    });
}

#[test]
fn a_cycle_through_a_partitioned_table() {
    on_each_release(async |database| {
        // y → x and its partition; the partition alone → y: the constraint of y on x has to go and come again.
        let cycle = "CREATE TABLE x (id int PRIMARY KEY, y int) PARTITION BY LIST (id); \
                      CREATE TABLE x1 PARTITION OF x FOR VALUES IN (1); \
                      CREATE TABLE y (id int PRIMARY KEY, x int REFERENCES x); \
                      ALTER TABLE x1 ADD FOREIGN KEY (y) REFERENCES y; \
                      INSERT INTO x VALUES (1, NULL); INSERT INTO y VALUES (1, 1); UPDATE x SET y = 1";
        database.sql(cycle).await;
        let before = database.everything().await;
        run(&database, &unlogged()).await.unwrap();
        assert_eq!(database.of_persistence('u').await, ["public.x1", "public.y"]);
        assert_same(&but_persistence(&database.everything().await), &but_persistence(&before));
        run(&database, &back()).await.unwrap();
        assert_same(&database.everything().await, &before);
    });
}

#[test]
fn kept_tables_keep_what_they_need() {
    on_each_release(async |database| {
        let database = database.rich().await;
        let request =
            UnlogRequest { keep: vec!["sales.lines".to_owned(), "measurements".to_owned()], ..unlogged() };
        let (plan, _) = run(&database, &request).await.unwrap();
        let logged = database.of_persistence('p').await;
        for table in ["lines", "orders", "customers"] {
            assert!(logged.contains(&format!("sales.{table}")), "{logged:?}");
        }
        assert!(logged.contains(&"public.measurements_2024_1".to_owned()), "{logged:?}");
        assert!(logged.contains(&"public.measurements_id_seq".to_owned()), "{logged:?}");
        assert!(!logged.contains(&"public.alarms".to_owned()), "{logged:?}");
        assert!(why(&plan, "sales.customers").contains("references it and stays logged"));
        assert_eq!(why(&plan, "public.measurements_rest"), "as given with --exclude-table");

        // On the way back, what references a kept table stays with it.
        let everything = UnlogRequest { keep: vec!["sales.customers".to_owned()], ..back() };
        run(&database, &unlogged()).await.unwrap();
        let (plan, _) = run(&database, &everything).await.unwrap();
        let unlogged: Vec<String> = database.of_persistence('u').await;
        let tables: Vec<&String> = unlogged.iter().filter(|name| !name.ends_with("_seq")).collect();
        assert_eq!(tables, ["sales.customers", "sales.lines", "sales.orders"]);
        assert!(why(&plan, "sales.lines").contains("which stays unlogged"));

        let wrong = UnlogRequest { keep: vec!["nothing".to_owned()], ..back() };
        assert_says(&plan_error(&database, &wrong).await, &["nothing", "SCHEMA.TABLE"]);
    });
}

async fn plan_error(database: &Database, request: &UnlogRequest) -> UnlogError {
    let error = plan(&database.target, request).await.unwrap_err();
    assert!(error.is_usage(), "{error}");
    error
}

#[test]
fn sequences_may_stay() {
    on_each_release(async |database| {
        let database = database.rich().await;
        let before = database.everything().await;
        let request = UnlogRequest { sequences: false, ..unlogged() };
        run(&database, &request).await.unwrap();
        let unlogged = database.of_persistence('u').await;
        assert!(unlogged.contains(&"sales.orders".to_owned()));
        assert!(
            unlogged.iter().all(|name| !name.ends_with("_seq") && !name.ends_with("sequence")),
            "{unlogged:?}"
        );
        run(&database, &back()).await.unwrap();
        assert_same(&database.everything().await, &before);
    });
}

#[test]
fn one_schema_and_what_references_it() {
    on_each_release(async |database| {
        let database = database.rich().await;
        let request = UnlogRequest { schemas: vec!["sales".to_owned()], ..unlogged() };
        run(&database, &request).await.unwrap();
        assert!(database.of_persistence('u').await.iter().all(|name| name.starts_with("sales.")));
        run(&database, &back()).await.unwrap();

        database.sql("CREATE TABLE public.claims (customer bigint REFERENCES sales.customers)").await;
        let error = plan_error(&database, &request).await;
        assert_says(
            &error,
            &["public.claims", "sales.customers", "--exclude-table sales.customers", "--schema"],
        );
        // And the other way round: nothing logged may reference what stays unlogged.
        run(&database, &unlogged()).await.unwrap();
        let request = UnlogRequest { schemas: vec!["public".to_owned()], ..back() };
        let error = plan_error(&database, &request).await;
        assert_says(&error, &["public.claims", "sales.customers", "--exclude-table public.claims"]);

        let request = UnlogRequest { schemas: vec!["Sales".to_owned()], ..unlogged() };
        assert_says(&plan_error(&database, &request).await, &["no schema \"Sales\""]);
    });
}

#[test]
fn published_tables_are_refused() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE p (id int) PARTITION BY LIST (id); \
                      CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
            )
            .await;
        let mut kinds = vec![("TABLE t", "public.t"), ("TABLE p", "public.p1"), ("ALL TABLES", "public.")];
        if database.server.major() >= 15 {
            kinds.push(("TABLES IN SCHEMA public", "public."));
        }
        for (kind, table) in kinds {
            for options in ["", " WITH (publish_via_partition_root = true)"] {
                database.sql(&format!("CREATE PUBLICATION news FOR {kind}{options}")).await;
                let error = plan_error(&database, &unlogged()).await;
                assert_says(
                    &error,
                    &[table, "publication news", "DROP PUBLICATION \"news\"", "--exclude-table"],
                );
                database.sql("DROP PUBLICATION news").await;
            }
        }
        assert_eq!(plan_of(&database, &unlogged()).await.changes(ObjectKind::Table).count(), 2);
    });
}

#[test]
fn all_published_tables_are_told_at_once_with_what_helps() {
    on_each_release(async |database| {
        let tables: Vec<String> = (10..22).map(|number| format!("t{number}")).collect();
        for table in &tables {
            database.sql(&format!("CREATE TABLE {table} (id int PRIMARY KEY)")).await;
        }
        database
            .sql("CREATE PUBLICATION weekly FOR TABLE t10, t11; CREATE PUBLICATION other FOR TABLE t10")
            .await;
        let error = plan_error(&database, &unlogged()).await;
        assert_says(
            &error,
            &[
                "tables public.t10, public.t11 are published by publication other, weekly",
                "DROP PUBLICATION \"other\", \"weekly\"",
                "give --exclude-table public.t10 --exclude-table public.t11",
            ],
        );
        database.sql(&format!("ALTER PUBLICATION weekly SET TABLE {}", tables.join(", "))).await;
        let error = plan_error(&database, &unlogged()).await;
        assert_says(
            &error,
            &["public.t18, public.t19 and 2 more are published", "--exclude-table TABLE for each"],
        );
        assert!(!error.to_string().contains("t20"), "{error}");
        // To keep one is no way out of this one.
        database.sql("CREATE PUBLICATION every FOR ALL TABLES").await;
        let kept = UnlogRequest { keep: vec!["t10".to_owned()], ..unlogged() };
        let error = plan_error(&database, &kept).await;
        assert_says(
            &error,
            &["every (FOR ALL TABLES)", "pg_dump --no-publications", "--exclude-table does not help"],
        );
    });
}

#[test]
fn somebody_elses_tables_and_read_only_servers_are_refused() {
    on_each_release(async |database| {
        let role = format!("other_{}", database.target.dbname());
        database.sql(&format!("CREATE ROLE {role} LOGIN; CREATE TABLE mine (id int)")).await;
        let target = database.target.clone().with_user(&role);
        let error = plan(&target, &unlogged()).await.unwrap_err();
        assert_says(&error, &["public.mine", "belongs to role postgres", "--exclude-table public.mine"]);
        let target = database.target.clone().with_setting("default_transaction_read_only", "on");
        let error = plan(&target, &unlogged()).await.unwrap_err();
        assert_says(&error, &["read-only"]);
        assert!(error.is_usage());
        database.sql(&format!("DROP ROLE {role}")).await;
    });
}

#[test]
fn who_holds_a_lock_is_told_and_nothing_is_changed() {
    on_each_release(async |database| {
        let database = database.rich().await;
        let before = database.everything().await;
        let other = database.target.clone().with_application_name("the other").connect().await.unwrap();
        other.client.batch_execute("BEGIN; SELECT count(*) FROM sales.orders").await.unwrap();
        let request = UnlogRequest { lock_timeout: Duration::from_millis(100), ..unlogged() };
        let error = run(&database, &request).await.unwrap_err();
        assert_says(
            &error,
            &["locks sales.orders", "process", "the other", "idle in transaction", "nothing"],
        );
        assert!(!error.is_usage());
        other.client.batch_execute("ROLLBACK; BEGIN; LOCK TABLE sales.lines").await.unwrap();
        // Even its size cannot be asked.
        let error = plan(&database.target, &request).await.unwrap_err();
        assert_says(&error, &["locks sales.lines", "process", "the other"]);
        // The remedy is a statement that ends the holder.
        let error = error.to_string();
        let ending = error.split("run SELECT ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        database.sql(&format!("SELECT {ending}")).await;
        assert!(other.client.batch_execute("COMMIT").await.is_err(), "the holder ended");
        assert_same(&database.everything().await, &before);
    });
}

#[test]
fn what_was_interrupted_is_rolled_back() {
    on_each_release(async |database| {
        let database = database.rich().await;
        let before = database.everything().await;
        let plan = plan_of(&database, &unlogged()).await;

        // Between two statements.
        let (teller, told) = Teller::new();
        let error = apply(&database.target, &plan, &Halfway(teller), Box::pin(told)).await.unwrap_err();
        assert!(matches!(error, UnlogError::Interrupted), "{error}");
        assert_same(&database.everything().await, &before);

        // In one that waits.
        let plan = UnlogPlan { lock_timeout: Duration::from_hours(1), ..plan };
        let other = database.target.clone().with_application_name("the other").connect().await.unwrap();
        other.client.batch_execute("BEGIN; LOCK TABLE ring_b").await.unwrap();
        let (teller, told) = Teller::new();
        let error = apply(&database.target, &plan, &Waiting(teller), Box::pin(told)).await.unwrap_err();
        assert!(matches!(error, UnlogError::Interrupted), "{error}");
        other.client.batch_execute("ROLLBACK").await.unwrap();
        assert_same(&database.everything().await, &before);
    });
}

/// Interrupts once.
struct Teller(Mutex<Option<tokio::sync::oneshot::Sender<()>>>);

impl Teller {
    fn new() -> (Self, impl Future<Output = ()>) {
        let (tell, told) = tokio::sync::oneshot::channel();
        (Self(Mutex::new(Some(tell))), async { told.await.unwrap() })
    }

    fn tell(&self) {
        if let Some(tell) = self.0.lock().unwrap().take() {
            tell.send(()).unwrap();
        }
    }
}

/// When the first table was changed.
struct Halfway(Teller);

impl Observer for Halfway {
    fn done(&self, step: &Step) {
        if step.changes(Direction::Unlogged).is_some() {
            self.0.tell();
        }
    }
}

/// When somebody else holds a lock.
struct Waiting(Teller);

impl Observer for Waiting {
    fn waiting_for_lock(&self, holder: &str) {
        assert!(holder.contains("the other"), "{holder}");
        self.0.tell();
    }
}

#[test]
fn the_script_does_the_same_in_psql() {
    if !require(Need::Clients) {
        return;
    }
    on_each_release(async |database| {
        let database = database.rich().await;
        let before = database.everything().await;
        for request in [unlogged(), back()] {
            let script = plan_of(&database, &request).await.script();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), script).unwrap();
            let url = database.server.conninfo(database.target.dbname());
            client("psql", &["-XqAt", "-f", file.path().to_str().unwrap(), &url]);
            assert!(plan_of(&database, &request).await.is_empty());
        }
        assert_same(&database.everything().await, &before);
    });
}
