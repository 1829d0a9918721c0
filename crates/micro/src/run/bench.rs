//! The measuring session: sets up, inspects plans, takes samples, and drops objects.

use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

use futures_util::StreamExt;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::candidate::{Body, Candidate};
use crate::error::MicroError;
use crate::plan::arms::{Timed, arms};
use crate::plan::calls::open_parentheses;
use crate::plan::finding::Finding;
use crate::plan::inspect::{compare_shapes, inspect, observe};
use crate::plan::{ArmPlan, LeftOut, Plan, Role};
use crate::request::Request;
use crate::run::rounds::{EXCEEDED, role};
use crate::run::rows;
use crate::run::scratch::Scratch;
use crate::run::session::{Given, listeners, set};
use connect::{ConnectError, Connection, ServerError};
use measure::paired::Arm;
use server::interruption::{Ended, until_stopped};
use server::{Session, Sessions};

/// Number of rows of a statement whose plan is read but not timed.
const LOOK_ROWS: u64 = 100_000;

pub(crate) struct Bench<'a> {
    pub(crate) request: &'a Request,
    pub(crate) sessions: Sessions<'a>,
    pub(crate) session: Session,
    scratch: Option<Scratch>,
    /// Whether --setup may have changed something.
    is_set_up: Cell<bool>,
    /// Whether this role may have the server write a checkpoint.
    may_checkpoint: Cell<bool>,
    /// Number of checkpoints that pgrig asked for.
    pub(crate) checkpoints: Cell<u64>,
    /// Number of complete rounds.
    pub(crate) rounds: Cell<usize>,
    notes: RefCell<Vec<String>>,
}

impl<'a> Bench<'a> {
    pub(crate) async fn open(sessions: Sessions<'a>, request: &'a Request) -> Result<Self, MicroError> {
        let session = sessions.open().await?;
        let scratch = request.creates_objects().then(|| Scratch::of(request));
        Ok(Self {
            request,
            sessions,
            session,
            scratch,
            is_set_up: Cell::new(false),
            may_checkpoint: Cell::new(true),
            checkpoints: Cell::new(0),
            rounds: Cell::new(0),
            notes: RefCell::default(),
        })
    }

    /// Applies settings for samples of so many rows, creates the objects that candidates need, and runs the
    /// user's setup.
    pub(crate) async fn begin(&self, connection: &Connection, rows: u64) -> Result<Vec<Given>, MicroError> {
        self.check_teardown().await?;
        let settings = set(&self.session, self.request, rows).await?;
        let listeners = listeners(&self.session).await?;
        self.notes.borrow_mut().extend(listeners);
        if let Some(scratch) = &self.scratch {
            scratch.prepare(&self.session, connection).await?;
            for name in &self.request.extensions {
                let missing = scratch.extension(&self.session, name).await?;
                self.notes.borrow_mut().extend(missing);
            }
        }
        if let Some(setup) = &self.request.setup {
            self.is_set_up.set(true);
            let script = |source| MicroError::Script { what: "--setup", source };
            self.session.run(setup).await.map_err(script)?;
        }
        Ok(settings)
    }

    /// Checks the syntax of the user's teardown, without executing it.
    async fn check_teardown(&self) -> Result<(), MicroError> {
        let Some(teardown) = &self.request.teardown else { return Ok(()) };
        // The server parses all statements of a query before it executes the first, which fails.
        match self.session.run(&format!("SELECT 1/0;\n{teardown}")).await {
            Err(source) if source.sqlstate() == Some(&SqlState::SYNTAX_ERROR) => {
                Err(MicroError::Script { what: "--teardown", source })
            }
            Err(source) if source.sqlstate() != Some(&SqlState::DIVISION_BY_ZERO) => Err(source.into()),
            _ => Ok(()),
        }
    }

    /// Runs the user's teardown.
    pub(crate) async fn tear_down(&self) -> Result<(), MicroError> {
        match &self.request.teardown {
            Some(teardown) if self.is_set_up.get() || self.request.setup.is_none() => {
                self.roll_back().await.map_err(MicroError::TearDown)?;
                self.session.run(teardown).await.map_err(MicroError::TearDown)
            }
            _ => Ok(()),
        }
    }

    /// Ends the transaction that a failed statement may have left open.
    async fn roll_back(&self) -> Result<(), ConnectError> {
        self.session.run("ROLLBACK").await
    }

    /// Whether pgrig creates objects.
    pub(crate) fn has_objects(&self) -> bool {
        self.scratch.is_some()
    }

    /// Drops everything that pgrig created.
    pub(crate) async fn clear(&self) -> Result<(), ConnectError> {
        match &self.scratch {
            Some(scratch) => {
                self.roll_back().await?;
                scratch.clear(&self.session).await
            }
            None => Ok(()),
        }
    }

