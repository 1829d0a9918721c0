//! `server::settings` on real servers: what is changed is in force, and put back.

use failure::Classified;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use connect::{Connection, Target};
use pgserver::Spec;
use serde_json::Value;
use server::settings::{
    Changer, Effect, Journal, JournalState, Restart, ServerRef, SettingsError, ToChange, put_back,
};
use testkit::RELEASES;

const NO_RESTART: Restart = Restart::Impossible("it is not pgrig's");

/// A server of one test's own: settings belong to all of it.
struct Server {
    running: testkit::Server,
    target: Target,
}

impl Server {
    fn start(release: u16) -> Self {
        // Its settings are in pgrig.conf; the tests change others.
        let spec = Spec { tcp: Some(true), ..testkit::spec(release, &[("fsync", "on")]) };
        let running = testkit::Server::start(spec);
        Self { target: running.target("postgres"), running }
    }

    fn journals(&self) -> std::path::PathBuf {
        self.running.home().join("journal")
    }

    async fn connect(&self) -> Connection {
        self.target.connect().await.unwrap()
    }

    async fn sql(&self, script: &str) {
        for statement in script.split(';') {
            let done = self.connect().await.client.batch_execute(statement).await;
            done.unwrap_or_else(|error| panic!("{error:?}: {statement}"));
        }
    }

    async fn value(&self, query: &str) -> String {
        let row =
            self.connect().await.client.query_one(&format!("SELECT ({query})::text"), &[]).await.unwrap();
        row.get::<_, Option<String>>(0).unwrap_or_else(|| "NULL".to_owned())
    }

    async fn show(&self, name: &str) -> String {
        self.value(&format!("current_setting('{name}')")).await
    }

    /// The setting's value in postgresql.auto.conf.
    async fn altered(&self, name: &str) -> String {
        let query = "SELECT max(setting) FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf' AND name =";
        self.value(&format!("{query} '{name}'")).await
    }

    async fn persistence(&self, table: &str) -> String {
        self.value(&format!("SELECT relpersistence FROM pg_class WHERE oid = '{table}'::regclass")).await
    }

    async fn begin(&self, to_change: &ToChange) -> Result<Changer, SettingsError> {
        Changer::begin(&self.target, ServerRef::Own("default".to_owned()), &self.journals(), to_change).await
    }
}

