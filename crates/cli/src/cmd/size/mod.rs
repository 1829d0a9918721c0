//! `pgrig size`: the calculator.

pub(crate) mod args;

use fill::Calculation;
use measure::human::{bytes, bytes_both, grouped};
use page::Geometry;

use crate::app::failure::{Failure, Usage};
use crate::app::json;
use crate::app::printer::Printer;
use crate::cmd::size::args::SizeArgs;

/// Calculates and prints.
pub(crate) fn run(arguments: &SizeArgs, printer: &Printer) -> Result<(), Failure> {
    let block_size = arguments.block_size;
    if !block_size.is_power_of_two() || !(1024..=32768).contains(&block_size) {
        return Err(Usage(format!(
            "--block-size {block_size} is not a block size of PostgreSQL: give 1024, 2048, 4096, 8192, 16384 or 32768"
        ))
        .into());
    }
    let found = Calculation::new(&arguments.request(), Geometry::new(block_size))?;
    if arguments.json {
        return Ok(Printer::json(&json::pretty(found)?)?);
    }
    Ok(printer.result(text(&found))?)
}

fn text(found: &Calculation) -> String {
    let Calculation { rows, scale, rows_per_page, sizes } = *found;
    [
        format!("rows     {} accounts, {rows_per_page} a page", grouped(rows)),
        format!("scale    {}", grouped(scale)),
        format!("heap     {}", bytes(sizes.heap)),
        format!("indexes  {}", bytes(sizes.index)),
        format!("total    {}", bytes_both(sizes.total())),
    ]
    .join("\n")
}
