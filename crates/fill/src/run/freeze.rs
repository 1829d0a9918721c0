//! Freezes rows during the load, for fills that a lack of space ends.
//!
//! The first statement that reads a row after its commit sets hint bits on its page. With checksums
//! or `wal_log_hints` that writes the whole page to WAL, unless the page was changed since the last
//! checkpoint; a later VACUUM does the same. When the disk is almost full, there is no room for so
//! much WAL. Pages that are frozen shortly after their load need no images, and reading never
//! changes frozen pages.

use crate::cause::Cause;
use crate::limits::{AdmissionControl, Shortage};
use crate::run::filler::Filler;
use connect::ConnectError;
use server::Session;
use server::quote::qualified;

/// Least heap that is loaded between two passes, bytes. There is always room for the images of the
/// pages that are not frozen yet.
const STRETCH: u64 = 32 << 20;
/// Each pass reads the whole visibility map, so passes get rarer as the table grows: one for each
/// of so many parts of the table.
const PARTS: u64 = 256;
/// Vacuum settings for rows that were there before, whose pages may need images: 25 pages in 2 ms,
/// which checkpoints keep up with.
const THROTTLED: &str =
    "SET vacuum_cost_delay = '2ms'; SET vacuum_cost_limit = 500; SET vacuum_cost_page_dirty = 20";
const UNTHROTTLED: &str = "SET vacuum_cost_delay = 0";

impl Filler<'_> {
    /// Freezes the rows that were loaded since the last pass, if there are enough of them. Streams
    /// wait meanwhile.
    pub(crate) async fn freeze_behind(&self, session: &Session) -> Result<(), Cause> {
        if !self.freezes() {
            return Ok(());
        }
        let mut frozen = self.frozen.lock().await;
        let rows = self.progress.rows();
        let due = STRETCH.max(self.plan.heap_of(rows) / PARTS);
        let unfrozen = self.plan.heap_of(rows.saturating_sub(frozen.unwrap_or(0)));
        self.hold_unfrozen(unfrozen);
        if unfrozen < due {
            return Ok(());
        }
        let is_first = frozen.is_none();
        self.freeze(session, &self.plan.tables.bulk.name, is_first).await?;
        *frozen = Some(rows);
        self.hold_unfrozen(0);
        Ok(())
    }

    fn hold_unfrozen(&self, bytes: u64) {
        self.control.iter().for_each(|control| control.hold_unfrozen(bytes));
    }

    /// Freezes all loaded rows, while no stream loads.
    pub(crate) async fn freeze_all(&self, session: &Session) -> Result<(), Cause> {
        if !self.freezes() {
            return Ok(());
        }
        let is_first = self.frozen.lock().await.is_none();
        for table in self.plan.tables.all() {
            self.freeze(session, &table.name, is_first).await?;
        }
        Ok(())
    }

    fn freezes(&self) -> bool {
        self.plan.freezes && self.control.as_ref().is_some_and(AdmissionControl::ends_at_space)
    }

    async fn freeze(&self, session: &Session, table: &str, is_first: bool) -> Result<(), Cause> {
        let had_rows = self.plan.append || self.plan.unfinished.is_some();
        session.run(if is_first && had_rows { THROTTLED } else { UNTHROTTLED }).await?;
        let name = qualified(&self.plan.schema, table);
        let vacuum = format!("VACUUM (FREEZE, INDEX_CLEANUP off, TRUNCATE false) {name}");
        match session.run(&vacuum).await {
            // The load meets the full disk, too, and decides how the fill continues.
            Err(error) if is_shortage(&error) => Ok(()),
            done => Ok(done?),
        }
    }
}

fn is_shortage(error: &ConnectError) -> bool {
    Shortage::of(error).is_some()
}
