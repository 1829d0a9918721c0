//! The refusal of poolers that change sessions.

use connect::{Connection, Target};
use server::changes_sessions;

use crate::app::failure::{Failure, Usage};
use crate::app::printer::Printer;

/// Refuses a pooler that changes sessions. If the verb allows that each statement runs in another
/// session, it only warns.
///
/// # Errors
/// If the connection leads to such a pooler, or is lost.
pub(crate) async fn refuse(
    target: &Target,
    connection: &Connection,
    may_change: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    if !changes_sessions(target, connection).await? {
        return Ok(());
    }
    let text = format!("{} is a connection pooler in transaction or statement mode", connection.transport);
    if may_change {
        printer.warn(format!("{text}: the measured times include the pooler"));
        return Ok(());
    }
    let remedy = "connect to the server directly, or use a pool with pool_mode = session";
    Err(Usage(format!("{text}, and pgrig needs one server session for the whole run: {remedy}")).into())
}
