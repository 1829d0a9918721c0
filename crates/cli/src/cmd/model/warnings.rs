//! Warnings about parts that a model lacks, with the remedies.

use measure::human::{bytes, grouped};
use model::{Bytes, Column, ColumnFacts, Facts, Model, Others, Table, TableFacts, Values};
use server::quote::{shell_word, shown};

/// Share of rows changed since ANALYZE from which on statistics count as old.
const OLD: f64 = 0.1;

/// Share of a table's bytes in TOAST from which on the lengths of its values matter, and bytes: those of an empty TOAST table are its index.
const TOASTED: f64 = 0.1;
const TOAST: u64 = 1 << 18;

/// Why a column has no statistics begins so.
const BLIND: &str = "no statistics";

fn is_blind(column: &Column) -> bool {
    matches!(&column.values, Values::Fill { why } if why.starts_with(BLIND))
}

/// Whether there are statistics of any column, or no rows that could have some.
pub(super) fn has_any_statistics(model: &Model) -> bool {
    let with_rows = || model.tables.iter().filter(|table| table.bytes.heap > 0);
    with_rows().next().is_none() || with_rows().any(|table| !table.columns.iter().all(is_blind))
}

/// Whether a table has statistics that the role cannot read: of no column.
fn is_closed(table: &Table, facts: &TableFacts) -> bool {
    let has_statistics = table.analyzed.is_some() && table.rows > 0;
    let is_denied = facts.row_security || facts.denied.len() == table.columns.len();
    has_statistics && is_denied && !table.columns.is_empty() && table.columns.iter().all(is_blind)
}

/// Tables whose statistics are missing or old, or closed to this role (as SQL has it); and columns that a copy has in another way. The facts are
/// those of the model.
pub(super) fn of(model: &Model, facts: &Facts, role: &str) -> Vec<String> {
    let tables = || model.tables.iter().zip(&facts.tables);
    let closed = |row_security: bool| -> Vec<&str> {
        let closed =
            tables().filter(|(table, facts)| is_closed(table, facts) && facts.row_security == row_security);
        closed.map(|(_, facts)| facts.sql_name.as_str()).collect()
    };
    let mut warnings = Vec::new();
    let (denied, secured) = (closed(false).join(", "), closed(true).join(", "));
    if !denied.is_empty() {
        warnings.push(format!(
            "role {role} can read no statistics of {denied}: run GRANT SELECT ON {denied} TO {role}, or connect as another role; then \
             capture again"
        ));
    }
    if !secured.is_empty() {
        warnings.push(format!(
            "role {role} can read no statistics of {secured}, because row-level security applies to it there: connect as the owner of these \
             tables, or as a role with BYPASSRLS; then capture again"
        ));
    }
    for (table, facts) in tables().filter(|(table, facts)| !is_closed(table, facts)) {
        // ANALYZE cannot change that: a partitioned table without partitions is never analyzed.
        if table.rows == 0 && (table.analyzed.is_some() || table.bytes.heap == 0) {
            continue;
        }
        warnings.extend(without_statistics(table, facts, role));
        warnings.extend(random(table));
        warnings.extend(narrow(table));
        warnings.extend(chosen(table, facts));
        warnings.extend(wide(table).filter(|_| !model.aggregates));
        if table.changed as f64 > OLD * table.rows as f64 && table.analyzed.is_some() {
            warnings.push(format!(
                "{}: {} row{} changed since it was last analyzed: run ANALYZE {}, then capture again",
                table.name,
                grouped(table.changed),
                if table.changed == 1 { "" } else { "s" },
                facts.sql_name
            ));
        }
        warnings.extend(uncounted(table, facts));
    }
    let short = model::shortened(facts, model);
    if !short.is_empty() {
        warnings.push(format!(
            "these columns have shorter values in the copy, because pgrig makes none so long of their types, or under their constraints: {}. \
             Their tables will be smaller than the original's",
            short.join(", ")
        ));
    }
    warnings
}

/// A table with statistics of which the server does not know how many rows it had then.
fn uncounted(table: &Table, facts: &TableFacts) -> Option<String> {
    let is_few = (facts.analyzed_rows as f64) < (1.0 - OLD) * table.rows as f64;
    let is_known = table.analyzed.is_some() || table.columns.iter().all(is_blind);
    (is_few && !is_known).then(|| {
        format!(
            "{}: the server does not know how many rows this table had when it was analyzed. Its statistics prove {} of {}, and --k is measured \
             with these, so the model replaces more values than it has to: run ANALYZE {}, then capture again. A standby never knows it: capture \
             from its primary server. PostgreSQL 13 does not know it of partitioned tables: give a smaller --k",
            table.name,
            grouped(facts.analyzed_rows),
            grouped(table.rows),
            facts.sql_name
        )
    })
}

