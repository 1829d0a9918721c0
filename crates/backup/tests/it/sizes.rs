//! Data of three sizes, and forecasts from them.

use std::time::Duration;

use backup::{
    BackupError, Cause, DataSize, Figure, Forecast, Observer, Outcome, Plan, Request, Rto, Shape,
    SizesRequest, SizesSite, Trial, Way,
};
use pgserver::Home;
use tempfile::tempdir;
use testkit::{Need, block_on, require, templates};

use crate::support::{Unwatched, assert_nothing_is_left, ways};

const MB: u64 = 1_000_000;

/// Rehearses these ways on 12 MB and two smaller sizes, with a forecast for this size.
pub(crate) async fn rehearsed(shape: Shape, size: u64, names: &[&str], set: &[(&str, &str)]) -> Outcome {
    tried(shape, size, names, set, &mut Unwatched).await.unwrap()
}

async fn tried(
    shape: Shape,
    size: u64,
    names: &[&str],
    set: &[(&str, &str)],
    observer: &mut impl Observer,
) -> Result<Outcome, BackupError> {
    let directory = tempdir().unwrap();
    let home = Home::at(directory.path()).unwrap().with_postgresql_cache(&templates());
    let set: Vec<(String, String)> =
        set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let ground = SizesSite { home: &home, pg_bin: None, major: Some(13), set: &set, cores: 2, pgrig: "test" };
    let request = Request { ways: ways(names), trials: 1, bin: None, probe: false, network: false };
    let asked = SizesRequest {
        request,
        shape,
        size,
        up_to: 12 * MB,
        price: Some(1000.0),
        rto: Some(1e6),
        changes: 0.05,
        load: None,
    };
    let never = std::future::pending();
    let outcome = Box::pin(backup::rehearse_sizes(&ground, &asked, observer, never)).await;
    assert_nothing_is_left(home.root());
    outcome
}

fn of<'a>(outcome: &'a Outcome, way: &str) -> &'a Forecast {
    outcome.forecasts.iter().find(|one| one.way.to_string() == way).unwrap()
}

/// A dump of little data hardly grows beside the segments of WAL that its restore writes.
fn assert_disk_space(forecast: &Forecast, real: &Trial) {
    assert!(real.peak_disk > real.size, "{real:?}");
    match (forecast.disk, forecast.size) {
        (Figure::Value { value, low, high }, Figure::Value { value: size, .. }) => {
            assert!(low < value && value < high && value > size, "{forecast:?}");
            // Files are copied as they are.
            assert!(forecast.way.to_string() != "base" || value > 1.5 * size, "{forecast:?}");
        }
        (figure, _) => assert!(figure == Figure::TooSmall && !forecast.way.is_base(), "{forecast:?}"),
    }
}

#[test]
fn three_sizes_are_filled_rehearsed_and_continued() {
    if !require(Need::Clients) {
        return;
    }
    // Sorts leave this memory from 2 MB of tables on, and checkpoints begin from 17 MB of WAL on.
    let set = [("maintenance_work_mem", "1MB"), ("max_wal_size", "20GB")];
    let names = ["custom:gzip=1", "base"];
    let outcome = block_on(rehearsed(Shape::pgbench(), 120 * MB, &names, &set));
    assert!(outcome.failed.is_empty(), "{outcome:#?}");
    let sizes = outcome.sizes();
    assert_eq!(sizes.len(), 3);
    for (size, asked) in sizes.iter().zip([12 * MB / 9, 4 * MB, 12 * MB]) {
        assert!(size.bytes.abs_diff(asked) < asked / 10 && size.rows > 1000, "{size:?}");
        let configs: Vec<String> =
            outcome.at(*size).trials.iter().map(|trial| trial.document().config).collect();
        let is_short = configs.iter().all(|config| !config.contains(" at "));
        assert_eq!((configs.len(), is_short), (2, size.is_largest), "{configs:?}");
    }
    for name in names {
        let forecast = of(&outcome, name);
        let largest = outcome.at(sizes[2]);
        let real = largest.trials.iter().find(|trial| trial.way.to_string() == name).unwrap();
        let Figure::Value { value, low, high } = forecast.size else { panic!("{forecast:?}") };
        assert!(low < value && value < high && value > real.size as f64, "{forecast:?}");
        assert_disk_space(forecast, real);
        assert_eq!(forecast.price, Some(forecast.size.scaled(1000.0 / 1e9)));
        // A million seconds are enough, unless nothing of the time grew.
        let keeps = if matches!(forecast.restore, Figure::Value { .. }) { Rto::Keeps } else { Rto::NotKnown };
        assert_eq!(forecast.rto, Some(keeps), "{forecast:?}");
    }
}

/// The database that was filled is removed, so nobody can complete its fill.
#[test]
fn a_fill_that_fails_has_its_reason_alone() {
    if !require(Need::Clients) {
        return;
    }
    // The index can be built on the temporary table in which pgrig measures some rows.
    let sql = "CREATE TABLE a (id bigint PRIMARY KEY, t text); \
               CREATE FUNCTION f(id bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
               IF pg_catalog.to_regclass('pg_temp.pgrig_sizes') IS NULL THEN RAISE EXCEPTION 'no rows today'; END IF; RETURN id; END $$; \
               CREATE INDEX ON a (f(id))";
    let shape = Shape::of_script(sql, "a.sql".to_owned()).unwrap();
    let error = block_on(tried(shape, 120 * MB, &["plain"], &[], &mut Unwatched)).unwrap_err().to_string();
    assert!(error.starts_with("cannot fill a database of ") && error.contains("no rows today"), "{error}");
    assert!(!error.contains("no-resume") && !error.contains("repeat the command"), "{error}");
}

