//! Tables that COPY loads whole, side by side: each in one transaction that empties it first.
//!
//! Where `wal_level` is minimal, such rows need no WAL, and they come frozen. One transaction is one session, so cores are
//! used by tables side by side. An interrupted table is loaded again from its beginning; tables that are filled stay.

use super::{PlannedTable, Planner, TableState};
use crate::error::FillError;
use crate::plan::{ForeignKeys, Method, Plan};
use crate::request::Persistence;
use catalog::TableInfo;
use server::ask;
use server::quote::qualified;

/// Tables that are filled at once.
pub(in crate::schema) const LANES: usize = 2;
/// Greatest share of all bytes that the largest table may have: while it is loaded, the other
/// tables keep the other core busy.
const LARGEST_SHARE: f64 = 0.6;
/// Greatest size of a table that is loaded whole, bytes: an interruption loses at most that much
/// for each lane.
const LARGEST: u64 = 8 << 30;

const REASON: &str = "two tables at once, each truncated and loaded in one transaction, so that its rows need no WAL \
                      (wal_level = minimal)";

impl Planner<'_> {
    /// Makes COPY load the tables whole, if that is possible and faster. `drops` drops the
    /// postponed keys and indexes, in the session's transaction.
    pub(super) async fn load_whole(
        &self,
        tables: &[TableInfo],
        planned: &mut [PlannedTable],
        drops: &[String],
    ) -> Result<(), FillError> {
        if !self.pays(planned) {
            return Ok(());
        }
        let names: Vec<String> = tables.iter().map(|table| qualified(&table.schema, &table.name)).collect();
        self.run("SAVEPOINT whole").await?;
        for statement in drops {
            self.run(statement).await?;
        }
        let stand_alone = self.stand_alone(&names).await?;
        self.run("ROLLBACK TO SAVEPOINT whole").await?;
        if !stand_alone {
            return Ok(());
        }
        for table in planned {
            if let TableState::ToFill(plan) = &mut table.state {
                load_whole(plan);
                table.recorded.whole = true;
            }
        }
        Ok(())
    }

    fn pays(&self, planned: &[PlannedTable]) -> bool {
        let needs_no_wal =
            self.survey.server.skips_wal() || self.request.persistence == Persistence::Unlogged;
        let largest = planned.iter().map(|table| table.predicted).max().unwrap_or(0);
        let all: u64 = planned.iter().map(|table| table.predicted).sum();
        self.request.ddl.is_some()
            && self.request.part.is_none()
            && self.request.streams.is_none()
            && self.request.chunk.is_none()
            && !self.request.in_chunks
            && needs_no_wal
            && usize::from(self.survey.site.cores()) >= LANES
            && planned.iter().all(|table| table.plan().is_none_or(can_be_whole))
            && largest <= LARGEST
            && largest as f64 <= LARGEST_SHARE * all as f64
    }

    /// Whether each table can be emptied without the others, and has no trigger on INSERT or
    /// TRUNCATE.
    pub(super) async fn stand_alone(&self, tables: &[String]) -> Result<bool, FillError> {
        let row = ask(self.connection, include_str!("../../sql/stand_alone.sql"), &[&tables]).await?;
        Ok(row.get("stand_alone"))
    }
}

/// Whether one transaction can load the table.
fn can_be_whole(plan: &Plan) -> bool {
    plan.method == Method::ChunkedCopy
        && plan.foreign_keys == ForeignKeys::None
        && plan.silenced.is_empty()
        && plan.unfinished.is_none()
}

/// Whether one transaction loads the table.
pub(super) fn is_whole(plan: &Plan) -> bool {
    plan.method == Method::FrozenCopy
}

/// Has one transaction load the table.
pub(super) fn load_whole(plan: &mut Plan) {
    let rows = plan.rows().unwrap_or(1).max(1);
    plan.reasons.retain(|reason| !reason.starts_with("chunk by chunk"));
    plan.reasons.insert(0, REASON.to_owned());
    plan.load_whole(rows);
}
