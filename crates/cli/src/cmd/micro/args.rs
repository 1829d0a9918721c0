//! `pgrig micro`'s arguments, and the request that they make.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use micro::{Body, Candidate, FILL, MOST_ROWS, Request, Suite, shipped};
use server::quote::shell_word;

use crate::app::args::{SaveArgs, ServerChoice, share, up_to};
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

/// Find the cheapest SQL expression, in nanoseconds per row
///
/// A candidate is an expression, a statement (--statement), or a table (--ddl). pgrig first reads the query plan of each candidate, and
/// refuses an expression that the planner leaves out or computes only once. Exception: an expression that is only a literal. Then pgrig measures in rounds. A round
/// runs each candidate once, the empty loop (the query without an expression), and the first candidate again, in random order. pgrig compares the times within each round. The verdict is faster or slower (by a number of ns, with an
/// interval), no change, or inconclusive. To measure expressions and statements, the role needs only the privileges to run them.
/// --ddl needs CREATE on the database, or on the schema of --schema if it exists; --save-in-database needs CREATE on the
/// database, or on the schema benchmark if it exists. The method is that of the article "PostgreSQL:
/// Accurately Benchmarking Features Which Take Very Little Time".
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
        pgrig micro 'gen_random_uuid()' 'uuidv7()'\n  \
        pgrig micro 'md5(i::text)' 'sha256(i::text::bytea)' -d mydb --explain\n  \
        pgrig micro --statement 'SELECT count(*) FROM pg_class' \\\n              \
        --statement 'SELECT oid FROM pg_class'\n  \
        pgrig micro --ddl 'CREATE TABLE {table} (n serial)' \\\n              \
        --ddl 'CREATE TABLE {table} (n int)'\n  \
        pgrig micro --suite uuid\n")]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(crate) struct MicroArgs {
    /// SQL expressions; i is the row number. pgrig compares each with the first. If you give only one, pgrig compares it with the empty loop
    #[arg(value_name = "EXPR", conflicts_with_all = ["statement", "ddl", "suite"])]
    pub(crate) expressions: Vec<String>,

    /// Measure this SQL statement; {rows} in it stands for the number of --rows; may be repeated
    #[arg(long, value_name = "SQL", conflicts_with = "suite", help_heading = "Measurement")]
    pub(crate) statement: Vec<String>,

    /// Measure a table that this SQL text (not a file) creates, with {table} for its name; may be repeated. In each
    /// round, pgrig creates a new table and times --statement on it; without --statement, an INSERT of default values
    #[arg(long, value_name = "SQL", conflicts_with = "suite", help_heading = "Measurement")]
    pub(crate) ddl: Vec<String>,

    /// Measure the candidates of this TOML file, or of one of pgrig's suites: uuid, defaults, uuid-defaults,
    /// integer-keys, uuid-keys, indexes
    #[arg(long, value_name = "FILE|NAME", help_heading = "Measurement")]
    pub(crate) suite: Option<String>,

    /// Subtract the time of this statement from the time of each --statement
    #[arg(long, value_name = "SQL", help_heading = "Measurement")]
    pub(crate) empty: Option<String>,

    /// Run this SQL once at the start, in the session that measures
    #[arg(long, value_name = "SQL", help_heading = "Measurement")]
    pub(crate) setup: Option<String>,

    /// Run this SQL at the end, also after an error or Ctrl-C; after Ctrl-C, pgrig cancels it if it takes more than 1 s
    #[arg(long, value_name = "SQL", help_heading = "Measurement")]
    pub(crate) teardown: Option<String>,

    /// Measure how much the times of one expression (or of the empty loop) scatter at 10, 100 … 10,000,000 rows
    #[arg(long, conflicts_with_all = ["explain", "save_in_database"], help_heading = "Measurement")]
    pub(crate) calibrate: bool,

    /// Number of rows in each timed execution (sample) [default: pgrig measures how many it needs]
    #[arg(long, value_name = "N", value_parser = up_to::<u64>(MOST_ROWS), help_heading = "Method")]
    pub(crate) rows: Option<u64>,

    /// Measure for at most this time in total; stop earlier when the intervals are narrow enough for a verdict
    /// [default: 10s; 30s with --ddl, 1min with --calibrate]
    #[arg(long, value_name = "DURATION", help_heading = "Method")]
    pub(crate) budget: Option<Length>,

    /// Give the verdict "faster" or "slower" only if the difference is at least PERCENT of the first candidate's time, and "no
    /// change" only if the whole confidence interval of the difference lies between -PERCENT and +PERCENT of that time
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = share, help_heading = "Method")]
    pub(crate) threshold: f64,

    /// Seed of the random order in each round
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Method")]
    pub(crate) seed: u64,

    /// Measure candidates even if pgrig would refuse them because of their plan
    #[arg(long, help_heading = "Method")]
    pub(crate) anyway: bool,

    /// Create the tables of --ddl in this schema; if it does not exist, create it, and drop it at the end
    /// [default: pgrig_micro]
    #[arg(long, value_name = "SCHEMA", help_heading = "Method")]
    pub(crate) schema: Option<String>,

    /// Print the plan and the EXPLAIN output of each statement, and exit without measuring. For the plan, pgrig runs --setup and
    /// --teardown, and creates the tables of --ddl, which it drops again
    #[arg(long, visible_alias = "dry-run", help_heading = "Output")]
    pub(crate) explain: bool,

    /// Print the table of results as text, Markdown, or CSV with full precision; with md and csv, standard output
    /// contains only the table
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

    /// Also insert the time of each sample into the schema benchmark of the database. pgrig creates the schema and its views
    /// compare_outcome and compare_outcome_threshold if they are missing, and drops nothing
    #[arg(long, help_heading = "Output")]
    pub(crate) save_in_database: bool,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

