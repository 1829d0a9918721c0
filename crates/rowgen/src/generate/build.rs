//! Makes the generator of a column from its values.

use std::sync::Arc;

use super::distribution::Sampler;
use super::elements::Choosing;
use super::groups::Groups;
use super::letters::Lettering;
use super::pairing::Pairing;
use super::picking::Picking;
use super::ranked::Ranked;
use super::spread::{Spreading, count_of};
use super::statistics::Describing;
use super::topic::Form;
use super::{Generator, Nulls, Source, bare, share, steps};
use crate::random::Stream;
use crate::{Column, Keys, Kind, Pick, Reference, Table, Turn, Units, Values, Weighted};

impl Generator {
    /// The generator of some values of a column.
    pub(super) fn of(table: &Table, column: &Column, values: &Values) -> Self {
        let kind = column.kind.clone();
        let stream = Stream::new(table.seed, &[&table.name, &column.name]);
        let units = || kind.units().expect("checked: the kind is counted");
        let source = match values {
            Values::Any => Source::Any,
            Values::Server => panic!("{} is left to the server", column.name),
            Values::Null => Source::Null,
            Values::Int(value) => Source::Int(*value),
            Values::Text(text) => Source::Text(text.clone()),
            Values::Serial { start, step } => {
                Source::Serial { start: *start, step: *step, count: steps(*start, *step, units()) }
            }
            Values::Group { size, groups } => Source::Group { size: *size, groups: *groups },
            Values::Unique(turn) => Source::Unique { turn: *turn },
            Values::Long { turn, length } => Source::Long { turn: *turn, length: *length },
            Values::Shuffle { low, high } => {
                Source::Shuffle { low: *low, count: Units { low: *low, high: *high }.count() }
            }
            Values::Between { low, high } => Source::Between { low: *low, high: *high },
            Values::Drawn(distribution) => Source::Drawn {
                sampler: Sampler::new(*distribution),
                units: units(),
                real: matches!(kind, Kind::Float4 | Kind::Float8),
            },
            Values::List(list) => Source::List {
                values: list.iter().map(|weighted| weighted.value.clone()).collect(),
                bounds: bounds(list),
            },
            Values::Cycle(values) => Source::Cycle(values.clone()),
            Values::Payload { payload, low, high } => {
                Source::Payload { payload: *payload, low: *low, high: *high }
            }
            Values::Topic { topic, turn } => Source::Topic {
                form: Form::new(*topic, &kind, turn.is_some()).expect("checked: the topic suits the kind"),
                turn: turn.unwrap_or(Turn::EACH),
            },
            Values::Reference(reference) => Self::reference(table, reference),
            Values::Repeated { spread, values } => {
                let (spreading, count) =
                    if matches!(**values, Values::Letters(_) | Values::Any | Values::Elements(_)) {
                        Spreading::drawn(spread, stream.further(), table.rows)
                    } else {
                        let count = count_of(spread.distinct, table.rows);
                        (Spreading::new(spread, stream.further(), table.rows, count, count), count)
                    };
                let numbers = Table { rows: count, ..bare(table) };
                // Of few bits, random ones would be the same.
                let (each, is_any) = (Values::Unique(Turn::EACH), matches!(**values, Values::Any));
                let has_room =
                    matches!(kind, Kind::Bit(_)) && kind.distinct().is_some_and(|all| count <= all);
                let values = if is_any && has_room { &each } else { &**values };
                let mut values = Box::new(Self::of(&numbers, column, values));
                if let (Source::Letters(letters), Some(numbers)) = (&mut values.source, spreading.numbers()) {
                    letters.balance(&numbers.collect::<Vec<_>>(), values.stream);
                }
                Source::Repeated { values, spreading }
            }
            Values::Ranked { ranking, values } => Self::ranked(table, column, ranking, values, &[]),
            Values::Statistics(statistics) => {
                let extent = kind.extent().expect("checked: the kind is counted");
                Source::Statistics(Describing::new(statistics, stream, table.rows, extent))
            }
            Values::Ordered { other, others, side, values } => Source::Ordered {
                own: Box::new(Self::of(table, column, values)),
                other: Box::new(Self::of(table, &Column { name: other.clone(), ..column.clone() }, others)),
                side: *side,
                units: units(),
                apart: matches!(**others, Values::Ordered { .. }).then(|| apart(&kind)),
            },
            Values::Elements(elements) => {
                let Kind::Array(element) = &kind else { unreachable!("checked: the kind is an array") };
                Source::Elements(Box::new(Choosing::new(elements, element, table, column)))
            }
            Values::Letters(letters) => {
                Source::Letters(Lettering::new(letters, table.rows, kind.characters()))
            }
            Values::Leading { until, leading, others } => {
                let first = Table { rows: *until, ..bare(table) };
                Source::Leading {
                    until: *until,
                    leading: Box::new(Self::of(&first, column, leading)),
                    others: Box::new(Self::of(table, column, others)),
                }
            }
            Values::Nulls { fraction, by, values } => {
                let nulls = match by {
                    None => Nulls::by_chance(*fraction, table.rows, nulls(table, stream, values)),
                    Some(ranking) => {
                        let ranked = Ranked::new(ranking, table.seed, &table.name, table.rows);
                        Nulls::Ranked { not_null: ranked.not_null(*fraction), ranked }
                    }
                };
                Source::Nulls { others: Box::new(Self::beside(&nulls, table, column, values)), nulls }
            }
        };
        Self { kind, stream, source, may_be_null: values.may_be_null() }
    }

