//! The number of rows that take a given size, measured with a sample before the load.
//!
//! Rows differ in length, and equal keys share entries of a B-tree, so the size of a user's table
//! cannot be calculated. A sample of rows from all over the table is loaded into a temporary table
//! with the same indexes. Its values repeat as often as in the whole table
//! ([`Table::sampled`](rowgen::Table::sampled)).

use std::ops::Range;

use super::Look;
use super::rows::DescribedRows;
use crate::error::FillError;
use crate::plan::Sample;
use crate::plan::sizes::Sizes;
use crate::request::Request;
use catalog::{Scope, TableInfo};

/// Limits of a sample: number of rows, their bytes (approximately), and number of stretches that
/// they come from.
const ROWS: u64 = 30_000;
pub(crate) const BYTES: u64 = 64 << 20;
pub(crate) const STRETCHES: u64 = 6;
/// Most samples, and the change of the number of rows below which no further sample is taken.
const SAMPLES: usize = 3;
const CHANGE: f64 = 0.1;

impl Look<'_> {
    /// The number of rows that take `size` bytes with their indexes as direct pages; `described`
    /// has the rows without an end.
    pub(super) async fn rows_for(
        &self,
        size: u64,
        request: &Request,
        info: &TableInfo,
        (described, beside): (DescribedRows, Sizes),
        scope: Scope,
    ) -> Result<DescribedRows, FillError> {
        let most = described.most.as_ref().map_or(u64::MAX, |(most, _)| *most);
        let mut rows = (size / described.width.max(1)).clamp(1, most);
        let mut described = described;
        for _ in 0..SAMPLES {
            described = self.rows(info, Some(rows), true, scope).await?;
            let (sample, sizes) = self.measure(request, info, &described, rows, scope).await?;
            let all = |rows: u64| {
                let of = |bytes: u64| scaled(bytes, rows as f64 / sample as f64);
                Sizes { heap: of(sizes.heap) + beside.heap, index: of(sizes.index) + beside.index }
            };
            described.measured = Some((rows, all(rows)));
            let per_row = sizes.total().max(1) as f64 / sample as f64;
            let nearest = scaled(size.saturating_sub(beside.total()), 1.0 / per_row).clamp(1, most);
            let change = nearest.abs_diff(rows) as f64 / rows as f64;
            if change < CHANGE {
                let measured = (nearest, all(nearest));
                if nearest != rows {
                    described = self.rows(info, Some(nearest), true, scope).await?;
                }
                described.measured = Some(measured);
                break;
            }
            rows = nearest;
        }
        Ok(described)
    }

    /// Number of rows, of `rows`, that were loaded as a sample, and their sizes.
    async fn measure(
        &self,
        request: &Request,
        info: &TableInfo,
        described: &DescribedRows,
        rows: u64,
        scope: Scope,
    ) -> Result<(u64, Sizes), FillError> {
        let most = (BYTES / described.width.max(1)).clamp(STRETCHES, ROWS);
        let stretches = stretches(described.first_row, rows, most);
        let taken: u64 = stretches.iter().map(|stretch| stretch.end - stretch.start).sum();
        let table = described.table.sampled(taken as f64 / rows as f64);
        let sample = Sample {
            info,
            table: &table,
            rows: stretches,
            fillfactor: request.fillfactor,
            builds_indexes: true,
        };
        let is_alone = matches!(scope, Scope::Idle);
        if is_alone {
            self.run("BEGIN").await?;
        }
        let sizes = sample.sizes(self.connection, self.survey.server.geometry.block_size()).await;
        if is_alone {
            self.run("ROLLBACK").await?;
        }
        Ok((taken, sizes?))
    }
}

/// Row numbers of a sample of about `most` rows: from the beginning, the end and between.
pub(crate) fn stretches(first: u64, rows: u64, most: u64) -> Vec<Range<u64>> {
    if rows <= most {
        return std::iter::once(first..first + rows).collect();
    }
    let each = most / STRETCHES;
    let begin = |stretch| {
        let place = u128::from(rows - each) * u128::from(stretch) / u128::from(STRETCHES - 1);
        first + u64::try_from(place).unwrap_or_default()
    };
    (0..STRETCHES).map(|stretch| begin(stretch)..begin(stretch) + each).collect()
}

fn scaled(number: u64, by: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes and rows")]
    let scaled = (number as f64 * by).round() as u64;
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_all_of_few_rows_and_stretches_of_many() {
        assert!(stretches(5, 100, ROWS).into_iter().eq(std::iter::once(5..105)));
        let many = stretches(10, 1_000_000, ROWS);
        assert_eq!(many.iter().map(|stretch| stretch.end - stretch.start).sum::<u64>(), ROWS);
        assert_eq!((many[0].start, many[5].end), (10, 1_000_010));
        assert!(many.windows(2).all(|pair| pair[0].end <= pair[1].start), "{many:?}");
        // Even of the largest table.
        assert_eq!(stretches(0, u64::MAX, ROWS)[5].end, u64::MAX);
    }
}