/// The rows would make the first trigger insert into a table that is filled, too, and the second one refuse them. The event trigger refuses the
/// tables in which a fill is recorded.
#[test]
fn triggers_of_a_schema_do_not_run_for_the_rows() {
    if !require(Need::Clients) {
        return;
    }
    let sql = "CREATE TABLE post (id int PRIMARY KEY, title text); \
               CREATE TABLE post_agg (post_id int NOT NULL REFERENCES post, comments bigint NOT NULL DEFAULT 0); \
               CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS \
               'BEGIN INSERT INTO public.post_agg (post_id) VALUES (NEW.id); RETURN NULL; END'; \
               CREATE TRIGGER counted AFTER INSERT ON post FOR EACH ROW EXECUTE FUNCTION counted(); \
               ALTER TABLE post ENABLE ALWAYS TRIGGER counted; \
               CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no rows today''; END'; \
               CREATE TRIGGER closed BEFORE INSERT ON post_agg FOR EACH STATEMENT EXECUTE FUNCTION closed(); \
               CREATE FUNCTION frozen() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no tables today''; END'; \
               CREATE EVENT TRIGGER frozen ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION frozen() -- the end";
    let shape = Shape::of_script(sql, "a.sql".to_owned()).unwrap();
    let outcome = block_on(rehearsed(shape, 120 * MB, &["custom:none"], &[]));
    assert!(outcome.failed.is_empty(), "{outcome:#?}");
    assert_eq!(outcome.trials.len(), 3);
    for trial in &outcome.trials {
        assert!(trial.verified.tables == 2 && trial.verified.rows > 1000, "{trial:#?}");
    }
}

/// The remedies are statements for the file: a rehearsal has no option that leaves tables out.
#[test]
fn tables_that_reference_each_other_get_statements_for_the_file() {
    if !require(Need::Clients) {
        return;
    }
    let sql = "CREATE TABLE a (id int PRIMARY KEY, b int GENERATED ALWAYS AS (id) STORED); \
               CREATE TABLE b (id int PRIMARY KEY REFERENCES a); ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b;";
    let shape = Shape::of_script(sql, "a.sql".to_owned()).unwrap();
    let error = block_on(tried(shape, 120 * MB, &["plain"], &[], &mut Unwatched)).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot fill a database of ") && error.contains("reference each other"),
        "{error}"
    );
    assert!(error.contains(". Add to the end of the file: ALTER TABLE public."), "{error}");
    assert!(!error.contains("--exclude-table"), "{error}");
}

#[test]
fn a_forecast_beyond_memory_names_the_size_to_measure() {
    if !require(Need::Clients) {
        return;
    }
    let sql = "CREATE ROLE \"Owner\"; CREATE TABLE a (id bigint PRIMARY KEY, t text); ALTER TABLE a OWNER TO \"Owner\"";
    let shape = Shape::of_script(sql, "a.sql".to_owned()).unwrap();
    let outcome = block_on(rehearsed(shape, 2000 * MB, &["plain"], &[("max_wal_size", "20GB")]));
    let forecast = of(&outcome, "plain:none");
    let Figure::Beyond { boundary, measure } = forecast.restore else { panic!("{forecast:?}") };
    assert_eq!((boundary.cause, forecast.rto), (Cause::MaintenanceWorkMem, Some(Rto::NotKnown)));
    assert!(boundary.at > 12 * MB && measure > boundary.at * 5 / 2, "{forecast:?}");
    assert!(matches!(forecast.size, Figure::Value { .. }), "{forecast:?}");
}

/// Keeps the stages and steps.
#[derive(Default)]
struct Told(Vec<String>);

impl Observer for Told {
    fn planned(&mut self, _: &Plan) {}
    fn stage(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn step(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn begins(&mut self, _: &Way, _: u32, _: Option<DataSize>) {}
    fn done(&mut self, _: &Trial, _: Duration) {}
    fn failed(&mut self, _: &Way, _: &str) {}
}

#[test]
fn each_step_of_a_fill_is_told() {
    if !require(Need::Clients) {
        return;
    }
    let tables =
        "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a)";
    let shape = Shape::of_script(tables, "tables.sql".to_owned()).unwrap();
    let mut told = Told::default();
    block_on(tried(shape, 12 * MB, &["base"], &[], &mut told)).unwrap();
    let mut left = told.0.iter();
    for text in [
        "filling 1.33 MB with ",
        "creating the tables",
        "choosing the rows of public.b, table 2 of 2",
        "measuring rows of public.a, table 1 of 2",
        "filling public.b, table 2 of 2",
        "writing the data to disk",
        "reading all tables, to compare their hashes with those of the restored tables",
    ] {
        assert!(left.any(|told| told.starts_with(text)), "{text:?} is not told in its place: {:#?}", told.0);
    }
}