fn to_change(settings: &[&str], tables: &[&str]) -> ToChange {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ToChange { settings: owned(settings), tables: owned(tables), restart: NO_RESTART }
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The oldest and the newest release.
fn on_each_release<F: Future<Output = ()>>(test: impl Fn(Server) -> F) {
    static TURN: Mutex<()> = Mutex::new(());
    for release in RELEASES {
        // Few servers at a time.
        let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let server = Server::start(release);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
            .block_on(test(server));
    }
}

/// As when its process is killed: the journal stays, and that process is gone.
fn killed(changer: Changer) {
    let path = changer.journal_path().to_owned();
    drop(changer);
    let mut journal: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    journal["process"]["start"] = 0.into();
    fs::write(&path, journal.to_string()).unwrap();
}

fn dead(directory: &Path) -> Vec<Journal> {
    let all = Journal::all(directory).unwrap().into_iter();
    all.map(|found| match found {
        JournalState::Dead(journal) => journal,
        found => panic!("{found:?} is not dead"),
    })
    .collect()
}

const FAMILY: &str = "CREATE TABLE parent (id int PRIMARY KEY, up int REFERENCES parent); \
                      CREATE TABLE child (id int REFERENCES parent); \
                      INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (1)";

#[test]
fn settings_and_tables_are_changed_and_put_back() {
    on_each_release(async |server| {
        server.sql(FAMILY).await;
        // One that ALTER SYSTEM has set before, with a value to be quoted, and two that it has not.
        server.sql("ALTER SYSTEM SET log_line_prefix = 'it''s %m '; SELECT pg_reload_conf()").await;
        let names = ["fsync", "full_page_writes", "log_line_prefix"];
        let changer = server.begin(&to_change(&names, &["parent", "child"])).await.unwrap();
        let JournalState::Live(record) = Journal::all(&server.journals()).unwrap().pop().unwrap() else {
            panic!("our own journal is live")
        };
        assert_eq!(record.settings[0].altered, None);
        assert_eq!(record.settings[2].altered.as_deref(), Some("it's %m "));
        let tables: Vec<&str> = record.tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(tables, ["child", "parent"]);

        let off = pairs(&[("fsync", "false"), ("full_page_writes", "off"), ("log_line_prefix", "%p ")]);
        let shown = changer.set(&off).await.unwrap();
        assert_eq!(
            shown,
            pairs(&[("fsync", "off"), ("full_page_writes", "off"), ("log_line_prefix", "%p ")])
        );
        assert_eq!(server.show("fsync").await, "off");
        assert!(changer.set_unlogged(true).await.unwrap());
        assert!(!changer.set_unlogged(true).await.unwrap());
        assert_eq!(server.persistence("parent").await, "u");
        // One value stays, the others become what they were.
        changer.set(&pairs(&[("fsync", "off")])).await.unwrap();
        assert_eq!(server.show("full_page_writes").await, "on");
        assert_eq!(server.show("log_line_prefix").await, "it's %m ");

        changer.finish().await.unwrap();
        assert_eq!(server.show("fsync").await, "on");
        assert_eq!(server.altered("fsync").await, "NULL");
        assert_eq!(server.altered("log_line_prefix").await, "it's %m ");
        assert_eq!(server.persistence("parent").await, "p");
        assert_eq!(server.persistence("child").await, "p");
        assert!(Journal::all(&server.journals()).unwrap().is_empty());
    });
}

#[test]
fn what_a_dead_process_left_is_put_back_from_its_journal() {
    on_each_release(async |server| {
        server.sql(FAMILY).await;
        let changer = server.begin(&to_change(&["fsync"], &["parent", "child"])).await.unwrap();
        changer.set(&pairs(&[("fsync", "off")])).await.unwrap();
        changer.set_unlogged(true).await.unwrap();
        killed(changer);
        let journal = dead(&server.journals()).pop().unwrap();
        let done = put_back(&server.target, &journal).await.unwrap();
        assert_eq!(done.settings, pairs(&[("fsync", "on")]));
        assert!(done.was_without_fsync);
        assert_eq!(done.tables.len(), 2);
        assert_eq!(done.emptied, []);
        assert_eq!(server.show("fsync").await, "on");
        assert_eq!(server.persistence("parent").await, "p");
        assert!(dead(&server.journals()).is_empty());
    });
}

/// ALTER SYSTEM fails as long as this directory is there, whoever gives it.
fn obstruct(server: &Server) -> std::path::PathBuf {
    let obstacle = server.running.data_dir().join("postgresql.auto.conf.tmp");
    fs::create_dir(&obstacle).unwrap();
    obstacle
}

#[test]
fn what_was_never_changed_needs_no_restoring() {
    on_each_release(async |server| {
        server.sql(FAMILY).await;
        let to_change = to_change(&["fsync"], &["parent", "child"]);
        let obstacle = obstruct(&server);
        let changer = server.begin(&to_change).await.unwrap();
        let off = pairs(&[("fsync", "off")]);
        for error in [changer.try_values(&off).await.unwrap_err(), changer.set(&off).await.unwrap_err()] {
            assert!(!error.is_usage() && error.to_string().contains("auto.conf.tmp"), "{error}");
        }
        let done = changer.finish().await.unwrap();
        assert_eq!((&done.settings, &done.tables, done.wants_sync), (&Vec::new(), &Vec::new(), false));
        assert!(dead(&server.journals()).is_empty());
        // Killed before it changed anything.
        killed(server.begin(&to_change).await.unwrap());
        let done = put_back(&server.target, &dead(&server.journals()).pop().unwrap()).await.unwrap();
        assert_eq!((&done.settings, &done.tables, done.was_without_fsync), (&Vec::new(), &Vec::new(), false));
        fs::remove_dir(obstacle).unwrap();
    });
}

#[test]
fn why_something_was_not_restored_is_in_the_journal() {
    on_each_release(async |server| {
        let changer = server.begin(&to_change(&["fsync", "full_page_writes"], &[])).await.unwrap();
        changer.set(&pairs(&[("fsync", "off")])).await.unwrap();
        let obstacle = obstruct(&server);
        let path = changer.journal_path().to_owned();
        let error = changer.finish().await.unwrap_err().to_string();
        assert!(error.contains("ALTER SYSTEM cannot change fsync"), "{error}");
        let mut journal: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        journal["process"]["start"] = 0.into();
        fs::write(&path, journal.to_string()).unwrap();
        fs::remove_dir(obstacle).unwrap();
        let journal = dead(&server.journals()).pop().unwrap();
        assert_eq!(journal.record.gave_up, Some(error));
        let done = put_back(&server.target, &journal).await.unwrap();
        // Only what was changed.
        assert_eq!(done.settings, pairs(&[("fsync", "on")]));
        assert_eq!(server.altered("fsync").await, "NULL");
    });
}

#[test]
fn another_server_is_left_alone() {
    on_each_release(async |server| {
        let changer = server.begin(&to_change(&["fsync"], &[])).await.unwrap();
        changer.set(&pairs(&[("fsync", "off")])).await.unwrap();
        killed(changer);
        let mut journal = dead(&server.journals()).pop().unwrap();
        let right = journal.record.system_identifier.replace("1".to_owned());
        let error = put_back(&server.target, &journal).await.unwrap_err();
        assert!(matches!(error, SettingsError::OtherServer), "{error}");
        drop(journal);
        assert_eq!(server.show("fsync").await, "off");
        let journal = dead(&server.journals()).pop().unwrap();
        assert_eq!(journal.record.system_identifier, right, "the journal stays");
    });
}

#[test]
fn two_do_not_change_the_same_server() {
    on_each_release(async |server| {
        let first = server.begin(&to_change(&["fsync"], &[])).await.unwrap();
        let Err(error) = server.begin(&to_change(&["autovacuum"], &[])).await else { panic!("both began") };
        assert!(matches!(error, SettingsError::InHand { .. }), "{error}");
        first.finish().await.unwrap();
        server.begin(&to_change(&["autovacuum"], &[])).await.unwrap().finish().await.unwrap();
    });
}

#[test]
fn values_are_judged_without_coming_into_force() {
    on_each_release(async |server| {
        let changer = server.begin(&to_change(&["autovacuum", "checkpoint_timeout"], &[])).await.unwrap();
        changer.try_values(&pairs(&[("autovacuum", "off"), ("checkpoint_timeout", "6min")])).await.unwrap();
        let error = changer.try_values(&pairs(&[("checkpoint_timeout", "1s")])).await.unwrap_err();
        assert!(error.to_string().contains("checkpoint_timeout = 1s"), "{error}");
        assert!(error.is_usage());
        changer.finish().await.unwrap();
        assert_eq!(server.altered("autovacuum").await, "NULL");
        assert_eq!(server.show("autovacuum").await, "on");
    });
}

#[test]
fn what_wins_over_alter_system_is_named() {
    on_each_release(async |server| {
        server.sql("ALTER ROLE postgres SET log_duration = on").await;
        let error = to_change(&["log_duration"], &[]).look(&server.target).await.unwrap_err().to_string();
        let remedy = "ALTER ROLE postgres RESET log_duration";
        assert!(error.contains("for this role") && error.ends_with(&format!(": run {remedy}")), "{error}");
        server.sql(remedy).await;
        let changer = server.begin(&to_change(&["log_duration"], &[])).await.unwrap();
        server.sql("ALTER DATABASE postgres SET log_duration = off").await;
        let error = changer.set(&pairs(&[("log_duration", "on")])).await.unwrap_err().to_string();
        assert!(
            error.contains("set log_duration to on, but a new session has off")
                && error.ends_with(": run ALTER DATABASE postgres RESET log_duration"),
            "{error}"
        );
        changer.finish().await.unwrap();
        assert_eq!(server.altered("log_duration").await, "NULL");
    });
}

#[test]
fn a_session_sets_for_itself_what_it_may() {
    on_each_release(async |server| {
        server.sql("ALTER ROLE postgres SET work_mem = '8MB'").await;
        let looked = to_change(&["work_mem"], &[]).look(&server.target).await.unwrap();
        assert_eq!(looked.settings[0].effect, Effect::Session);
        let target = server.target.clone().with_setting("work_mem", "16MB");
        let client = target.connect().await.unwrap();
        let row = client.client.query_one("SELECT current_setting('work_mem')", &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), "16MB");
        // Any text arrives as it is.
        let text = "a  b\\c 'd',\te";
        let client = server.target.clone().with_setting("pgrig.test", text).connect().await.unwrap();
        let row = client.client.query_one("SHOW pgrig.test", &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), text);
    });
}

