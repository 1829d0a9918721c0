//! The rows of a schema that together take a size: some rows of each table are measured, and then the numbers of rows follow from the
//! bytes of a row.

use catalog::ForeignKeyInfo;

use super::Planner;
use super::amounts::{self, Cap};
use super::design::{CHOOSING, Design, Designed};
use super::order::is_referenced;
use super::row_bytes::RowBytes;
use crate::error::FillError;
use crate::plan::{Method, Sample};

/// Most rounds until the numbers of rows agree with the numbers that keys allow.
const ROUNDS: usize = 5;
/// Share of the size by which the plan may miss it.
const TOLERANCE: f64 = 0.01;
/// Share of the size by which it may miss it without another round.
const ACCURACY: f64 = 0.002;
/// This part of the size is planned beyond it where the last table ends when the size is reached.
const MARGIN: u64 = 20;
/// Rows that the last table gets at most, beyond its share, for indexes that may not grow as predicted.
const MOST_DOUBT: f64 = 1.0;
/// The step in which rows are described once more, for other numbers of them.
const ADJUSTING: &str = "adjusting the rows of";

impl<'a> Design<'a> {
    /// Tables that together take so many bytes with their indexes.
    pub(super) async fn for_size(&self, size: u64) -> Result<Vec<Designed<'a>>, FillError> {
        let small = self.small().await?;
        let mut per_table = Vec::with_capacity(small.len());
        for (at, designed) in small.iter().enumerate() {
            self.planner.step("measuring rows of", designed.info, (at, small.len()));
            per_table.push(self.planner.measured(designed, self.together(at)).await?);
        }
        let (mut base, mut designed) = self.within_keys(size, &per_table, caps_of(&small)).await?;
        let mut last = None;
        if self.planner.request.append {
            for (at, (designed, row_bytes)) in designed.iter().zip(&mut per_table).enumerate() {
                let recorded = designed.recorded(String::new());
                let plan = self.planner.plan_of(designed.info.clone(), &recorded, self.together(at)).await?;
                row_bytes.loaded_by(&plan);
                let may_end = !plan.is_single_transaction() && plan.method == Method::ChunkedCopy;
                last = Some(at).filter(|&at| may_end && self.may_be_last(at)).or(last);
            }
        }
        // Too many rows by as much as the prediction may be wrong; the last table gets fewer then.
        let size = if last.is_some() { size + size / MARGIN } else { size };
        if self.planner.request.append {
            (base, designed) = self.within_keys(size, &per_table, caps_of(&designed)).await?;
        }
        let rows: Vec<u64> = designed.iter().map(|designed| designed.rows).collect();
        let bytes = |rows: &[u64]| bytes_of(&per_table, rows);
        let share = bytes(&rows) / size as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
        let about = bytes(&rows) as u64;
        if share < 1.0 - TOLERANCE {
            return Err(FillError::SchemaSize { size, about });
        }
        if share > 1.0 + TOLERANCE {
            return Err(FillError::SchemaTooSmall { size, about });
        }
        let doubt: f64 = per_table
            .iter()
            .zip(&designed)
            .map(|(row_bytes, designed)| row_bytes.doubt(designed.rows as f64))
            .sum();
        let mut beyond = size / (MARGIN + 1);
        if let Some(last) = last.filter(|_| doubt > 0.0) {
            let (rows, row_bytes) = (designed[last].rows, &per_table[last]);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rows and bytes")]
            let more = (rows as f64 * (doubt / row_bytes.times(rows).max(1.0)).min(MOST_DOUBT)) as u64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rows and bytes")]
            let bytes = (row_bytes.times(rows + more) - row_bytes.times(rows)) as u64;
            beyond += bytes;
            designed = self.described(ADJUSTING, base, None, Some((last, more))).await?;
        }
        self.verify(&mut designed).await?;
        for (designed, row_bytes) in designed.iter_mut().zip(per_table) {
            designed.row_bytes = Some(row_bytes);
        }
        if let Some(last) = last {
            let present = self.planner.bytes_present(self.tables).await?;
            designed[last].beyond = beyond;
            designed[last].until = Some(present + size - size / (MARGIN + 1));
        }
        Ok(designed)
    }

    /// Tables that together come nearest to a size, and the base of their rows. If the keys of one table allow no more rows,
    /// others get more. `caps` has what keys seem to allow.
    async fn within_keys(
        &self,
        size: u64,
        per_table: &[RowBytes],
        mut caps: Vec<Option<Cap>>,
    ) -> Result<(f64, Vec<Designed<'a>>), FillError> {
        let mut round = 1;
        loop {
            let base = amounts::base_for(self.wanted, &caps, size, |rows| bytes_of(per_table, rows));
            let doing = if round == 1 { CHOOSING } else { ADJUSTING };
            let designed = self.described(doing, base, None, None).await?;
            let rows: Vec<u64> = designed.iter().map(|designed| designed.rows).collect();
            let is_foreseen = rows == amounts::rows(self.wanted, base, &caps);
            let is_near = (bytes_of(per_table, &rows) / size as f64 - 1.0).abs() < ACCURACY;
            if is_foreseen || is_near || round == ROUNDS {
                return Ok((base, designed));
            }
            (caps, round) = (caps_of(&designed), round + 1);
        }
    }
}

/// The limits that keys set, for tables that get fewer rows than wanted.
fn caps_of(designed: &[Designed<'_>]) -> Vec<Option<Cap>> {
    let cap = |place: usize| {
        let Designed { info, rows, capped, .. } = &designed[place];
        let name = capped.as_ref()?.key.as_ref();
        let key = info.keys.iter().find(|key| Some(&key.name) == name);
        let is_in_key = |foreign: &&ForeignKeyInfo| {
            key.is_some_and(|key| key.columns().any(|name| foreign.columns.iter().any(|own| own == name)))
        };
        let before = |foreign: &ForeignKeyInfo| {
            let place = (0..place).find(|other| is_referenced(foreign, designed[*other].info))?;
            Some((place, designed[place].rows))
        };
        let of = info.foreign_keys.iter().filter(is_in_key).filter_map(before).collect();
        Some(Cap { rows: *rows, of })
    };
    (0..designed.len()).map(cap).collect()
}

/// Bytes of so many rows of each table.
fn bytes_of(per_table: &[RowBytes], rows: &[u64]) -> f64 {
    per_table.iter().zip(rows).map(|(row_bytes, rows)| row_bytes.times(*rows)).sum()
}

impl Planner<'_> {
    /// Bytes of the table's rows, by the method that will load it.
    async fn measured(&self, designed: &Designed<'_>, together: Vec<String>) -> Result<RowBytes, FillError> {
        let recorded = designed.recorded(String::new());
        let plan = self.plan_of(designed.info.clone(), &recorded, together).await?;
        let block_size = self.survey.server.geometry.block_size();
        let are_postponed = self.request.ddl.is_some() && designed.info.partitions.is_none();
        let are_built = plan.method == Method::Direct || are_postponed;
        let (rows, table) = designed.sampled();
        let taken: u64 = rows.iter().map(|stretch| stretch.end - stretch.start).sum();
        let fillfactor = plan.fillfactor;
        let sample =
            Sample { info: designed.info, table: &table, rows, fillfactor, builds_indexes: are_built };
        if self.request.append && !are_built {
            let (sizes, indexes) = sample.growth(self.connection, block_size).await?;
            return Ok(RowBytes::of_growth(sizes, taken, &indexes));
        }
        let sizes = sample.sizes(self.connection, block_size).await?;
        Ok(RowBytes::even(sizes, taken))
    }
}
