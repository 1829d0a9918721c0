//! Reads the server's answers to a client, and keeps only the results that a script uses.

use std::fmt::{self, Display, Formatter};

use script::{Receive, Slot, Variables};
use tokio_postgres::error::SqlState;

use crate::run::wire::{Columns, Copied, Message, Row, TransactionStatus, Wire};
use connect::{ConnectError, ServerError};

/// An answer that is being read. Its memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Number of ReadyForQuery messages that are still to come.
    missing: u32,
    problem: Option<Problem>,
    results: Results,
}

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The server's first error.
    Server(Box<ServerError>),
    /// The script needs other results.
    Results(String),
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Results(why) => f.write_str(why),
        }
    }
}

impl Problem {
    /// Whether the server found a syntax error at a colon, as that of a variable of the script's that stays in the statement.
    pub(crate) fn is_at_a_colon(&self) -> bool {
        let Self::Server(error) = self else { return false };
        error.code == SqlState::SYNTAX_ERROR && error.message.contains("\":\"")
    }
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct CompleteAnswer {
    pub(crate) status: TransactionStatus,
    pub(crate) problem: Option<Problem>,
}

/// The parts of results that `\gset` and `\aset` need.
#[derive(Debug, Default)]
struct Results {
    /// Number of statements that are complete.
    done: usize,
    /// Whether the statement that the described result belongs to is complete.
    is_over: bool,
    rows: usize,
    /// Slot of each column's value; none for a column that no script reads.
    slots: Vec<Option<Slot>>,
    /// The values of the last row, one after the other, and the end of each. NULL is an empty text,
    /// as in pgbench.
    values: Vec<u8>,
    ends: Vec<usize>,
}

impl Answer {
    /// Prepares for the answer to `ready` Query or Sync messages.
    pub(crate) fn expect(&mut self, ready: u32) {
        self.missing = ready;
        self.problem = None;
        self.results.begin();
    }

    /// Reads the messages that have arrived. None as long as the answer is incomplete. `receive`
    /// names the variables that get the results.
    pub(crate) fn read(
        &mut self,
        wire: &mut Wire,
        receive: Option<&Receive>,
        variables: &mut Variables,
        mut parsed: impl FnMut(),
    ) -> Result<Option<CompleteAnswer>, ConnectError> {
        while let Some(message) = wire.next()? {
            match message {
                Message::ReadyForQuery(status) => {
                    self.missing -= 1;
                    if self.missing == 0 {
                        return Ok(Some(self.complete(status, receive, variables)));
                    }
                }
                Message::ParseComplete => parsed(),
                Message::Error(error) => {
                    self.problem.get_or_insert(Problem::Server(error));
                }
                Message::Copy(copied) => {
                    // There is no way out of it but the connection's end.
                    let why = match copied {
                        Copied::In => {
                            "COPY FROM STDIN is not possible in a script: use a file or a program on the server"
                        }
                        Copied::Out => {
                            "COPY TO STDOUT is not possible in a script: use SELECT, or a file or a program on the \
                             server"
                        }
                    };
                    let problem = Some(Problem::Results(why.to_owned()));
                    return Ok(Some(CompleteAnswer { status: TransactionStatus::Failed, problem }));
                }
                message => {
                    if let Some(receive) = receive
                        && self.problem.is_none()
                        && let Err(why) = self.results.read(&message, receive, variables)
                    {
                        self.problem = Some(Problem::Results(why));
                    }
                }
            }
        }
        Ok(None)
    }

    fn complete(
        &mut self,
        status: TransactionStatus,
        receive: Option<&Receive>,
        variables: &mut Variables,
    ) -> CompleteAnswer {
        if let Some(Receive { every: false, .. }) = receive
            && self.problem.is_none()
            && let Err(why) = self.results.take_only_row(variables)
        {
            self.problem = Some(Problem::Results(why));
        }
        CompleteAnswer { status, problem: self.problem.take() }
    }
}

impl Results {
    fn begin(&mut self) {
        self.done = 0;
        self.begin_result();
    }

    fn begin_result(&mut self) {
        self.is_over = false;
        self.rows = 0;
        self.slots.clear();
        self.values.clear();
        self.ends.clear();
    }

    fn read(
        &mut self,
        message: &Message<'_>,
        receive: &Receive,
        variables: &mut Variables,
    ) -> Result<(), String> {
        match message {
            Message::RowDescription(columns) => {
                self.begin_result();
                self.receive_into(*columns, receive, variables)?;
            }
            Message::DataRow(row) => self.keep(*row),
            Message::CommandComplete(_) | Message::EmptyQuery => {
                if self.is_over {
                    // This statement had no rows: nothing was described.
                    self.begin_result();
                }
                self.done += 1;
                self.is_over = true;
                if receive.every {
                    self.take_row(variables)?;
                }
            }
            Message::NoData => self.begin_result(),
            _ => {}
        }
        Ok(())
    }

    fn receive_into(
        &mut self,
        columns: Columns<'_>,
        receive: &Receive,
        variables: &Variables,
    ) -> Result<(), String> {
        for name in columns.names() {
            let slot = variables.names().receiving(&receive.prefix, &String::from_utf8_lossy(name));
            self.slots.push(slot.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    fn keep(&mut self, row: Row<'_>) {
        self.rows += 1;
        self.values.clear();
        self.ends.clear();
        for value in row.values() {
            self.values.extend_from_slice(value.unwrap_or_default());
            self.ends.push(self.values.len());
        }
    }

    /// For `\gset`: takes the only row of the last statement.
    fn take_only_row(&mut self, variables: &mut Variables) -> Result<(), String> {
        if self.rows != 1 {
            let query = self.done.saturating_sub(1);
            return Err(format!("query {query}: expected one row, got {}", self.rows));
        }
        self.take_row(variables)
    }

    /// Makes the last row's values variables, if there is a row.
    fn take_row(&mut self, variables: &mut Variables) -> Result<(), String> {
        let mut start = 0;
        for (slot, end) in self.slots.iter().zip(&self.ends) {
            if let Some(slot) = slot {
                let text =
                    std::str::from_utf8(&self.values[start..*end]).map_err(|error| error.to_string())?;
                variables.set_text(*slot, text);
            }
            start = *end;
        }
        Ok(())
    }
}