#[test]
fn what_cannot_be_changed_is_refused() {
    on_each_release(async |server| {
        server.sql("CREATE ROLE plain LOGIN").await;
        let look = async |names: &[&str], target: &Target| {
            let error = to_change(names, &[]).look(target).await.unwrap_err();
            assert!(error.is_usage(), "{error:?}");
            error.to_string()
        };
        assert!(look(&["no_such"], &server.target).await.contains("no setting \"no_such\": give a name"));
        let error = look(&["WorkMem"], &server.target).await;
        assert!(error.contains("no setting \"WorkMem\"; did you mean work_mem?"), "{error}");
        assert!(look(&["block_size"], &server.target).await.contains("fixed"));
        assert!(look(&["search_path"], &server.target).await.contains("list"));
        let error = look(&["shared_buffers"], &server.target).await;
        assert!(error.contains("at a server start: it is not pgrig's"), "{error}");
        let plain = server.target.clone().with_user("plain");
        let error = look(&["fsync"], &plain).await;
        assert!(error.contains("role plain may not"), "{error}");
        let mut possible = to_change(&["shared_buffers", "FSync"], &[]);
        possible.restart = Restart::Possible;
        let looked = possible.look(&server.target).await.unwrap();
        let effects: Vec<_> =
            looked.settings.iter().map(|found| (found.before.name.as_str(), found.effect)).collect();
        assert_eq!(effects, [("shared_buffers", Effect::Restart), ("fsync", Effect::Reload)]);
    });
}

