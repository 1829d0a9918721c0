//! Models as text for people.

use std::fmt::Write;
use std::path::Path;

use measure::human::{bytes, count, counted, grouped};
use model::{Column, Facts, Follows, How, Model, Originals, Table, Values};

use crate::app::table::{align_right, new_table};

/// Summary of a capture, with the next commands: to fill another database, `other` has the command that creates it and
/// the options that name it.
pub(super) fn captured(model: &Model, file: &Path, length: usize, other: Option<(&str, &str)>) -> String {
    let columns: usize = model.tables.iter().map(|table| table.columns.len()).sum();
    let rows: u64 = model.tables.iter().map(|table| table.rows).sum();
    let total: u64 = model.tables.iter().map(size).sum();
    let read = format!(
        "{}, {}, {} rows, {} in the original",
        counted(model.tables.len() as u64, "table"),
        counted(columns as u64, "column"),
        count(rows as f64),
        bytes(total),
    );
    let size = bytes(length as u64);
    // Standard output has no name that the next commands could use.
    if file == Path::new("-") {
        return format!("{read}; model on standard output ({size})");
    }
    let name = file.display();
    let next = match other {
        None => format!("fill as many rows: pgrig fill --model {name}"),
        Some((create, options)) => format!(
            "fill as many rows into another database:\n  {create}\n  pgrig fill --model {name} {options}"
        ),
    };
    format!("{read}; model {name} ({size})\n\nlook at it: pgrig model show {name}\n{next}")
}

fn size(table: &Table) -> u64 {
    table.bytes.heap + table.bytes.toast + table.bytes.indexes
}

/// Values that the model lacks, because pgrig cannot read them: one warning for all columns.
pub(super) fn unread(facts: &Facts) -> Option<String> {
    let columns: Vec<String> = model::unread(facts)
        .into_iter()
        .map(|(column, share)| format!("{column} ({:.1} % of the rows)", share * 100.0))
        .collect();
    (!columns.is_empty()).then(|| {
        format!(
            "pgrig cannot read some values of these columns (such as NaN, dates BC, times of day with an offset, numbers of more than 18 \
             digits, or of 10^12 and more in numeric without precision), and the copy has other values in their place: {}",
            columns.join(", ")
        )
    })
}

/// The first column of --keep-values whose values the model does not contain.
pub(super) fn not_kept<'a>(model: &Model, keep: &'a [String]) -> Option<&'a str> {
    let is_kept = |name: &str| {
        let mut columns =
            model.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
        columns.any(|(table, column)| {
            let whole = format!("{}.{}", table.name, column.name);
            let plain = whole.split_once('.').map_or("", |(_, name)| name);
            let is_kept = match &column.values {
                Values::List { kept, .. } => *kept,
                // A code, if it were replaced.
                Values::Statistics { replaced, .. } => !replaced,
                _ => false,
            };
            (whole == name || plain == name) && is_kept
        })
    };
    keep.iter().map(String::as_str).find(|name| !is_kept(name))
}

/// Tables with their columns.
pub(super) fn shown(model: &Model) -> String {
    let locale = model.locale.as_ref().map_or_else(String::new, |locale| format!(", locale {locale}"));
    let mut text = format!("{}, captured {}, k = {}{locale}\n", model.server, model.captured, model.k);
    for table in &model.tables {
        let analyzed = match &table.analyzed {
            Some(when) => format!("analyzed {when}, {} changed since", counted(table.changed, "row")),
            None => "statistics not from ANALYZE".to_owned(),
        };
        let _ = writeln!(
            text,
            "\n{}: {}, {}{}; {analyzed}",
            table.name,
            counted(table.rows, "row"),
            bytes(size(table)),
            bloat(table)
        );
        let mut columns = new_table(&["column", "type", "nulls", "distinct", "values"]);
        for column in &table.columns {
            let of = if matches!(column.values, Values::Keys { .. }) { "keys" } else { "rows" };
            let distinct = column.values.distinct().map(|number| distinct(number, of)).unwrap_or_default();
            let nulls =
                if column.nulls > 0.0 { format!("{:.1} %", column.nulls * 100.0) } else { String::new() };
            columns.add_row([column.name.clone(), column.data_type.clone(), nulls, distinct, phrase(column)]);
        }
        align_right(&mut columns, 2..4);
        for line in columns.to_string().lines() {
            let _ = writeln!(text, "  {}", line.trim_end());
        }
    }
    text.trim_end().to_owned()
}

/// The size of a heap with bloat, and its size without.
fn bloat(table: &Table) -> String {
    table.bytes.without_bloat().map_or_else(String::new, |packed| {
        format!(" (heap: {}, without bloat about {})", bytes(table.bytes.heap), bytes(packed))
    })
}

