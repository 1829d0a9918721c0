//! The run document of `model check`.

use measure::human::counted;
use measure::{Event, Trial, Unit};
use model::{Bytes, Distance, Fidelity, Field, PlansCompared, Shapes, Sizes};
use serde_json::{Value, json};

/// The counts of the run document and their items: each column's fields, each table's sizes.
pub(super) fn trial(fidelity: &Fidelity, plans: Option<&PlansCompared>, shapes: Option<&Shapes>) -> Trial {
    let mut trial = Trial { config: "copy".to_owned(), ..Trial::default() };
    let (within, fields) = fidelity.counts();
    trial.observe("fields", fields as f64, Unit::Count);
    trial.observe("fields-within", within, Unit::Count);
    let (within, fields) = fidelity.fixed();
    trial.observe("fixed-fields", fields as f64, Unit::Count);
    trial.observe("fixed-fields-within", within, Unit::Count);
    trial.observe("null-fields", fidelity.nulls as f64, Unit::Count);
    if let Some((within, fields)) = fidelity.itself {
        trial.observe("own-fields", fields as f64, Unit::Count);
        trial.observe("own-fields-within", within, Unit::Count);
    }
    if let Some(plans) = plans {
        for (name, (same, pairs)) in [("plans", Some(plans.same)), ("own-plans", plans.itself)]
            .into_iter()
            .filter_map(|(name, pair)| Some((name, pair?)))
        {
            trial.observe(name, f64::from(pairs), Unit::Count);
            trial.observe(&format!("{name}-same"), f64::from(same), Unit::Count);
        }
        trial.observe("plans-share-low", plans.interval.0, Unit::Count);
        trial.observe("plans-share-high", plans.interval.1, Unit::Count);
        for (name, of) in [("estimates-factor-median", 0.5), ("estimates-factor-p95", 0.95)] {
            trial.observe(name, plans.factor(of), Unit::Count);
        }
    }
    if let Some(shapes) = shapes {
        observe_shapes(&mut trial, shapes);
    }
    trial.events.extend(columns(fidelity));
    trial.events.extend(fidelity.sizes.iter().map(sizes));
    trial
}

/// An event for each column, with the fields that the schema does not decide.
fn columns(fidelity: &Fidelity) -> Vec<Event> {
    let open: Vec<&Field> = fidelity.fields.iter().filter(|field| field.counts()).collect();
    let event = |fields: &[&Field]| {
        let column = &fields[0].column;
        let described: Vec<Value> = fields.chunk_by(|one, next| one.is_beside(next)).map(described).collect();
        let (within, all) = Field::within(fields);
        let within = (within * 10.0).round() / 10.0;
        let what = json!({ "event": "column", "column": column, "fields": described });
        Event { at: 0.0, text: format!("{column}: {within} of {all} fields as in the original"), what }
    };
    open.chunk_by(|one, next| one.column == next.column).map(event).collect()
}

/// A field; of an array, with the values at each rank.
fn described(ranks: &[&Field]) -> Value {
    let values = |of: fn(&Field) -> f64| match ranks {
        [field] if field.rank.is_none() => json!(of(field)),
        ranks => ranks.iter().map(|field| of(field)).collect(),
    };
    json!({
        "statistic": ranks[0].name,
        "original": values(|field| field.original),
        "copy": values(|field| field.copy),
        "tolerance": values(|field| field.tolerance),
    })
}

/// The sizes of a table, of the original and of the copy.
fn sizes(sizes: &Sizes) -> Event {
    let bytes = |of: &Bytes| of.heap + of.toast + of.indexes;
    let part = |of: fn(&Bytes) -> u64| json!({ "original": of(&sizes.bytes.0), "copy": of(&sizes.bytes.1) });
    let what = json!({
        "event": "table",
        "table": sizes.table,
        "rows": { "original": sizes.rows.0, "copy": sizes.rows.1 },
        "bytes": { "original": bytes(&sizes.bytes.0), "copy": bytes(&sizes.bytes.1) },
        "heap": part(|of| of.heap),
        "toast": part(|of| of.toast),
        "indexes": part(|of| of.indexes),
    });
    Event { at: 0.0, text: format!("{}: {} in the copy", sizes.table, counted(sizes.rows.1, "row")), what }
}

/// Numbers of distances, and their means.
fn observe_shapes(trial: &mut Trial, shapes: &Shapes) {
    for (name, distances) in
        [("column", &shapes.columns), ("pair", &shapes.pairs), ("rows-per-key", &shapes.keys)]
    {
        trial.observe(&format!("{name}-distances"), distances.len() as f64, Unit::Count);
        if let Some((copy, itself)) = Distance::means(distances) {
            trial.observe(&format!("{name}-distance"), copy, Unit::Count);
            trial.observe(&format!("own-{name}-distance"), itself, Unit::Count);
        }
    }
    trial.observe("broken-keys", shapes.orphans.len() as f64, Unit::Count);
}
