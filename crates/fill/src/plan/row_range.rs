//! Which rows a request stands for, and whether they have to come in chunks.

use rowgen::pgbench;

use crate::error::FillError;
use crate::plan::sizes::Layout;
use crate::request::{Amount, InitStep, Request, Subject};

/// Which rows are to be loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub first_row: u64,
    pub rows: Option<u64>,
    pub scale: u64,
    pub scale_before: u64,
}

/// Why rows cannot come in the transaction that creates their table, if they cannot. A table of the user's
/// that is there and empty is as good as one that is created.
pub(crate) fn needs_chunks(request: &Request) -> Option<&'static str> {
    let created = match request.subject {
        Subject::Table(_) => !request.append,
        Subject::Pgbench | Subject::Series => request.steps.order(InitStep::Create, InitStep::Generate),
    };
    let keys_first = request.steps.order(InitStep::PrimaryKeys, InitStep::Generate);
    if request.amount == Amount::Unbounded {
        Some("chunk by chunk: only a limit ends this fill")
    } else if request.in_chunks {
        Some("chunk by chunk: limits and probes look between them")
    } else if request.chunk.is_some() {
        Some("chunk by chunk: --chunk says so")
    } else if !created {
        Some("chunk by chunk: the tables are there already")
    } else if keys_first {
        Some("chunk by chunk: keys are there before the rows")
    } else {
        None
    }
}

/// Which rows were asked for, beside `present` ones over `scale` branches.
pub(crate) fn target(
    request: &Request,
    layout: &Layout,
    present: u64,
    scale: u64,
) -> Result<Target, FillError> {
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
    Ok(Target { first_row, rows, scale, scale_before })
}