fn distinct(distinct: f64, of: &str) -> String {
    if distinct < 0.0 { format!("{:.3} × {of}", -distinct) } else { grouped_real(distinct) }
}

fn grouped_real(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values")]
    grouped(number.round() as u64)
}

fn phrase(column: &Column) -> String {
    let follows = match &column.follows {
        Some(Follows { column, how: How::Pairs { pairs } }) => {
            format!("; {} pairs with {column}", pairs.len())
        }
        Some(Follows { column, how: How::Strata { .. } | How::Parts { .. } }) => {
            format!("; parts with {column}")
        }
        Some(Follows { column, how: How::Normal { correlation, .. } }) => {
            format!("; correlation {correlation:.2} with {column}")
        }
        Some(Follows { column, how: How::Stretches { .. } }) => format!("; follows {column}"),
        None => String::new(),
    };
    let nulls =
        column.nulls_follow.as_ref().map_or_else(String::new, |of| format!("; NULLs with {}", of.column));
    let order = match (&column.above, &column.not_below) {
        (Some(other), _) => format!("; above {other}"),
        (None, Some(other)) => format!("; not below {other}"),
        (None, None) => String::new(),
    };
    values_phrase(&column.values) + &follows + &nulls + &order
}

fn values_phrase(values: &Values) -> String {
    match values {
        Values::Fill { why } => format!("values chosen by pgrig fill: {why}"),
        Values::Serial { step, .. } => format!("ascending by {step}"),
        Values::Keys { common, .. } => format!("keys; {}", counted_common(common.len(), "key")),
        Values::Statistics { common, bounds, replaced: true, .. } => {
            format!("codes, replaced; {}, {}", counted_common(common.len(), "value"), histogram(bounds.len()))
        }
        Values::Statistics { common, bounds, .. } => {
            format!("{}, {}", counted_common(common.len(), "value"), histogram(bounds.len()))
        }
        Values::Letters { alphabet, lengths, .. } => {
            let (least, most) = (lengths.first().unwrap_or(&1), lengths.last().unwrap_or(&1));
            format!("{}, {least} to {most} characters", characters(alphabet))
        }
        Values::List { values, kept: true, .. } => {
            format!("{} of the original", counted(values.len() as u64, "value"))
        }
        Values::List { values, .. } => format!("{}, replaced", counted(values.len() as u64, "value")),
        Values::Elements { elements, counts, .. } => {
            let (least, most) = (counts.first().unwrap_or(&0), counts.last().unwrap_or(&0));
            format!("arrays of {least} to {most} elements; {}", counted_common(elements.len(), "element"))
        }
        Values::Ranges { empty, low, .. } => {
            format!("ranges; {:.1} % empty, {}", empty * 100.0, histogram(low.len()))
        }
        Values::Any { .. } => "random values of the type".to_owned(),
    }
}

/// `3 common values`: those of which the statistics have the frequency.
fn counted_common(number: usize, noun: &str) -> String {
    match number {
        0 => format!("no common {noun}s"),
        number => counted(number as u64, &format!("common {noun}")),
    }
}

/// The buckets between so many bounds of a histogram.
fn histogram(bounds: usize) -> String {
    match bounds.saturating_sub(1) {
        0 => "no histogram".to_owned(),
        1 => "histogram of 1 bucket".to_owned(),
        buckets => format!("histogram of {} buckets", grouped(buckets as u64)),
    }
}

/// The characters of a text, in words.
fn characters(alphabet: &str) -> &str {
    match alphabet {
        "hex" => "hexadecimal digits",
        "upper" => "capital letters",
        "lower" => "small letters",
        "mixed" => "digits and small letters",
        other => other,
    }
}

/// All values of the original that the model contains.
pub(super) fn values(model: &Model) -> String {
    let mut text = String::new();
    for table in &model.tables {
        for column in &table.columns {
            let Originals { values, bounds } = column.originals();
            let is_list = matches!(column.values, Values::List { .. });
            let shown = |value: &String| if is_list { format!("{value:?}") } else { value.clone() };
            for (values, part) in [(values, ""), (bounds, ", bounds of the histogram")] {
                if !values.is_empty() {
                    let values: Vec<String> = values.iter().map(shown).collect();
                    let _ = writeln!(text, "{}.{}{part}: {}", table.name, column.name, values.join(", "));
                }
            }
        }
    }
    let note = "This list contains each value of the model that is in the original's statistics. pgrig replaced the other numbers, dates \
                and times; rows of the original can have the new values, too.";
    if text.is_empty() { "no value of the original".to_owned() } else { format!("{text}\n{note}") }
}