#[test]
fn a_role_with_the_privileges_needs_not_be_superuser() {
    on_each_release(async |server| {
        if server.value("current_setting('server_version_num')::int >= 150000").await == "false" {
            return;
        }
        server.sql("CREATE ROLE tuner LOGIN; GRANT ALTER SYSTEM ON PARAMETER fsync TO tuner").await;
        let tuner = server.target.clone().with_user("tuner");
        let refused = async || to_change(&["fsync"], &[]).look(&tuner).await.unwrap_err().to_string();
        assert!(refused().await.contains("pg_reload_conf()"));
        server.sql("GRANT EXECUTE ON FUNCTION pg_reload_conf() TO tuner").await;
        assert!(refused().await.contains("pg_read_all_settings"));
        server.sql("GRANT pg_read_all_settings TO tuner").await;
        let place = ServerRef::Named(String::new());
        let changer =
            Changer::begin(&tuner, place, &server.journals(), &to_change(&["fsync"], &[])).await.unwrap();
        changer.set(&pairs(&[("fsync", "off")])).await.unwrap();
        assert_eq!(server.show("fsync").await, "off");
        changer.finish().await.unwrap();
        assert_eq!(server.show("fsync").await, "on");
    });
}

#[test]
fn who_is_to_run_sync_where_the_server_is_not_known_to_be_here_is_told() {
    on_each_release(async |server| {
        let local = server.begin(&to_change(&["fsync"], &[])).await.unwrap();
        assert!(!local.finish().await.unwrap().wants_sync);
        // Over TCP it is known by its data directory.
        let at = server.running.running().connection().tcp.as_ref().unwrap();
        let tcp = |user: &str| Target::tcp(at.host, at.port, user, "postgres").with_password(&at.password);
        let wants_sync = async |target: Target, settings: &[&str]| {
            let place = ServerRef::Named(String::new());
            let changer =
                Changer::begin(&target, place, &server.journals(), &to_change(settings, &[])).await.unwrap();
            let off: Vec<_> = settings.iter().map(|name| (*name, "off")).collect();
            changer.set(&pairs(&off)).await.unwrap();
            changer.finish().await.unwrap().wants_sync
        };
        assert!(!wants_sync(tcp("postgres"), &["fsync"]).await);
        if server.value("current_setting('server_version_num')::int < 150000").await == "true" {
            return;
        }
        server
            .sql(&format!(
                "CREATE ROLE tuner LOGIN PASSWORD '{}'; \
                 GRANT ALTER SYSTEM ON PARAMETER fsync, full_page_writes TO tuner; \
                 GRANT EXECUTE ON FUNCTION pg_reload_conf() TO tuner; GRANT pg_read_all_settings TO tuner; \
                 REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC",
                at.password
            ))
            .await;
        assert!(wants_sync(tcp("tuner"), &["fsync", "full_page_writes"]).await);
        assert!(!wants_sync(tcp("tuner"), &["full_page_writes"]).await);
    });
}