    fn reference(table: &Table, Reference { keys, column, pick, .. }: &Reference) -> Source {
        let pick = match pick {
            Pick::Random { name } => Picking::Random(constraint(table, name)),
            Pick::Spread { name, spread } => {
                let (all, used) = (keys.count(), count_of(spread.distinct, keys.count()));
                Picking::Spread(Spreading::new(spread, constraint(table, name), table.rows, all, used))
            }
            Pick::Earlier { name, first, null } => {
                Picking::Earlier { stream: constraint(table, name), first: *first, null: *null }
            }
            Pick::InTurn(turn) => Picking::InTurn(*turn),
            Pick::Shared(shared) if !shared.sizes.is_empty() => Picking::Groups(Groups::new(shared)),
            Pick::Shared(shared) => Picking::shared(shared),
            Pick::Paired(paired) => {
                Picking::Paired(Box::new(Pairing::new(paired, constraint(table, &paired.name))))
            }
        };
        match &**keys {
            Keys::Made { table, first } => {
                let key = Box::new(Self::new(table, &table.columns[*column]));
                Source::Made { key, first: *first, count: keys.count().max(1), pick }
            }
            _ => Source::Reference { keys: Arc::clone(keys), column: *column, pick },
        }
    }
}

/// The random numbers that all columns of a constraint share.
fn constraint(table: &Table, name: &str) -> Stream {
    // No column has an empty name.
    Stream::new(table.seed, &[&table.name, "", name])
}

/// Decides which rows are NULL: for all columns of a foreign key the same.
fn nulls(table: &Table, column: Stream, values: &Values) -> Stream {
    match values {
        Values::Reference(Reference {
            pick: Pick::Random { name } | Pick::Spread { name, .. } | Pick::Earlier { name, .. },
            ..
        }) => constraint(table, name).further(),
        _ => column.further(),
    }
}

/// Ends, in 0 to 2^64, of the share of each value but the last.
fn bounds(list: &[Weighted]) -> Vec<u64> {
    let total: f64 = list.iter().map(|weighted| weighted.weight).sum();
    let mut sum = 0.0;
    let mut until = |weighted: &Weighted| {
        sum += weighted.weight;
        share(sum / total).saturating_mul(2)
    };
    list[..list.len() - 1].iter().map(&mut until).collect()
}

/// How far a value is above another one at least, where the other one does not give way: columns with few digits round times to seconds.
fn apart(kind: &Kind) -> i64 {
    match kind {
        Kind::Timestamp | Kind::TimestampTz | Kind::Time | Kind::TimeTz | Kind::Interval => 1_000_000,
        _ => 1,
    }
}