impl MicroArgs {
    /// The benchmark's request, from the options.
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
        let request = Request {
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
        };
        if request.schema.is_some() && !request.creates_objects() {
            let text = "--schema is for the tables of --ddl: leave it out for expressions and statements";
            return Err(Usage(text.to_owned()).into());
        }
        Ok(request)
    }

    fn candidates(&self) -> Result<Vec<Candidate>, Usage> {
        if !self.ddl.is_empty() {
            return self.tables();
        }
        if let Some(remedy) = self.expressions.iter().find_map(|text| of_file(text)) {
            return Err(Usage(remedy));
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
                "there are {tables} --ddl and {timed} --statement: give as many --statement as --ddl, or a single --ddl, or a \
                 single --statement"
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

/// The remedy for the name of a file in the place of an expression.
fn of_file(text: &str) -> Option<String> {
    if text.contains(|c: char| c.is_whitespace() || "()'\"".contains(c)) {
        return None;
    }
    let told = if has_ending(text, "sql") {
        statement_of(text)
    } else if has_ending(text, "toml") {
        format!("to name a suite, give --suite {}", shell_word(text))
    } else {
        return None;
    };
    Some(format!("unexpected argument {text}: {told}"))
}

/// The option for the statement in a file.
fn statement_of(file: &str) -> String {
    format!("to measure the statement in the file, give --statement \"$(cat {})\"", shell_word(file))
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// Reads a suite that comes with pgrig, or one from a file.
fn suite(name: &str) -> Result<Suite, Failure> {
    if let Some((_, text)) = shipped().into_iter().find(|(known, _)| *known == name) {
        return Ok(Suite::read(name, text)?);
    }
    let text = input::file(Path::new(name)).map_err(|error| {
        let known: Vec<&str> = shipped().into_iter().map(|(known, _)| known).collect();
        Usage(format!("--suite {name}: {error}, or give one of pgrig's own suites: {}", known.join(", ")))
    })?;
    Suite::read(name, &text).map_err(|error| {
        if has_ending(name, "sql") {
            Usage(format!("--suite {name}: this is SQL, not a suite in TOML: {}", statement_of(name))).into()
        } else {
            error.into()
        }
    })
}
