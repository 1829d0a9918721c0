//! `pgrig micro`'s arguments, and the request that they make.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use micro::{Body, Candidate, FILL, MOST_ROWS, Request, Suite, shipped};

use crate::app::args::{SaveArgs, ServerChoice, up_to};
use crate::app::duration::Length;
use crate::app::failure::{Failure, Usage};
use crate::app::input;

/// Default time of the rounds.
const BUDGET: Duration = Duration::from_secs(10);
/// Default time of the rounds with --ddl, whose tables are created again for each round.
const TABLES_BUDGET: Duration = Duration::from_secs(30);
/// Default time of --calibrate, whose rounds are long.
const CALIBRATE_BUDGET: Duration = Duration::from_mins(1);

/// How a table of results is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// For people.
    Text,
    /// Markdown.
    Md,
    /// Comma-separated values.
    Csv,
}

/// Which of some SQL expressions is cheaper, and by how many ns per row
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "pgrig reads the plan of each candidate first, and refuses expressions that the planner computes once \
        or leaves out. A round runs all candidates, the empty loop and the first candidate again, in \
        shuffled and balanced order. The verdict follows from the differences within rounds: faster or \
        slower by a number of ns (with an interval), no change, or inconclusive. No privileges are needed. \
        The method is that of the article \"PostgreSQL: Accurately Benchmarking Features Which Take Very \
        Little Time\".\n\n\
        Examples:\n  \
        pgrig micro 'gen_random_uuid()' 'uuidv7()'\n  \
        pgrig micro 'md5(i::text)' 'sha256(i::text::bytea)' -d mydb --explain\n  \
        pgrig micro --statement 'SELECT count(*) FROM pg_class' \\\n              \
        --statement 'SELECT oid FROM pg_class'\n  \
        pgrig micro --ddl 'CREATE TABLE {table} (n serial)' \\\n              \
        --ddl 'CREATE TABLE {table} (n int)'\n  \
        pgrig micro --suite uuid\n"
)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(crate) struct MicroArgs {
    /// SQL expressions; i is the row's number. Each is compared with the first
    #[arg(value_name = "EXPR", conflicts_with_all = ["statement", "ddl", "suite"])]
    pub(crate) expressions: Vec<String>,

    /// SQL statement to measure, with {rows} for the number of rows; may be repeated
    #[arg(long, value_name = "SQL", conflicts_with = "suite", help_heading = "Measurement")]
    pub(crate) statement: Vec<String>,

    /// SQL that creates the table of a candidate, with {table} for its name; may be repeated. pgrig creates the table
    /// anew in each round and times --statement on it [default: an INSERT of rows of defaults]
    #[arg(long, value_name = "SQL", conflicts_with = "suite", help_heading = "Measurement")]
    pub(crate) ddl: Vec<String>,

    /// Candidates from a TOML file, or one of uuid, defaults, uuid-defaults, integer-keys, uuid-keys, indexes
    #[arg(long, value_name = "FILE|NAME", help_heading = "Measurement")]
    pub(crate) suite: Option<String>,

    /// Statement whose time is subtracted from that of each --statement
    #[arg(long, value_name = "SQL", help_heading = "Measurement")]
    pub(crate) empty: Option<String>,

    /// SQL to run once at the start, in the session that measures
    #[arg(long, value_name = "SQL", help_heading = "Measurement")]
    pub(crate) setup: Option<String>,

    /// SQL to run at the end, even after an error or Ctrl-C (1 s at most)
    #[arg(long, value_name = "SQL", help_heading = "Measurement")]
    pub(crate) teardown: Option<String>,

    /// Time one expression (or the empty loop) at 10 to 10,000,000 rows, as in the article's table
    #[arg(long, conflicts_with_all = ["explain", "save_in_database"], help_heading = "Measurement")]
    pub(crate) calibrate: bool,

    /// Number of rows of each sample [default: chosen by a measurement]
    #[arg(long, value_name = "N", value_parser = up_to::<u64>(MOST_ROWS), help_heading = "Method")]
    pub(crate) rows: Option<u64>,

    /// Stop after this time, or earlier if the intervals are narrow [default: 10s; with --ddl 30s, with
    /// --calibrate 1min]
    #[arg(long, value_name = "TIME", help_heading = "Method")]
    pub(crate) budget: Option<Length>,

    /// Least difference that matters, as a share of the first candidate's time
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share, help_heading = "Method")]
    pub(crate) threshold: f64,

    /// Seed for the order of the rounds
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Method")]
    pub(crate) seed: u64,

    /// Also measure candidates that pgrig refuses because of their plan
    #[arg(long, help_heading = "Method")]
    pub(crate) anyway: bool,

    /// Schema for the tables, for roles that may not create one [default: pgrig_micro]
    #[arg(long, value_name = "NAME", help_heading = "Method")]
    pub(crate) schema: Option<String>,

    /// Print the plan and the statements' query plans and stop: nothing is changed
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,

    /// Print the table of results as text, Markdown, or CSV with full precision; with md and csv, standard
    /// output has only the table
    #[arg(
        long,
        value_enum,
        default_value = "text",
        hide_possible_values = true,
        value_name = "text|md|csv",
        help_heading = "Output"
    )]
    pub(crate) format: TableFormat,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    /// Add the samples to schema benchmark of the database, with views compare_outcome and
    /// compare_outcome_threshold; nothing is dropped
    #[arg(long, help_heading = "Output")]
    pub(crate) save_in_database: bool,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

