//! Free space that the heaps of a model's original have between their rows.
//!
//! To keep it, a table has a lower fillfactor while it is filled, at which a page gets as many rows as in the original. After
//! its rows, it gets its own fillfactor again. Rows of both methods, COPY and pages, keep to it.

use measure::human::bytes;

use super::amounts::{is_name_of, is_named};
use super::design::{Design, Designed};
use super::{PlannedTable, Planner, TableState};
use crate::error::FillError;
use crate::plan::Sample;
use crate::schema::request::{OriginalHeap, SchemaRequest};
use server::quote::qualified;

/// Bytes of a page's header.
const HEADER: f64 = 24.0;
/// The least and the greatest fillfactor, percent.
const LEAST: u8 = 10;
const FULL: u8 = 100;
/// The original's pages have no bloat if they have at least this share of the rows of full ones.
const EQUAL: f64 = 0.98;

/// Fillfactors of a table, while it is filled.
#[derive(Debug, Default)]
pub(super) struct Sparse {
    /// Percent; none if the table keeps its own.
    fillfactor: Option<u8>,
    /// Statements that set it, of each partition.
    pub(super) sets: Vec<String>,
    /// Statements that set the table's own again.
    restores: Vec<String>,
}

impl Planner<'_> {
    /// Sets fillfactors in the session's transaction, if bloat is kept. Returns those of each table.
    pub(super) async fn keep_bloat(&self, design: &Design<'_>) -> Result<Vec<Sparse>, FillError> {
        if !self.request.keeps_bloat {
            return Ok(Vec::new());
        }
        let small = design.small().await?;
        let mut all = Vec::with_capacity(small.len());
        for (at, designed) in small.iter().enumerate() {
            let heap = self.request.heaps.iter().find(|heap| is_named(designed.info, &heap.table));
            let Some(heap) = heap else {
                all.push(Sparse::default());
                continue;
            };
            self.step("measuring pages of", designed.info, (at, small.len()));
            all.push(self.sparse(designed, heap).await?);
        }
        let sets: Vec<String> = all.iter().flat_map(|table| table.sets.iter().cloned()).collect();
        if !sets.is_empty() {
            self.run(&sets.join(";\n")).await?;
        }
        Ok(all)
    }

    /// The fillfactor at which the table's pages get about as many rows as those of the original.
    async fn sparse(&self, designed: &Designed<'_>, heap: &OriginalHeap) -> Result<Sparse, FillError> {
        let block_size = self.survey.server.geometry.block_size();
        let wanted = heap.rows as f64 * f64::from(block_size) / heap.bytes.max(1) as f64;
        let Some(full) = self.rows_per_page(designed, FULL).await? else { return Ok(Sparse::default()) };
        if wanted >= EQUAL * full {
            return Ok(Sparse::default());
        }
        let (mut fillfactor, mut least) = (LEAST, f64::INFINITY);
        for near in around(block_size, full, wanted) {
            let rows = self.rows_per_page(designed, near).await?;
            let off = rows.map_or(f64::INFINITY, |rows| (rows / wanted).ln().abs());
            if off < least {
                (fillfactor, least) = (near, off);
            }
        }
        self.statements(designed, fillfactor).await
    }

    /// The statements for a fillfactor, of relations whose own one is greater.
    async fn statements(&self, designed: &Designed<'_>, fillfactor: u8) -> Result<Sparse, FillError> {
        let info = designed.info;
        let names: Vec<String> = match &info.partitions {
            None => vec![qualified(&info.schema, &info.name)],
            Some(leaves) => leaves.iter().map(|leaf| leaf.name.clone()).collect(),
        };
        let query = include_str!("../../sql/fillfactors.sql");
        let rows = match self.connection.client.query(query, &[&names]).await {
            Ok(rows) => rows,
            Err(error) => return Err(self.connection.explain(error).await.into()),
        };
        let mut sparse = Sparse::default();
        for row in rows {
            let (name, own): (String, Option<i32>) = (row.get("name"), row.get("fillfactor"));
            if own.is_some_and(|own| own <= i32::from(fillfactor)) {
                continue;
            }
            let own = own.map_or("RESET (fillfactor)".to_owned(), |own| format!("SET (fillfactor = {own})"));
            sparse.sets.push(format!("ALTER TABLE {name} SET (fillfactor = {fillfactor})"));
            sparse.restores.push(format!("ALTER TABLE {name} {own}"));
            sparse.fillfactor = Some(fillfactor);
        }
        Ok(sparse)
    }

    async fn rows_per_page(&self, designed: &Designed<'_>, fillfactor: u8) -> Result<Option<f64>, FillError> {
        let (rows, table) = designed.sampled();
        let sample = Sample { info: designed.info, table: &table, rows, fillfactor, builds_indexes: true };
        sample.rows_per_page(self.connection).await
    }
}

/// The two fillfactors between which pages get so many rows, if full pages get `full`.
fn around(block_size: u32, full: f64, wanted: f64) -> [u8; 2] {
    let size = f64::from(block_size);
    let row = (size - HEADER) / full;
    let percent = (wanted * row + HEADER) * 100.0 / size;
    [percent.floor(), percent.ceil()].map(|percent| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let whole = percent.clamp(f64::from(LEAST), f64::from(FULL)) as u8;
        whole
    })
}

/// Mentions bloat in the plans: that it is kept, or how much there is in the original.
pub(super) fn announce(planned: &mut [PlannedTable], sparse: Vec<Sparse>, request: &SchemaRequest) {
    for (table, Sparse { fillfactor, restores, .. }) in planned.iter_mut().zip(sparse) {
        table.recorded.fillfactors = restores;
        if let (TableState::ToFill(plan), Some(fillfactor)) = (&mut table.state, fillfactor) {
            plan.reasons.push(format!(
                "as many rows in each page as in the original (fillfactor {fillfactor} during the fill)"
            ));
        }
    }
    if request.keeps_bloat {
        return;
    }
    for table in planned {
        let name = (table.schema.as_str(), table.name.as_str());
        let heap = request.heaps.iter().find(|heap| is_name_of(name, &heap.table));
        let Some(OriginalHeap { rows, bytes: heap, without_bloat: Some(packed), .. }) = heap else {
            continue;
        };
        let share = table.rows as f64 / (*rows).max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
        let [heap, packed] = [*heap, *packed].map(|size| bytes((size as f64 * share) as u64));
        let remedy = if request.ddl.is_some() { ": to keep the bloat, give --bloat keep" } else { "" };
        if let TableState::ToFill(plan) = &mut table.state {
            plan.reasons.push(format!(
                "the original's heap takes {heap} for as many rows, about {packed} without bloat{remedy}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillfactors_around_a_number_of_rows_are_found() {
        // Full pages have 226 rows of 36 bytes: 113 take 4068 bytes and the header.
        let [low, high] = around(8192, 226.0, 113.0);
        assert_eq!([low, high], [50, 51]);
        // Never less than the server accepts, nor more.
        assert_eq!(around(8192, 226.0, 2.0), [10, 10]);
        assert_eq!(around(8192, 2.0, 1.99), [99, 100]);
    }
}
