//! Queries that read tables and return aggregates only: facts that statistics of single columns do not contain.

mod answers;
mod questions;
mod strata;

use model::TableFacts;
use tokio_postgres::Client;

pub(super) use self::questions::{Question, of_table, rows_of};
use crate::error::CatalogError;
use tokio_postgres::error::SqlState;

/// Values and pairs that fewer rows hold are not asked for.
#[derive(Clone, Copy, Debug)]
pub struct Aggregates {
    /// The number of rows.
    pub k: u32,
}

/// Asks, and adds the answers to the table's facts; `unseen` lists the questions that failed.
pub(super) async fn ask(
    client: &Client,
    questions: &[Question],
    asked: Aggregates,
    facts: &mut TableFacts,
    unseen: &mut Vec<String>,
) -> Result<(), CatalogError> {
    for question in questions {
        client.batch_execute("SAVEPOINT asked").await?;
        match client.query(&question.sql, &[]).await {
            Ok(rows) => {
                answers::add(question, &rows, asked, facts);
                client.batch_execute("RELEASE SAVEPOINT asked").await?;
            }
            Err(error) => {
                let is_refused = [
                    SqlState::QUERY_CANCELED,
                    SqlState::LOCK_NOT_AVAILABLE,
                    SqlState::INSUFFICIENT_PRIVILEGE,
                    SqlState::UNDEFINED_FUNCTION,
                ];
                let Some(why) = error.as_db_error().filter(|why| is_refused.contains(why.code())) else {
                    return Err(error.into());
                };
                unseen.push(format!(
                    "{}: pgrig did not query {}: {}",
                    facts.name,
                    question.subject(),
                    why.message()
                ));
                client.batch_execute("ROLLBACK TO SAVEPOINT asked").await?;
            }
        }
    }
    Ok(())
}
