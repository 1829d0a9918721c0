//! Stages and steps that a measurement tells, so that no part of it is silent for long.

use std::time::Duration;

use ddl::{Effort, Observer, Plan, Probes, Request, Statement};

use crate::support::{measured_by, of_shop, server};

/// Keeps the stages and steps, and the moment of the plan.
#[derive(Default)]
struct Told(Vec<String>);

impl Observer for Told {
    fn planned(&mut self, _: &Plan) {
        self.0.push("planned".to_owned());
    }
    fn stage(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn step(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

impl Told {
    /// The first place of a text after another place.
    #[track_caller]
    fn after(&self, start: usize, text: &str) -> usize {
        let found = self.0[start..].iter().position(|told| told == text);
        start + found.unwrap_or_else(|| panic!("{text:?} is not told after place {start}: {:#?}", self.0))
    }
}

#[test]
fn each_step_is_told_and_rows_are_chosen_once_for_the_plan() {
    let mut told = Told::default();
    measured_by(&server(18), &of_shop("ALTER TABLE orders ADD a int"), &mut told).unwrap();
    let mut last = 0;
    for text in [
        "running the migration on tables without rows",
        "creating the tables",
        "copying the tables",
        "choosing the rows of the tables",
        "creating the tables",
        "reading the catalogs on the tables",
        "looking for rows in the tables",
        "choosing the rows of public.customers, table 1 of 2",
        "choosing the rows of public.orders, table 2 of 2",
        "checking rows of public.customers, table 1 of 2",
        "planning the fill of public.orders, table 2 of 2",
        "planned",
        "filling the tables, size 1 of 1",
        "creating the tables",
        "filling public.customers, table 1 of 2",
        "filling public.orders, table 2 of 2",
        "reading the sizes of the tables",
        "looking at each statement, and timing it",
        "dropping the databases of this run",
    ] {
        last = told.after(last, text) + 1;
    }
    // Not again for other amounts, which this one does not need.
    let (chosen, planned) = (told.after(0, "choosing the rows of the tables"), told.after(0, "planned"));
    let plans = told.0[chosen..planned].iter().filter(|told| *told == "creating the tables").count();
    assert_eq!(plans, 1, "{:#?}", told.0);
}

/// A statement may take longer beside readers and writers than alone.
#[test]
fn a_statement_that_runs_is_told_in_each_run() {
    let mut told = Told::default();
    let migration = "ALTER TABLE orders ADD a int; ALTER TABLE orders ADD b int";
    let probes = Probes { read: None, write: None, blocker: None };
    let request = Request { probes: Some(probes), ..of_shop(migration) };
    measured_by(&server(18), &request, &mut told).unwrap();
    let looking = told.after(0, "looking at each statement, and timing it");
    let waiting = told.after(looking, "measuring the waits of readers and writers during the migration");
    assert!(told.after(looking, "running the statement") < waiting, "{:#?}", told.0);
    let first = told.after(waiting, "running statement 1 of 2");
    told.after(first, "running statement 2 of 2");
}

#[test]
fn the_first_timed_run_has_a_stage() {
    let mut told = Told::default();
    let request = Request { effort: Effort::Full, ..of_shop("ALTER TABLE orders ADD a int") };
    measured_by(&server(18), &request, &mut told).unwrap();
    let first = told.after(0, "timing the statements, run 1 of 13");
    let second = told.after(first, "timing the statements, run 2 of 13");
    let statement = told.after(first, "running statement 1 of 1");
    assert!(statement < second, "{:#?}", told.0);
}

/// Keeps the seconds of the plan.
#[derive(Default)]
struct Announced(u64);

impl Observer for Announced {
    fn planned(&mut self, plan: &Plan) {
        self.0 = plan.seconds;
    }
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

/// Each transaction that waits for readers meets another open transaction; those that let readers in wait for none.
#[test]
fn the_announced_time_has_each_blocker() {
    let server = server(18);
    let announced = |migration: &str| {
        let (blocker, mut announced) = (Some(Duration::from_mins(10)), Announced::default());
        let probes = Probes { read: None, write: None, blocker };
        // The time-out ends the waits of this test early, and pgrig does not foresee that.
        let migration = format!("SET lock_timeout = '500ms'; {migration}");
        let request = Request { probes: Some(probes), ..of_shop(&migration) };
        measured_by(&server, &request, &mut announced).unwrap();
        announced.0
    };
    let of_alone = announced("CREATE INDEX ON orders (note)");
    assert!(of_alone < 300, "{of_alone}");
    let of_three = announced(
        "ALTER TABLE orders ADD a int; CREATE INDEX ON orders (note); ALTER TABLE orders ADD b int;
         BEGIN; SELECT 1; ALTER TABLE orders ADD c int; ALTER TABLE orders ADD d int; COMMIT",
    );
    assert!((1800..2100).contains(&of_three), "{of_three}");
}
