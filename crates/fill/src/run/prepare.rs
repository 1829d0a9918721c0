//! Ledgers for the tables of a schema that parts fill: the first part to arrive begins or checks them.

use connect::Target;
use server::Session;

use super::Observer;
use super::filler::Filler;
use super::resume;
use crate::error::FillError;
use crate::ledger::{self, Ledger};
use crate::plan::Plan;

/// Begins the ledger of a table of which no fill has begun, in the transaction of the session.
///
/// # Errors
/// If the server refuses.
pub(crate) async fn begin_ledger(
    target: &Target,
    session: &Session,
    plan: &Plan,
    observer: &dyn Observer,
) -> Result<Ledger, FillError> {
    if plan.stale_ledger {
        session.run(&ledger::remove(&plan.schema, plan.bulk_name())).await?;
    }
    let filler = Filler::new(target, plan, None, None, false, None, observer);
    filler.begin_ledger(session).await?;
    Ok(filler.ledger.into_inner().expect("begun"))
}

/// The ledger of a fill that has begun. If no other part has done so, compares the rows with the records, and readies the table
/// for further rows.
///
/// # Errors
/// If the table is not as the fill left it, or the server refuses.
pub(crate) async fn continue_ledger(
    target: &Target,
    session: &Session,
    plan: &Plan,
    is_prepared: bool,
    observer: &dyn Observer,
) -> Result<Ledger, FillError> {
    let begun = plan.unfinished.as_ref().expect("a fill that has begun");
    if is_prepared {
        return resume::join(session, plan, begun).await;
    }
    let ledger = resume::resume(session, plan, begun, observer).await?;
    let filler = Filler::new(target, plan, None, None, false, None, observer);
    match filler.prepare(session, &ledger).await {
        Ok(()) => Ok(ledger),
        Err(cause) => Err(super::failed(&filler, Some(cause)).await),
    }
}