/// Columns without statistics: those that the role may not read, and those that have none.
fn without_statistics(table: &Table, facts: &TableFacts, role: &str) -> Vec<String> {
    let (name, sql) = (&table.name, &facts.sql_name);
    let blind: Vec<&str> =
        table.columns.iter().filter(|column| is_blind(column)).map(|column| column.name.as_str()).collect();
    if blind.is_empty() {
        return Vec::new();
    }
    let is_denied = |column: &&str| facts.denied.iter().any(|denied| denied == column);
    let (denied, missing): (Vec<&str>, Vec<&str>) = blind.iter().copied().partition(is_denied);
    if blind.len() == table.columns.len() {
        let rows = if table.rows == 0 && table.bytes.heap > 0 {
            ", nor a number of rows, so the copy gets no rows"
        } else {
            ""
        };
        let grant = if facts.row_security {
            format!(
                ", then capture as the owner of the table, or as a role with BYPASSRLS: row-level security hides statistics from role {role}"
            )
        } else if denied.is_empty() {
            ", then capture again".to_owned()
        } else {
            format!(" and GRANT SELECT ON {sql} TO {role}, then capture again")
        };
        return vec![format!("{name}: the table has no statistics{rows}: run ANALYZE {sql}{grant}")];
    }
    let mut warnings = Vec::new();
    if !denied.is_empty() {
        let columns = denied.iter().map(|column| shown(column)).collect::<Vec<_>>().join(", ");
        warnings.push(format!(
            "{name}: role {role} may not read these columns, so the model has no statistics of them: {columns}. Run GRANT SELECT ({columns}) ON \
             {sql} TO {role}, or connect as another role; then capture again"
        ));
    }
    if !missing.is_empty() {
        warnings.push(format!(
            "{name}: these columns have no statistics: {}. Run ANALYZE {sql}, then capture again",
            missing.join(", ")
        ));
    }
    warnings
}

/// Columns that get random values.
fn random(table: &Table) -> Vec<String> {
    let named = |is_so: &dyn Fn(&Column) -> bool| -> String {
        let columns = table.columns.iter().filter(|column| is_so(column) && column.nulls < 1.0);
        columns.map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let arrays = named(&|column| {
        let is_random = match &column.values {
            Values::Any { .. } => true,
            Values::Elements { elements, others: Others::Any, .. } => elements.is_empty(),
            _ => false,
        };
        is_random && column.data_type.ends_with("[]")
    });
    let ranges =
        named(&|column| matches!(column.values, Values::Any { .. }) && column.data_type.ends_with("range"));
    let mut warnings = Vec::new();
    if !arrays.is_empty() {
        warnings.push(format!(
            "{}: these arrays get random elements in the copy, because pg_stats lists no elements of them, or pgrig does not know their type: {arrays}",
            table.name
        ));
    }
    if !ranges.is_empty() {
        warnings.push(format!(
            "{}: these columns get random ranges in the copy, none of them empty: {ranges}. pg_stats has statistics of ranges from \
             PostgreSQL 17 on, and pgrig uses only those of PostgreSQL's own range types",
            table.name
        ));
    }
    warnings
}

/// Columns with statistics that the copy does not have: numbers and times that CHECKs tie to others, and types that pgrig does not know.
fn chosen(table: &Table, facts: &TableFacts) -> Vec<String> {
    let named = |is_so: &dyn Fn(&ColumnFacts, &str) -> bool| -> String {
        let columns = table.columns.iter().zip(&facts.columns).filter(|(column, facts)| {
            matches!(&column.values, Values::Fill { why } if facts.statistics.is_some() && is_so(facts, why))
        });
        columns.map(|(column, _)| column.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let is_counted = |facts: &ColumnFacts| facts.kind.as_ref().is_some_and(|kind| kind.units().is_some());
    let tied = named(&|facts, why| why.starts_with("constraint ") && is_counted(facts));
    let unknown = named(&|_, why| why == model::UNKNOWN_TYPE);
    let mut warnings = Vec::new();
    if !tied.is_empty() {
        warnings.push(format!(
            "{}: CHECKs tie these columns to others, so the copy has values that fulfil the CHECKs, not the frequencies and ranges of the \
             original: {tied}. pgrig keeps these only under CHECKs that put columns in order (a <= b)",
            table.name
        ));
    }
    if !unknown.is_empty() {
        warnings.push(format!(
            "{}: pgrig does not know the types of these columns, so their numbers of different values and frequencies in the copy are others: \
             {unknown}",
            table.name
        ));
    }
    warnings
}

/// A table with many values in its TOAST table.
fn wide(table: &Table) -> Option<String> {
    let Bytes { heap, toast, .. } = table.bytes;
    (toast > TOAST && toast as f64 > TOASTED * (heap + toast) as f64).then(|| {
        format!(
            "{}: {} of its values are in a TOAST table, and pg_stats has no lengths of them. Such values of a column have about the same length \
             in the copy, so that they take as many bytes. To measure the lengths of texts, capture with --aggregates",
            table.name,
            bytes(toast)
        )
    })
}

/// Columns whose texts are too short for others.
fn narrow(table: &Table) -> Option<String> {
    let narrow = table.columns.iter().filter(|column| column.is_exchanged());
    let narrow: Vec<String> = narrow.map(|column| format!("{}.{}", table.name, column.name)).collect();
    let options: Vec<String> =
        narrow.iter().map(|column| format!("--keep-values {}", shell_word(column))).collect();
    (!narrow.is_empty()).then(|| {
        format!(
            "{}: pgrig replaces the texts by others of the same length. There are too few other texts of these lengths, so the original \
             texts replace each other: the model and the copy contain them, in another order. To keep each text in its place, capture \
             again with {}",
            narrow.join(", "),
            options.join(" ")
        )
    })
}