    /// Reads the plans of the candidates that the server accepts. Candidates that must not be
    /// measured are refused here.
    pub(crate) async fn look(&self, settings: Vec<Given>) -> Result<(Vec<Timed>, Plan), MicroError> {
        let rows = if self.request.has_rows() { self.request.rows.unwrap_or(LOOK_ROWS) } else { 1 };
        let (mut left_out, mut numbers) = (Vec::new(), Vec::new());
        for (number, (name, candidate)) in
            self.request.names().iter().zip(&self.request.candidates).enumerate()
        {
            if let Some(because) = self.try_out(name, candidate, rows).await? {
                left_out.push(LeftOut { name: name.clone(), because });
                numbers.push(number);
            }
        }
        let arms = arms(self.request, &numbers);
        if arms.is_empty() {
            let all: Vec<String> =
                left_out.iter().map(|out| format!("{}: {}", out.name, out.because)).collect();
            return Err(MicroError::Request(format!(
                "the server supports none of the candidates:\n{}",
                all.join("\n")
            )));
        }
        self.create_tables(&arms).await?;
        let mut plan = Plan {
            arms: Vec::new(),
            left_out,
            settings,
            rows,
            fixed: None,
            schema: self.scratch.as_ref().map(|scratch| scratch.schema().to_owned()),
            findings: Vec::new(),
            notes: Vec::new(),
        };
        let mut candidates = Vec::new();
        for (number, arm) in arms.iter().enumerate() {
            let sql = self.sql(number, arm, rows);
            self.prepare(arm, &sql, rows, number).await?;
            let inspected = inspect(&self.session, &arm.name, &arm.body, &sql).await?;
            let role = role(arm.arm);
            plan.arms.push(ArmPlan {
                name: arm.name.clone(),
                role,
                ddl: arm.body.ddl(&self.table(number)),
                sql,
                executed: inspected.executed.clone(),
                shape: inspected.shape.clone(),
                sample: None,
            });
            if role == Role::Candidate {
                let of_candidate = inspected.kinds.iter().cloned();
                plan.findings.extend(of_candidate.map(|kind| Finding { candidate: arm.name.clone(), kind }));
                candidates.push((arm.name.clone(), inspected));
            }
        }
        plan.findings.extend(compare_shapes(&candidates));
        Ok((arms, plan))
    }

    /// Tries an optional candidate. Returns why it has to be left out; none if it does not.
    async fn try_out(
        &self,
        name: &str,
        candidate: &Candidate,
        rows: u64,
    ) -> Result<Option<String>, MicroError> {
        if !candidate.optional {
            return Ok(None);
        }
        let arm = Timed { arm: Arm::Candidate(0), name: name.to_owned(), body: candidate.body.clone() };
        let tried = async {
            self.create_tables(std::slice::from_ref(&arm)).await?;
            self.prepare(&arm, &self.sql(0, &arm, rows), rows, 0).await
        };
        match tried.await {
            Ok(_) => Ok(None),
            Err(MicroError::Candidate { why, .. }) => Ok(Some(why)),
            Err(error) => Err(error),
        }
    }

    /// Refuses candidates with findings that must not be measured.
    pub(crate) fn refuse(&self, findings: &[Finding]) -> Result<(), MicroError> {
        let refused = findings.iter().filter(|finding| finding.kind.is_refused());
        let sentences: Vec<String> = refused.map(ToString::to_string).collect();
        if sentences.is_empty() || self.request.anyway {
            Ok(())
        } else {
            Err(MicroError::Refused { findings: sentences })
        }
    }

    /// Finds the number of rows, and executes each candidate once with that number to complete the
    /// findings.
    pub(crate) async fn size_up(&self, arms: &[Timed], plan: &mut Plan) -> Result<(), MicroError> {
        let choice = rows::choose(self, arms, self.request.budget).await?;
        plan.rows = choice.rows;
        plan.fixed = Some(choice.fixed);
        for ((number, arm), sample) in arms.iter().enumerate().zip(choice.samples) {
            let sql = self.sql(number, arm, choice.rows);
            if plan.arms[number].role == Role::Candidate {
                let observing = observe(&self.session, &arm.name, &sql, choice.rows);
                let kinds = self.in_time(&arm.name, observing).await??;
                let known = |kind: &_| {
                    plan.findings.iter().any(|found| found.candidate == arm.name && found.kind == *kind)
                };
                let fresh: Vec<_> = kinds.into_iter().filter(|kind| !known(kind)).collect();
                plan.findings
                    .extend(fresh.into_iter().map(|kind| Finding { candidate: arm.name.clone(), kind }));
            }
            plan.arms[number].sql = sql;
            plan.arms[number].sample = Some(sample);
        }
        plan.notes = self.notes();
        Ok(())
    }

