//! The rows that a request stands for.

use rowgen::pgbench;

use super::sizes::Layout;
use crate::error::FillError;
use crate::request::{Amount, Request};

/// The rows that a fill loads, and the scale that goes with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRange {
    /// Number of the first row, from 0.
    pub first_row: u64,
    /// Number of rows; none if only a limit ends the fill.
    pub rows: Option<u64>,
    /// pgbench's scale in the end.
    pub scale: u64,
    /// pgbench's scale before.
    pub(crate) scale_before: u64,
}

/// The rows that a request asks for, after `present` rows over `scale` branches.
pub(crate) fn asked_for(
    request: &Request,
    layout: &Layout,
    present: u64,
    scale: u64,
) -> Result<RowRange, FillError> {
    let (first_row, scale_before) = if request.append { (present, scale) } else { (0, 0) };
    let most = layout.most_rows().saturating_sub(first_row);
    let (rows, scale) =
        match request.amount {
            Amount::Size(size) => {
                let rows = layout
                    .rows_for(size, first_row)
                    .map_err(|(smallest, largest)| FillError::Size { size, smallest, largest })?;
                (Some(rows), None)
            }
            Amount::Scale(scale) => {
                let rows = scale.saturating_mul(pgbench::ACCOUNTS_PER_SCALE);
                if scale == 0 || rows > most {
                    return Err(FillError::Scale { scale, most: most / pgbench::ACCOUNTS_PER_SCALE });
                }
                (Some(rows), (!request.append).then_some(scale))
            }
            Amount::Rows(rows) if rows == 0 || rows > most => return Err(FillError::Rows { rows, most }),
            Amount::Rows(rows) => (Some(rows), None),
            // Every hundred thousand rows bring a branch, as long as they come.
            Amount::Unbounded => (None, Some(pgbench::MAX_SCALE)),
            Amount::Nothing => (Some(0), Some(1)),
        };
    let total = first_row + rows.unwrap_or(0);
    let scale = scale.unwrap_or_else(|| pgbench::scale_for(total)).max(scale_before);
    Ok(RowRange { first_row, rows, scale, scale_before })
}
