//! The fidelity of a copy as text for people.

use std::fmt::Write;

use comfy_table::Table;
use measure::human::{bytes, counted, grouped};
use model::{Bytes, Distance, Fidelity, Field, PlansCompared, Shapes, Sizes, quantile};

use super::execute;
use crate::app::table::{align_right, new_table, trimmed};

/// Most fields outside of their tolerance that are shown.
const MOST_FIELDS: usize = 20;

/// How faithful a copy is; the headline last.
pub(super) fn shown(
    fidelity: &Fidelity,
    plans: Option<&PlansCompared>,
    executed: Option<&PlansCompared>,
    shapes: Option<&Shapes>,
) -> String {
    let mut text = String::new();
    let off = outside(fidelity);
    if !off.is_empty() {
        let mut table = new_table(&["outside the tolerance", "field", "original", "copy", "tolerance"]);
        for (field, count) in off.iter().take(MOST_FIELDS) {
            table.add_row([
                field.column.clone(),
                named(field, *count),
                figure(field.original),
                figure(field.copy),
                figure(field.tolerance),
            ]);
        }
        align_right(&mut table, 2..5);
        push_table(&mut text, &table);
        if off.len() > MOST_FIELDS {
            let _ = writeln!(text, "… and {} more", off.len() - MOST_FIELDS);
        }
        text.push('\n');
    }
    let mut table = new_table(&["table", "rows", "heap", "", "TOAST", "", "indexes", ""]);
    for Sizes { table: name, rows: (before, after), bytes: (ours, theirs) } in &fidelity.sizes {
        let factor = *after as f64 / (*before).max(1) as f64;
        let mut row = vec![name.clone(), grouped(*after)];
        for (our, their) in
            [(ours.heap, theirs.heap), (ours.toast, theirs.toast), (ours.indexes, theirs.indexes)]
        {
            row.extend([bytes(their), off_by(our as f64 * factor, their as f64)]);
        }
        table.add_row(row);
    }
    align_right(&mut table, 1..8);
    push_table(&mut text, &table);
    text.push('\n');
    if let Some(shapes) = shapes {
        push_shapes(&mut text, shapes);
    }
    if let Some(executed) = executed {
        push_executed(&mut text, executed);
    }
    if let Some(plans) = plans {
        let (same, pairs) = plans.same;
        let _ = writeln!(
            text,
            "plans       {} of the plans of {} have the same shape (95 % interval: {:.1} to {:.1} %){}; estimates differ by a factor of {:.2} in the median, {:.2} at p95",
            percent(u64::from(same), u64::from(pairs)),
            if plans.queries == 1 { "1 query".to_owned() } else { format!("{} queries", plans.queries) },
            plans.interval.0 * 100.0,
            plans.interval.1 * 100.0,
            plans.itself.map_or_else(String::new, |(same, pairs)| format!(
                " (original against itself: {})",
                percent(u64::from(same), u64::from(pairs))
            )),
            plans.factor(0.5),
            plans.factor(0.95),
        );
    }
    let (within, fields) = fidelity.counts();
    let own = fidelity.itself.map_or_else(String::new, |(within, fields)| {
        format!(" (original against itself: {})", share(within, fields))
    });
    let _ =
        write!(text, "statistics  {} of {fields} fields are as in the original{own}", share(within, fields));
    let (within, fields) = fidelity.not_promised();
    if fields > 0 {
        let _ = write!(
            text,
            "\nbelow --k   {} of {fields} fields of tables with fewer than --k rows are as in the original",
            tenths(within)
        );
    }
    let (within, fixed) = fidelity.fixed();
    let _ = write!(
        text,
        "\nleft out    {} whose value follows from the schema ({} as in the original), and {} NULL in both databases",
        counted(fixed as u64, "field"),
        tenths(within),
        if fidelity.nulls == 1 {
            "1 that is".to_owned()
        } else {
            format!("{} that are", grouped(fidelity.nulls as u64))
        }
    );
    text
}

/// Fields outside of their tolerance, the furthest first. Of an array, the furthest rank, and the number of its ranks outside.
fn outside(fidelity: &Fidelity) -> Vec<(&Field, usize)> {
    let off: Vec<&Field> =
        fidelity.fields.iter().filter(|field| field.counts() && !field.is_within()).collect();
    let by_distance = |one: &&Field, other: &&Field| times_off(one).total_cmp(&times_off(other));
    let mut fields: Vec<(&Field, usize)> = off
        .chunk_by(|one, next| one.is_beside(next))
        .filter_map(|ranks| Some((ranks.iter().copied().max_by(by_distance)?, ranks.len())))
        .collect();
    fields.sort_by(|(one, _), (other, _)| times_off(other).total_cmp(&times_off(one)));
    fields
}

/// The name of a field; of an array, with the rank, and the number of other ranks outside.
fn named(field: &Field, count: usize) -> String {
    match field.rank {
        None => field.name.to_owned(),
        Some(rank) if count > 1 => format!("{}, rank {rank} and {} more", field.name, count - 1),
        Some(rank) => format!("{}, rank {rank}", field.name),
    }
}

/// A number with at most one decimal.
fn tenths(number: f64) -> String {
    ((number * 10.0).round() / 10.0).to_string()
}

