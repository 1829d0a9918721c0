//! A client: a session with a table of its own.

use std::time::{Duration, Instant};

use tokio_postgres::SimpleQueryMessage;

use crate::error::BlockioError;
use crate::plan::{Names, Plan};
use crate::request::Mode;
use crate::run::explain::Touched;
use crate::run::scratch::mark_working;
use crate::run::vacuum::Rates;
use crate::step::{Action, Query, Step};
use connect::ConnectError;
use server::quote::identifier;
use server::{Session, Sessions};

pub(crate) struct Client<'p> {
    pub(crate) session: Session,
    pub(crate) names: &'p Names,
    plan: &'p Plan,
    /// Whether the server records how long it waits for blocks.
    pub(crate) io_timing: bool,
}

/// Observations of one client in a step.
pub(crate) struct Seen {
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    /// Blocks and rows that queries touched.
    pub(crate) touched: Option<Touched>,
    /// Rates of VACUUM.
    pub(crate) rates: Option<Rates>,
    /// Number of rows that the statement created, as the server counted them.
    pub(crate) rows: u64,
}

impl Seen {
    /// Time from the first client's start to the last one's end.
    pub(crate) fn together(all: &[Self]) -> Duration {
        let first = all.iter().map(|seen| seen.started).min();
        let last = all.iter().map(|seen| seen.ended).max();
        first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

impl<'p> Client<'p> {
    pub(crate) async fn open(
        sessions: &Sessions<'_>,
        plan: &'p Plan,
        names: &'p Names,
    ) -> Result<Self, ConnectError> {
        let session = sessions.open().await?;
        mark_working(&session, &plan.schema).await?;
        // A server of 14 and later then notices within a second that pgrig was killed.
        attempt(&session, "SET client_connection_check_interval = '1s'").await?;
        // VACUUM's rates are looked for in English.
        attempt(&session, "SET lc_messages = 'C'").await?;
        match plan.request.mode {
            Mode::Own => attempt(&session, "SET track_io_timing = on").await?,
            Mode::Compat => session.run(&format!("SET search_path = {}", identifier(&plan.schema))).await?,
        }
        let io_timing = session.row("SELECT current_setting('track_io_timing')::bool", &[]).await?.get(0);
        Ok(Self { session, names, plan, io_timing })
    }

    /// Carries out the step; only the statement itself is timed.
    pub(crate) async fn run(&self, step: &'static Step) -> Result<Seen, BlockioError> {
        let failed = |source| BlockioError::Step { step: step.title, source };
        let forced = self.plan.request.mode == Mode::Own && step.action == Action::Query(Query::ByIndex);
        if forced {
            self.session.run("SET enable_seqscan = off").await.map_err(failed)?;
        }
        let sql = step.sql(self.plan, self.names);
        self.session.connection.take_notices();
        let started = Instant::now();
        let answer = self.session.connection.client.simple_query(&sql).await;
        let ended = Instant::now();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(failed(self.session.connection.explain(error).await)),
        };
        if forced {
            self.session.run("RESET enable_seqscan").await.map_err(failed)?;
        }
        let touched =
            matches!(step.action, Action::Query(_)).then(|| self.touched(step, &answer)).transpose()?;
        let notices = self.session.connection.take_notices();
        let is_vacuum = step.action == Action::Vacuum;
        let rates = is_vacuum.then(|| Rates::of(notices.iter().map(tokio_postgres::error::DbError::message)));
        let rows = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
            _ => None,
        });
        Ok(Seen { started, ended, touched, rates: rates.flatten(), rows: rows.unwrap_or(0) })
    }

    fn touched(&self, step: &Step, answer: &[SimpleQueryMessage]) -> Result<Touched, BlockioError> {
        let lines: Vec<String> = answer
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })
            .collect();
        let found = match self.plan.request.mode {
            Mode::Own => Touched::of_json(&lines.concat()),
            Mode::Compat => Touched::of_text(&lines),
        };
        found.ok_or_else(|| BlockioError::Explain { step: step.title, what: lines.join("\n") })
    }
}

/// Runs a statement for which the role may lack a privilege, or the platform the means.
async fn attempt(session: &Session, sql: &str) -> Result<(), ConnectError> {
    match session.run(sql).await {
        Ok(()) | Err(ConnectError::Query { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
