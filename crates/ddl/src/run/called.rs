//! The effects of the functions that a statement calls, by their bodies: the locks do not tell them if the transaction has these already, or if the
//! statement writes other tables, too.

use std::collections::BTreeSet;

use connect::ConnectError;
use server::Session;
use tokio_postgres::Row;

use crate::parts::{Call, Parts, Write};

/// The effects that bodies name.
#[derive(Default)]
pub(super) struct Code {
    /// The writes of rows.
    pub(super) writes: Vec<Write>,
    /// The tables that are copied into new files, as they are named there.
    pub(super) copied: Vec<String>,
}

/// The effects of all functions in SQL and PL/pgSQL that a statement calls, also by other functions. Functions of the server and of
/// extensions are not among them, nor those of triggers. The session is that of the migration.
pub(super) async fn code(session: &Session, sql: &str) -> Result<Code, ConnectError> {
    let (mut known, mut code) = (BTreeSet::new(), Code::default());
    let mut calls = Call::all_of(sql);
    while !calls.is_empty() {
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        let rows = session.rows(include_str!("../sql/functions.sql"), &[&names]).await?;
        let mut inner = Vec::new();
        for row in rows.iter().filter(|row| calls.iter().any(|call| is_called(row, call))) {
            if known.insert(row.get::<_, u32>("oid")) {
                let (body, is_overloaded): (&str, bool) = (row.get("body"), row.get("is_overloaded"));
                // The text does not tell which of several functions of a name runs.
                code.writes.extend(Write::all_in(body, !is_overloaded));
                code.copied.extend(Parts::copied_in(body));
                inner.extend(Call::all_in(body));
            }
        }
        calls = inner;
    }
    Ok(code)
}

/// Whether a function is the one that is called.
fn is_called(row: &Row, call: &Call) -> bool {
    let is_of_schema = match &call.schema {
        Some(schema) => row.get::<_, &str>("schema") == schema,
        None => row.get("is_visible"),
    };
    is_of_schema && row.get::<_, &str>("name") == call.name
}