    /// The quoted name of an arm's table.
    fn table(&self, number: usize) -> String {
        self.scratch.as_ref().map_or_else(String::new, |scratch| scratch.table(number))
    }

    pub(crate) fn sql(&self, number: usize, arm: &Timed, rows: u64) -> String {
        arm.body.sql(rows, &self.table(number))
    }

    /// Creates all tables again, and makes the server write dirty buffers, so that no arm is slowed
    /// by another one's.
    pub(crate) async fn create_tables(&self, arms: &[Timed]) -> Result<(), MicroError> {
        let Some(scratch) = &self.scratch else { return Ok(()) };
        for (number, arm) in arms.iter().enumerate() {
            if let Some(ddl) = arm.body.ddl(&scratch.table(number)) {
                scratch.create(&self.session, number, &arm.name, &ddl).await?;
            }
        }
        Ok(())
    }

    /// Asks for a checkpoint, if this role may.
    pub(crate) async fn checkpoint(&self) -> Result<(), MicroError> {
        if !self.may_checkpoint.get() {
            return Ok(());
        }
        match self.session.run("CHECKPOINT").await {
            Ok(()) => self.checkpoints.set(self.checkpoints.get() + 1),
            Err(error) if error.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                self.may_checkpoint.set(false);
                let role = self.session.role().await?;
                let note = format!(
                    "role {role} may not run CHECKPOINT, so a checkpoint of the server may run during a round: connect as a \
                     superuser, or (PostgreSQL 15 or later) run GRANT pg_checkpoint TO {role}"
                );
                self.notes.borrow_mut().push(note);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Notes on the results so far.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }

    /// The arm's statement for so many rows, parsed by the server.
    pub(crate) async fn statement(
        &self,
        number: usize,
        arm: &Timed,
        rows: u64,
    ) -> Result<Statement, MicroError> {
        self.prepare(arm, &self.sql(number, arm, rows), rows, number).await
    }

    async fn prepare(
        &self,
        arm: &Timed,
        sql: &str,
        rows: u64,
        number: usize,
    ) -> Result<Statement, MicroError> {
        let refused = |why: String| MicroError::Candidate { name: arm.name.clone(), why };
        match self.session.connection.client.prepare(sql).await {
            Ok(statement) if statement.params().is_empty() => Ok(statement),
            Ok(_) => Err(refused("it has parameters ($1): write their values instead".to_owned())),
            Err(error) => match self.session.connection.explain(error).await {
                ConnectError::Query { error, .. } => {
                    let table = self.table(number);
                    let is_expression = matches!(arm.body, Body::Expression(_));
                    Err(refused(told(&error, is_expression, arm.body.source(rows, &table))))
                }
                error => Err(error.into()),
            },
        }
    }

    /// Executes the statement once. Returns the time from sending it until the server is ready
    /// again.
    pub(crate) async fn sample(&self, arm: &Timed, statement: &Statement) -> Result<Duration, MicroError> {
        let client = &self.session.connection.client;
        let execute = async {
            let none: [&(dyn ToSql + Sync); 0] = [];
            let started = Instant::now();
            let rows = client.query_raw(statement, none).await?;
            let mut rows: Pin<&mut _> = pin!(rows);
            while let Some(row) = rows.next().await {
                row?;
            }
            Ok(started.elapsed())
        };
        match self.in_time(&arm.name, execute).await? {
            Ok(elapsed) => Ok(elapsed),
            Err(error) => {
                let source = self.session.connection.explain(error).await;
                Err(MicroError::Sample { name: arm.name.clone(), source })
            }
        }
    }

    /// Waits for one execution of a candidate. Cancels it after the time that all rounds may take.
    pub(crate) async fn in_time<T>(
        &self,
        name: &str,
        execution: impl Future<Output = T>,
    ) -> Result<T, MicroError> {
        let most = EXCEEDED * self.request.budget;
        let overdue = tokio::time::sleep(most);
        match until_stopped(self.sessions.target, overdue, pin!(execution), || {}).await {
            Ended::Done(result) => Ok(result),
            Ended::Stopped(_) => Err(MicroError::TooLong {
                name: name.to_owned(),
                most: most.as_secs_f64(),
                has_rows: self.request.has_rows(),
            }),
        }
    }

    /// Position of the WAL, bytes since its beginning; none if the server does not tell it.
    pub(crate) async fn wal(&self) -> Result<Option<f64>, MicroError> {
        let so_far = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8";
        match self.session.row(so_far, &[]).await {
            Ok(row) => Ok(Some(row.get(0))),
            Err(ConnectError::Query { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The remedy for a text that the server refuses, by its error code and message.
fn remedy(error: &ServerError, is_expression: bool) -> &'static str {
    match error.code {
        SqlState::UNDEFINED_FUNCTION if is_expression && error.message.contains("integer") => {
            "; i is an integer (the number of the row): for a date, write date '2020-01-01' + i. If there is no such function, check \
             the spelling and the server's version, or run CREATE EXTENSION"
        }
        SqlState::SYNTAX_ERROR if is_expression && error.message.contains("subquery must return") => {
            "; for a statement, give --statement 'SELECT 1'"
        }
        SqlState::FEATURE_NOT_SUPPORTED if error.message.contains("set-returning") => {
            "; an expression must give one value for each row: give a statement, for example --statement 'SELECT count(*) \
             FROM generate_series(1, 1000)'"
        }
        SqlState::GROUPING_ERROR | SqlState::WINDOWING_ERROR => {
            "; an expression is evaluated for each row: use --statement for aggregates and window functions"
        }
        SqlState::UNDEFINED_FUNCTION | SqlState::UNDEFINED_OBJECT => {
            "; check the spelling and the server's version, or run CREATE EXTENSION"
        }
        SqlState::INDETERMINATE_DATATYPE if error.message.contains("parameter $") => {
            "; it has parameters ($1): write their values instead"
        }
        SqlState::UNDEFINED_COLUMN if !is_expression && error.message.contains("column \"i\" ") => {
            "; i exists only in expressions: give the expression without --statement, or make i in the statement: SELECT … FROM \
             generate_series(1, {rows}) AS g(i)"
        }
        SqlState::SYNTAX_ERROR if !is_expression && error.message.contains("at or near \"{\"") => {
            "; the placeholder of the number of rows is {rows}, and that of a candidate's table, with --ddl, {table}"
        }
        SqlState::SYNTAX_ERROR if error.message.contains("multiple commands") => {
            "; put SQL that is not timed into --setup"
        }
        _ => "",
    }
}

/// The remedy for an expression that is written otherwise than one; none if the server's error has another cause.
fn remedy_of_expression(code: &SqlState, text: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match *code {
        SqlState::SYNTAX_ERROR if text.ends_with(';') => {
            Some("; leave out the semicolon at the end".to_owned())
        }
        SqlState::UNDEFINED_COLUMN if text.chars().all(is_word) => Some(format!(
            "; for a function, write a call: '{text}(i::text)', or '{text}(i)' if its argument is a number"
        )),
        // A subquery has columns of its own.
        SqlState::UNDEFINED_COLUMN if !text.to_ascii_lowercase().contains("select") => {
            Some("; an expression has one column: i, the number of the row".to_owned())
        }
        _ => None,
    }
}

/// The server's message, its place in the user's text, and the remedy.
fn told(error: &ServerError, is_expression: bool, source: Option<(&str, usize)>) -> String {
    let expression = source.filter(|_| is_expression).map(|(text, _)| text.trim());
    let remedy = expression
        .and_then(|text| remedy_of_expression(&error.code, text))
        .unwrap_or_else(|| remedy(error, is_expression).to_owned());
    let place = error.position.zip(source).and_then(|(position, (text, before))| {
        // An error in the part that pgrig appends is shown at the end of the user's text.
        let at = (position as usize).checked_sub(before + 1)?.min(text.chars().count());
        Some(caret(text, at))
    });
    if is_expression && is_cut_off(error, source) {
        return format!("the expression is incomplete: complete it{}", place.unwrap_or_default());
    }
    let error = error.to_string();
    // A hint of the server's is a sentence of its own.
    let error = if remedy.is_empty() { error.as_str() } else { error.trim_end_matches('.') };
    format!("{error}{remedy}{}", place.unwrap_or_default())
}

/// Whether the server reads the part that pgrig appends as a part of the user's text, which ends too early.
fn is_cut_off(error: &ServerError, source: Option<(&str, usize)>) -> bool {
    let is_behind = |(position, (text, before)): (u32, (&str, usize))| {
        position as usize > before + text.chars().count() && open_parentheses(text).is_some()
    };
    error.code == SqlState::SYNTAX_ERROR && error.position.zip(source).is_some_and(is_behind)
}

/// The line of the text that has this character, and a caret below it.
fn caret(text: &str, at: usize) -> String {
    let before: String = text.chars().take(at).collect();
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let column = before[start..].chars().count();
    format!("\n  {line}\n  {:column$}^", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_its_character() {
        assert_eq!(caret("i + ü * x", 8), "\n  i + ü * x\n          ^");
        assert_eq!(caret("i\n + + x", 5), "\n   + + x\n     ^");
        assert_eq!(caret("i +", 3), "\n  i +\n     ^");
    }
}
