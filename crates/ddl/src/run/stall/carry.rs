//! Carries out a pgbench script in a session, as pgbench does with the simple protocol.

use connect::{ConnectError, SqlState};
use script::{Action, Client, Receive, Sql, Variables};
use server::Session;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use crate::outcome::ProbeKind;
use crate::probing::ProbeScript;
use crate::run::failure;

/// A script with the state of its client.
#[derive(Clone)]
pub(super) struct Script {
    script: script::Script,
    client: Client,
}

/// Why a probe's work failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server refused a statement, or is gone.
    Server(ConnectError),
    /// The script needs other results, or an expression has no value.
    Script(String),
}

impl From<ConnectError> for Fault {
    fn from(error: ConnectError) -> Self {
        Self::Server(error)
    }
}

impl Fault {
    /// Whether it may succeed when it runs again.
    pub(super) fn is_again(&self) -> bool {
        let again = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        matches!(self, Self::Server(error) if error.sqlstate().is_some_and(|state| again.contains(state)))
    }

    /// The detail of the deadlock that the server ended with it, which names the processes (deadlock.c: `DeadLockReport`); none if it is another
    /// error.
    pub(super) fn deadlock(&self) -> Option<&str> {
        match self {
            Self::Server(ConnectError::Query { error, .. })
                if error.code == SqlState::T_R_DEADLOCK_DETECTED =>
            {
                Some(error.detail.as_deref().unwrap_or_default())
            }
            _ => None,
        }
    }

    pub(super) fn message(&self) -> String {
        match self {
            Self::Server(error) => failure::of(error).message,
            Self::Script(why) => why.clone(),
        }
    }
}

impl Script {
    pub(super) fn begin(script: &ProbeScript, kind: ProbeKind, seed: u64) -> Self {
        let (script, client) = script.begin(kind, seed);
        Self { script, client }
    }

    /// Carries it out once. If a statement fails, its transaction is rolled back.
    pub(super) async fn once(&mut self, session: &Session) -> Result<(), Fault> {
        let done = self.commands(session).await;
        if matches!(&done, Err(Fault::Script(_) | Fault::Server(ConnectError::Query { .. }))) {
            // Without a transaction that is no more than a warning.
            session.run("ROLLBACK").await?;
        }
        done
    }

    async fn commands(&mut self, session: &Session) -> Result<(), Fault> {
        let Self { script, client } = self;
        let mut next = 0;
        while let Some(at) =
            script.proceed(next, client).map_err(|failure| Fault::Script(failure.to_string()))?
        {
            match script.commands()[at].action() {
                Action::Sql(sql) => send(session, sql, &mut client.variables).await?,
                Action::Sleep(sleep) => {
                    let length = sleep.duration(&client.variables);
                    tokio::time::sleep(length.map_err(|error| Fault::Script(error.to_string()))?).await;
                }
                // Scripts with other commands are refused.
                _ => {}
            }
            next = at + 1;
        }
        Ok(())
    }
}

/// Sends a statement, and makes its results variables if the script says so.
async fn send(session: &Session, sql: &Sql, variables: &mut Variables) -> Result<(), Fault> {
    let mut text = Vec::new();
    sql.write(variables, &mut text);
    let text = String::from_utf8(text).map_err(|error| Fault::Script(error.to_string()))?;
    let Some(receive) = sql.receive() else { return Ok(session.run(&text).await?) };
    match session.connection.client.simple_query(&text).await {
        Ok(answer) => received(answer, receive, variables).map_err(Fault::Script),
        Err(error) => Err(session.connection.explain(error).await.of_statement(&text).into()),
    }
}

/// `\aset` takes the last row of each statement, `\gset` the only row of the last one.
fn received(
    answer: Vec<SimpleQueryMessage>,
    receive: &Receive,
    variables: &mut Variables,
) -> Result<(), String> {
    let (mut rows, mut row) = (0, None);
    let mut last = (0, None);
    for message in answer {
        match message {
            SimpleQueryMessage::Row(found) => {
                rows += 1;
                row = Some(found);
            }
            SimpleQueryMessage::CommandComplete(_) => {
                last = (rows, row.take());
                rows = 0;
                if let (true, Some(row)) = (receive.every, &last.1) {
                    take(row, receive, variables)?;
                }
            }
            _ => {}
        }
    }
    match (receive.every, last) {
        (true, _) => Ok(()),
        (false, (1, Some(row))) => take(&row, receive, variables),
        (false, (rows, _)) => Err(format!("\\gset: expected one row, got {rows}")),
    }
}

fn take(row: &SimpleQueryRow, receive: &Receive, variables: &mut Variables) -> Result<(), String> {
    for (place, column) in row.columns().iter().enumerate() {
        let slot = variables.names().receiving(&receive.prefix, column.name());
        if let Some(slot) = slot.map_err(|error| error.to_string())? {
            // NULL is an empty text, as in pgbench.
            variables.set_text(slot, row.get(place).unwrap_or_default());
        }
    }
    Ok(())
}
