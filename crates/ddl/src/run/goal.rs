//! The tables as they are at the size that the user asked for.

use ::fill::is_name_of;

use super::fill::{Filled, Scales};
use crate::outcome::TableAt;
use crate::request::{Amount, Request};

/// Rows and bytes of the tables at that size, from those at the largest that was filled.
pub(crate) fn goal(request: &Request, scales: &Scales, filled: &[Filled]) -> Vec<TableAt> {
    let Some((largest, smaller)) = filled.split_last() else { return Vec::new() };
    let all: u64 = largest.tables.iter().map(|table| table.bytes).sum();
    let ratio = match request.amount {
        Amount::Size(size) => size as f64 / (all as f64).max(1.0),
        _ => 1.0 / scales.largest,
    };
    let of_table = |table: &TableAt| {
        // A table that its keys limit has the same rows at every size.
        let before = smaller.last().and_then(|size| size.tables.iter().find(|one| one.name == table.name));
        let ratio = if before.is_some_and(|before| before.rows >= table.rows) { 1.0 } else { ratio };
        let at = |ratio: f64| TableAt {
            rows: whole(table.rows as f64 * ratio),
            bytes: whole(table.bytes as f64 * ratio),
            main: whole(table.main as f64 * ratio),
            ..table.clone()
        };
        match &request.amount {
            Amount::Sizes(sizes) => match sizes.iter().find(|size| is_named(&table.name, &size.table)) {
                Some(size) => at(size.bytes as f64 / (table.bytes as f64).max(1.0)),
                None => at(ratio),
            },
            Amount::AsOriginal => {
                let bytes = request.schema.bytes.get(&table.name).copied();
                let at = at(bytes.map_or(ratio, |bytes| bytes as f64 / (table.bytes as f64).max(1.0)));
                let rows = request.schema.rows.get(&table.name).copied();
                let rows = rows.unwrap_or_else(|| whole(table.rows as f64 * ratio));
                TableAt { rows, bytes: bytes.unwrap_or(at.bytes), ..at }
            }
            Amount::Size(_) | Amount::Rows(_) | Amount::Rules(_) => at(ratio),
        }
    };
    largest.tables.iter().map(of_table).collect()
}

fn is_named(full: &str, name: &str) -> bool {
    full.split_once('.').is_some_and(|names| is_name_of(names, name))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes, not negative")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