/// Share by which indexes or heaps of a copy may be smaller before a note tells why.
const SMALLER: f64 = 0.02;
/// Bytes by which they are smaller at least: pages are whole.
const PAGES: f64 = 3.0 * 8192.0;

/// Notes on tables whose copy is smaller: the original has grown, the copy is freshly loaded.
pub(super) fn smaller(sizes: &[Sizes]) -> Vec<String> {
    let of = |bytes: fn(&Bytes) -> u64| -> Vec<&str> {
        let is_smaller = |sizes: &&Sizes| {
            let factor = sizes.rows.1 as f64 / sizes.rows.0.max(1) as f64;
            let (wanted, there) = (bytes(&sizes.bytes.0) as f64 * factor, bytes(&sizes.bytes.1) as f64);
            wanted - there > (SMALLER * wanted).max(PAGES)
        };
        sizes.iter().filter(is_smaller).map(|sizes| sizes.table.as_str()).collect()
    };
    let note = |tables: Vec<&str>, parts: &str, why: &str, remedy: &str| {
        (!tables.is_empty()).then(|| {
            format!(
                "{parts} of these tables are smaller in the copy: {}. {why}, and the copy is freshly loaded. For a fair comparison, \
                 restore a dump of the original into another database, or run {remedy} in the original (it locks each table)",
                tables.join(", ")
            )
        })
    };
    let indexes = note(
        of(|bytes| bytes.indexes),
        "indexes",
        "Indexes that grow row by row have pages that are half full",
        "REINDEX TABLE",
    );
    let heaps = note(
        of(|bytes| bytes.heap),
        "heaps",
        "Updated tables have free space of old row versions",
        "VACUUM FULL",
    )
    .map(|note| format!("{note}. Or fill the copy with --bloat keep"));
    indexes.into_iter().chain(heaps).collect()
}

/// Factors between numbers of rows of the operators of queries that were executed.
fn push_executed(text: &mut String, executed: &PlansCompared) {
    let queries = format!("rows of {} queries", executed.queries);
    let mut table = new_table(&[&queries, "operators", "median", "p90", "p95"]);
    for (_, name, factors) in execute::factors(executed) {
        let at = |at: f64| quantile(factors, at).map_or_else(String::new, |factor| format!("{factor:.2}"));
        table.add_row([name.to_owned(), factors.len().to_string(), at(0.5), at(0.9), at(0.95)]);
    }
    align_right(&mut table, 1..5);
    push_table(text, &table);
    text.push('\n');
}

/// Distances that exceed the original's own by this are shown.
const FAR: f64 = 0.02;

/// Distances of distributions: the greatest ones, then means.
fn push_shapes(text: &mut String, shapes: &Shapes) {
    let excess = |one: &Distance| one.copy - one.itself;
    let mut far: Vec<&Distance> =
        [&shapes.columns, &shapes.pairs, &shapes.keys].into_iter().flatten().collect();
    far.retain(|one| excess(one) > FAR);
    far.sort_by(|one, other| excess(other).total_cmp(&excess(one)));
    if !far.is_empty() {
        let mut table = new_table(&["other distribution", "measure", "distance", "original with itself"]);
        for one in far.iter().take(MOST_FIELDS) {
            let name = if shapes.keys.iter().any(|key| std::ptr::eq(key, *one)) {
                format!("rows for each key: {}", one.name)
            } else {
                one.name.clone()
            };
            table.add_row([name, one.measure.name().to_owned(), figure(one.copy), figure(one.itself)]);
        }
        align_right(&mut table, 2..4);
        push_table(text, &table);
        if far.len() > MOST_FIELDS {
            let _ = writeln!(text, "… and {} more", far.len() - MOST_FIELDS);
        }
        text.push('\n');
    }
    for (orphaned, rows) in &shapes.orphans {
        let _ = writeln!(text, "{orphaned}: {} without a referenced row", counted(*rows, "row"));
    }
    for (name, of, distances) in [
        ("columns", "distributions of columns", &shapes.columns),
        ("pairs", "distributions of two columns", &shapes.pairs),
        ("keys", "foreign keys: numbers of rows for each key", &shapes.keys),
    ] {
        if let Some((copy, itself)) = Distance::means(distances) {
            let _ = writeln!(
                text,
                "{name:<12}{} {of} differ by {copy:.3} on average (the original with itself: {itself:.3})",
                distances.len()
            );
        }
    }
}

fn times_off(field: &Field) -> f64 {
    (field.copy - field.original).abs() / field.tolerance.max(1e-9)
}

/// A table and a line end.
fn push_table(text: &mut String, table: &Table) {
    let _ = writeln!(text, "{}", trimmed(table));
}

/// A number with four significant digits.
fn figure(number: f64) -> String {
    if number.abs() >= 100.0 { format!("{number:.0}") } else { format!("{number:.3}") }
}

/// By how much a size differs from the wanted one.
fn off_by(wanted: f64, size: f64) -> String {
    if wanted < 8192.0 {
        return String::new();
    }
    format!("{:+.1} %", (size / wanted - 1.0) * 100.0)
}

fn percent(part: u64, all: u64) -> String {
    share(part as f64, usize::try_from(all).unwrap_or(usize::MAX))
}

fn share(part: f64, all: usize) -> String {
    format!("{:.1} %", part / all.max(1) as f64 * 100.0)
}