impl MicroArgs {
    /// What is asked for.
    pub(crate) fn request(&self) -> Result<Request, Failure> {
        if self.format != TableFormat::Text && (self.save.json.as_deref() == Some("-") || self.explain) {
            let text = "--format md and csv print only the table of results: leave out --explain, and give --json \
                        a file";
            return Err(Usage(text.to_owned()).into());
        }
        let suite = match &self.suite {
            Some(name) => suite(name)?,
            None => Suite {
                title: String::new(),
                candidates: self.candidates()?,
                empty: None,
                setup: None,
                teardown: None,
                extensions: Vec::new(),
                rows: None,
            },
        };
        let has_tables =
            suite.candidates.iter().any(|candidate| matches!(candidate.body, Body::Table { .. }));
        let budget = match (self.calibrate, has_tables) {
            (true, _) => CALIBRATE_BUDGET,
            (false, true) => TABLES_BUDGET,
            (false, false) => BUDGET,
        };
        Ok(Request {
            candidates: suite.candidates,
            empty: self.empty.clone().or(suite.empty),
            setup: self.setup.clone().or(suite.setup),
            teardown: self.teardown.clone().or(suite.teardown),
            extensions: suite.extensions,
            rows: self.rows.or(suite.rows),
            budget: self.budget.map_or(budget, |budget| budget.0),
            threshold: self.threshold,
            seed: self.seed,
            schema: self.schema.clone(),
            anyway: self.anyway,
        })
    }

    fn candidates(&self) -> Result<Vec<Candidate>, Usage> {
        if !self.ddl.is_empty() {
            return self.tables();
        }
        let statements = self.statement.iter().cloned().map(Body::Statement);
        let mut bodies: Vec<Body> =
            self.expressions.iter().cloned().map(Body::Expression).chain(statements).collect();
        if self.calibrate {
            match bodies.len() {
                0 => bodies.push(Body::Expression("i".to_owned())),
                1 => {}
                _ => {
                    return Err(Usage(
                        "--calibrate times one expression or statement: give only one".to_owned(),
                    ));
                }
            }
        }
        Ok(bodies.into_iter().map(Candidate::new).collect())
    }

    /// Pairs each --ddl with its --statement; a single one of either is used with all of the other.
    fn tables(&self) -> Result<Vec<Candidate>, Usage> {
        if self.calibrate {
            return Err(Usage("--calibrate is for expressions and statements: leave out --ddl".to_owned()));
        }
        let fill = [FILL.to_owned()];
        let statements = if self.statement.is_empty() { &fill[..] } else { &self.statement };
        let (tables, timed) = (self.ddl.len(), statements.len());
        if tables != timed && tables > 1 && timed > 1 {
            return Err(Usage(format!(
                "{tables} --ddl and {timed} --statement: give the same number of both, or only one of either"
            )));
        }
        let candidate = |number: usize| {
            let (ddl, statement) = (&self.ddl[number.min(tables - 1)], &statements[number.min(timed - 1)]);
            let candidate = Candidate::new(Body::Table { ddl: ddl.clone(), statement: statement.clone() });
            if tables == 1 && timed > 1 {
                Candidate { name: statement.clone(), ..candidate }
            } else {
                candidate
            }
        };
        Ok((0..tables.max(timed)).map(candidate).collect())
    }
}

/// Reads a suite that comes with pgrig, or one from a file.
fn suite(name: &str) -> Result<Suite, Failure> {
    if let Some((_, text)) = shipped().into_iter().find(|(known, _)| *known == name) {
        return Ok(Suite::read(name, text)?);
    }
    let text = input::file(Path::new(name)).map_err(|error| {
        let known: Vec<&str> = shipped().into_iter().map(|(known, _)| known).collect();
        Usage(format!(
            "--suite {name}: cannot read this file ({error}): give another, or one of pgrig's own suites: {}",
            known.join(", ")
        ))
    })?;
    Ok(Suite::read(name, &text)?)
}

/// `1%` as 0.01.
fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err(format!("\"{text}\" is not a percentage: give one like 1% or 0.5%")),
    }
}