#[test]
fn tables_that_cannot_be_unlogged_are_refused() {
    on_each_release(async |server| {
        server.sql(FAMILY).await;
        server
            .sql(
                "CREATE UNLOGGED TABLE already (id int); CREATE VIEW seen AS SELECT 1; \
                 CREATE TABLE told (id int); CREATE PUBLICATION paper FOR TABLE told; \
                 CREATE TABLE halves (id int) PARTITION BY LIST (id); \
                 CREATE TABLE one PARTITION OF halves FOR VALUES IN (1); CREATE ROLE plain LOGIN",
            )
            .await;
        let look = async |tables: &[&str]| to_change(&[], tables).look(&server.target).await;
        let refused = async |tables: &[&str]| look(tables).await.unwrap_err().to_string();
        let error = refused(&["parent"]).await;
        assert!(error.contains("child references it") && error.contains("add child to --tables"), "{error}");
        assert!(refused(&["already"]).await.contains("already unlogged"));
        assert!(refused(&["seen"]).await.contains("not a table"));
        assert!(refused(&["told"]).await.contains("publication paper"));
        assert!(refused(&["missing"]).await.contains("no such table: check the name"));
        server.sql("CREATE SCHEMA shop; CREATE TABLE shop.\"Order\" (id int)").await;
        for name in ["shop.Order", "\"Order\"", "order"] {
            let error = refused(&[name]).await;
            assert!(error.contains("no such table; did you mean shop.\"Order\"?"), "{name}: {error}");
        }
        assert_eq!(look(&["halves"]).await.unwrap().tables[0].table.name, "one");
        look(&["child"]).await.unwrap();
        let plain = server.target.clone().with_user("plain");
        let error = to_change(&[], &["told"]).look(&plain).await.unwrap_err().to_string();
        assert!(error.contains("belongs to role postgres"), "{error}");
    });
}
