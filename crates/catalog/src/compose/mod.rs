//! The values of each column, from its turns, its references and its allowed values.

mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rowgen::{Column, Keyed, Keys, Kind, Pick, Reference, Table, Turn, Units, Values};

use super::allowed::{Allowed, Set};
use super::condition::Condition;
use super::constants::in_units;
use super::defaults::FromSequence;
use super::error::CatalogError;
use super::info::TableInfo;
use super::keys::Part;
use super::looks;
use super::narrow::Way;
use super::present::Present;
use super::references::{Group, Origin};
use super::slot::{Role, Slot};

use self::windows::{ascending, windows};

/// Fraction of NULLs in a column that may have them.
const NULLS: f64 = 0.05;
/// Fraction of NULLs in a column that is NULL in most rows, e.g. a time of deletion.
const MOSTLY_NULLS: f64 = 0.9;
/// A second, microseconds.
const SECOND: i64 = 1_000_000;

/// Decisions from which a table's description is composed.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a> {
    pub(super) table: &'a str,
    pub(super) info: &'a TableInfo,
    /// Number of rows whose keys reach from the first partition to the last one; none if rows may be added later.
    pub(super) spread: Option<u64>,
    /// Columns that tables filled later reference.
    pub(super) referenced: &'a [String],
    pub(super) seed: u64,
    /// Whether names of columns say nothing of their values.
    pub(super) plain: bool,
    pub(super) slots: &'a [Slot<'a>],
    pub(super) way: &'a Way,
    pub(super) groups: &'a [Group],
    pub(super) parts: &'a [Part],
    pub(super) present: &'a Present,
    pub(super) first_row: u64,
}

/// The columns with their values.
pub(super) fn compose(
    info: &TableInfo,
    choice: &Choice<'_>,
    conditions: &[Condition],
) -> Result<Vec<Column>, CatalogError> {
    let windows = windows(choice, conditions);
    choice
        .slots
        .iter()
        .map(|slot| {
            let values = match &slot.role {
                Role::OwnKey { of, earlier } => {
                    choice.own_key(info, slot, (of, earlier.as_deref()), &windows)?
                }
                _ => choice.values(slot, &windows),
            };
            let column = Column {
                name: slot.name().to_owned(),
                kind: choice.kind(slot),
                not_null: slot.info.not_null,
                values,
            };
            column.check().map_err(|error| CatalogError::Unsuited {
                table: info.shown(),
                column: slot.name().to_owned(),
                why: error.to_string(),
            })?;
            Ok(column)
        })
        .collect()
}

/// The free columns with the values that they would have if no key were unique.
pub(super) fn drawn(choice: Choice<'_>, conditions: &[Condition]) -> Vec<Column> {
    let choice = Choice { parts: &[], ..choice };
    let windows = windows(&choice, conditions);
    let free = choice.slots.iter().filter(|slot| slot.is_free());
    free.map(|slot| Column {
        name: slot.name().to_owned(),
        kind: choice.kind(slot),
        not_null: slot.info.not_null,
        values: choice.values(slot, &windows),
    })
    .collect()
}

/// The columns that conditions order.
pub(super) fn ordered(conditions: &[Condition]) -> BTreeSet<&str> {
    conditions.iter().flat_map(ascending).flat_map(|(low, high)| [low, high]).collect()
}

/// Whether columns that have to ascend in a row do so because their values come from stretches apart.
pub(super) fn ascends(choice: &Choice<'_>, conditions: &[Condition], condition: &Condition) -> bool {
    fn holds(windows: &BTreeMap<String, Units>, condition: &Condition) -> bool {
        match condition {
            Condition::All(parts) => parts.iter().all(|part| holds(windows, part)),
            Condition::Any(parts) => parts.iter().any(|part| holds(windows, part)),
            Condition::Columns { .. } => ascending(condition).into_iter().any(|(low, high)| {
                windows.get(low).zip(windows.get(high)).is_some_and(|(low, high)| low.high < high.low)
            }),
            _ => false,
        }
    }
    holds(&windows(choice, conditions), condition)
}

impl Choice<'_> {
    fn values(&self, slot: &Slot<'_>, windows: &BTreeMap<String, Units>) -> Values {
        match &slot.role {
            Role::Server | Role::OwnKey { .. } => return Values::Server,
            Role::Unknown => return Values::Null,
            Role::Given(values) => return values.clone(),
            Role::Sequence(FromSequence { next, step, .. }) => {
                // Row numbers do not begin at 0, values shall begin at the sequence's next one.
                let passed = i64::try_from(self.first_row).unwrap_or(i64::MAX).saturating_mul(*step);
                return Values::Serial { start: next.saturating_sub(passed), step: *step };
            }
            Role::Free => {}
        }
        let allowed = self.way.allowed(slot.name());
        if let Some(group) = self.groups.iter().find(|group| group.has(slot.name())) {
            return self.reference(slot, group, &allowed);
        }
        if let Some(turn) = self.turn(slot.name()) {
            let by_name = self.by_name(slot, &allowed, Some(turn));
            return by_name.unwrap_or_else(|| self.in_turn(slot, &allowed, turn));
        }
        let values = match windows.get(slot.name()) {
            Some(&Units { low, high }) => Values::Between { low, high },
            None => self.by_name(slot, &allowed, None).unwrap_or_else(|| allowed.random(&slot.kind)),
        };
        let may_be_null = !slot.info.not_null && allowed.null && values != Values::Null;
        if may_be_null && slot.nulls.is_none() && !self.plain && looks::is_seldom(slot.name(), &slot.kind) {
            return Values::Nulls { fraction: MOSTLY_NULLS, by: None, values: Box::new(values) };
        }
        if may_be_null { nulled(values, slot.nulls) } else { values }
    }

    /// Values that the column's name suggests.
    fn by_name(&self, slot: &Slot<'_>, allowed: &Allowed, turn: Option<Turn>) -> Option<Values> {
        if self.plain {
            return None;
        }
        looks::values(self.table, slot.name(), &self.kind(slot), allowed, turn)
    }

    /// The column's kind; of texts no longer than a CHECK allows.
    fn kind(&self, slot: &Slot<'_>) -> Kind {
        if slot.is_free() { self.way.allowed(slot.name()).shortened(&slot.kind) } else { slot.kind.clone() }
    }

    fn turn(&self, column: &str) -> Option<Turn> {
        self.parts.iter().find(|part| part.columns.iter().any(|name| name == column))?.turn
    }

    /// The choice of a row's key for a column: by the turn, by groups that share the rows, or by pairs.
    fn pick(&self, column: &str, turn: Turn) -> Pick {
        let part = self.parts.iter().find(|part| part.columns.iter().any(|name| name == column));
        part.and_then(|part| part.pick.clone()).unwrap_or(Pick::InTurn(turn))
    }

    fn reference(&self, slot: &Slot<'_>, group: &Group, allowed: &Allowed) -> Values {
        let pick = match self.turn(slot.name()) {
            Some(turn) => self.pick(slot.name(), turn),
            None => match self.keyed(group) {
                Some(keyed) => Pick::Spread { name: group.name.clone(), spread: keyed.spread.clone() },
                None => Pick::Random { name: group.name.clone() },
            },
        };
        let is_random = matches!(pick, Pick::Random { .. } | Pick::Spread { .. });
        let column = group.columns.iter().position(|name| name == slot.name()).unwrap_or(0);
        if let Keys::Listed(keys) = &*group.keys
            && keys.iter().all(|key| key[column].is_none())
        {
            return Values::Null;
        }
        let values = Values::Reference(Reference {
            keys: Arc::clone(&group.keys),
            column,
            pick,
            is_allowed: group.origin != Origin::References,
        });
        // Columns that belong together have NULLs together.
        let nulls = slot.nulls.filter(|_| group.columns.len() == 1);
        if group.origin != Origin::References {
            let has_own = nulls.is_some() && is_random && !slot.info.not_null;
            return if has_own { nulled(values, nulls) } else { values };
        }
        // All columns of a key are NULL together, which every kind of MATCH accepts.
        let nullable = |name: &String| {
            let slot = self.slots.iter().find(|slot| slot.name() == name);
            slot.is_some_and(|slot| !slot.info.not_null) && self.way.allowed(name).null
        };
        let may_be_null = is_random && allowed.null && group.columns.iter().all(nullable);
        let Some(keyed) = self.keyed(group) else {
            return if may_be_null { nulled(values, nulls) } else { values };
        };
        let ranked = |values| match keyed.ranking.clone().filter(|_| is_random) {
            Some(ranking) => Values::Ranked { ranking, values: Box::new(values) },
            None => values,
        };
        match keyed.nulls.filter(|fraction| may_be_null && *fraction > 0.0) {
            None => ranked(values),
            // NULLs with an order of their own stand before the order of the values.
            Some(fraction) if keyed.nulls_by.is_some() => {
                Values::Nulls { fraction, by: keyed.nulls_by.clone(), values: Box::new(ranked(values)) }
            }
            Some(fraction) => ranked(Values::Nulls { fraction, by: None, values: Box::new(values) }),
        }
    }

    /// How often rows refer to the group's keys, if the user says so of one of its columns.
    fn keyed(&self, group: &Group) -> Option<&Keyed> {
        self.slots.iter().find(|slot| slot.keyed.is_some() && group.has(slot.name()))?.keyed.as_ref()
    }

    /// Values that differ between turns. They begin after the values that the table already has.
    fn in_turn(&self, slot: &Slot<'_>, allowed: &Allowed, turn: Turn) -> Values {
        let listed = |keys: Keys, turn| {
            let pick = self.pick(slot.name(), turn);
            Values::Reference(Reference { keys: Arc::new(keys), column: 0, pick, is_allowed: true })
        };
        if let Set::Listed(values) = &allowed.set {
            return listed(
                Keys::Listed(values.iter().map(|value| vec![Some(value.clone())]).collect()),
                turn,
            );
        }
        if matches!(slot.kind, Kind::Bool | Kind::Enum { .. }) {
            let stretch = allowed.stretch(&slot.kind);
            return stretch.map_or(Values::Unique(turn), |Units { low, high }| {
                listed(Keys::Interval { low, high }, turn)
            });
        }
        let run = is_counted_on(&slot.kind).then(|| Run::of(slot, allowed, self.present)).flatten();
        let Some(run) = run else { return Values::unique(&slot.kind, turn, allowed.shortest) };
        // Values of columns that are turned together alternate: those of a range's ends.
        let together = self.parts.iter().find(|part| part.columns.iter().any(|name| name == slot.name()));
        let (at, of) = together.map_or((0, 1), |part| {
            (part.columns.iter().position(|name| name == slot.name()).unwrap_or(0), part.columns.len())
        });
        let (at, of) = (i64::try_from(at).unwrap_or(0), i64::try_from(of).unwrap_or(1));
        let run = Run { start: run.start.saturating_add(run.step * at), step: run.step * of, ..run };
        // Row numbers do not begin at 0, values shall begin at the run's start.
        let passed = i64::try_from(self.first_row / turn.every).unwrap_or(i64::MAX);
        let start = run.start.saturating_sub(passed.saturating_mul(run.step));
        let is_shared = !matches!(self.pick(slot.name(), turn), Pick::InTurn(_));
        if turn.every == 1 && turn.of == u64::MAX && !is_shared {
            let spread = if of == 1 { self.over_partitions(slot, allowed, &run) } else { None };
            return spread.unwrap_or(Values::Serial { start, step: run.step });
        }
        let low = slot.kind.units().map_or(start, |whole| start.max(whole.low));
        listed(Keys::Interval { low, high: run.high }, turn)
    }

    /// Values of a partition key that reach from the first partition to the last one; none of another column, or if rows may be
    /// added later.
    fn over_partitions(&self, slot: &Slot<'_>, allowed: &Allowed, run: &Run) -> Option<Values> {
        let rows = self.spread?;
        let bounds = self.info.partition_condition().filter(|_| self.info.partitions.is_some())?;
        let is_of_bounds = self.info.columns_in(&bounds).contains(&slot.name());
        // Only whole numbers without gaps suit a foreign key of another type.
        let is_number = matches!(slot.kind, Kind::Int2 | Kind::Int4 | Kind::Int8);
        let must_be_close = is_number && self.referenced.iter().any(|name| name == slot.name());
        if !is_of_bounds || must_be_close || !matches!(allowed.set, Set::Units(_)) {
            return None;
        }
        run.within(allowed.window(&slot.kind)?)?.spread(rows)
    }

    /// The value that the referenced column has in an earlier row, or in the same one.
    fn own_key(
        &self,
        info: &TableInfo,
        slot: &Slot<'_>,
        (of, earlier): (&str, Option<&str>),
        windows: &BTreeMap<String, Units>,
    ) -> Result<Values, CatalogError> {
        let referenced = self.slots.iter().find(|slot| slot.name() == of);
        let values = referenced.map(|referenced| (self.kind(referenced), self.values(referenced, windows)));
        let (kind, values) = match values {
            Some((kind, values)) if is_by_row_number(&values) => (kind, values),
            _ if !slot.info.not_null => return Ok(Values::Null),
            _ => {
                return Err(CatalogError::SelfReference {
                    table: info.shown(),
                    column: slot.name().to_owned(),
                    referenced: of.to_owned(),
                });
            }
        };
        let key = |values| Column { name: of.to_owned(), kind, not_null: true, values };
        Ok(match (earlier, values) {
            (Some(name), values) => {
                let null = !slot.info.not_null;
                let pick = Pick::Earlier { name: name.to_owned(), first: self.first_row, null };
                let values = self.made(key(values), pick);
                if null { nulled(values, slot.nulls) } else { values }
            }
            (None, values @ (Values::Serial { .. } | Values::Int(_) | Values::Text(_))) => values,
            (None, values) => self.made(key(values), Pick::InTurn(Turn::EACH)),
        })
    }

    /// Keys of the table's own rows, whose number does not matter.
    fn made(&self, key: Column, pick: Pick) -> Values {
        let table =
            Table { name: self.table.to_owned(), columns: vec![key], rows: u64::MAX, seed: self.seed };
        Values::Reference(Reference {
            keys: Arc::new(Keys::Made { table, first: 0 }),
            column: 0,
            pick,
            is_allowed: false,
        })
    }
}

/// Whether a value follows from the number of its row, whatever the number of rows.
fn is_by_row_number(values: &Values) -> bool {
    match values {
        Values::Reference(Reference { pick, .. }) => !matches!(pick, Pick::Spread { .. } | Pick::Paired(_)),
        Values::Server
        | Values::Null
        | Values::Repeated { .. }
        | Values::Statistics(_)
        | Values::Letters(_)
        | Values::Ordered { .. }
        | Values::Ranked { .. }
        | Values::Nulls { .. } => false,
        _ => true,
    }
}

/// The values, and NULL in this fraction of the rows, or in a few.
pub(super) fn nulled(values: Values, fraction: Option<f64>) -> Values {
    let fraction = fraction.unwrap_or(NULLS);
    if fraction > 0.0 { Values::Nulls { fraction, by: None, values: Box::new(values) } } else { values }
}

/// Whether keys of this kind continue after the greatest present value: numbers, dates and times.
pub(super) fn is_counted_on(kind: &Kind) -> bool {
    in_units(kind).is_some() && !matches!(kind, Kind::Bool | Kind::Enum { .. })
}

/// Values for new keys, one after the other.
pub(super) struct Run {
    start: i64,
    step: i64,
    high: i64,
}

impl Run {
    /// After the present values, within the allowed ones; none if there is no room.
    pub(super) fn of(slot: &Slot<'_>, allowed: &Allowed, present: &Present) -> Option<Self> {
        let Units { low, high } = allowed.stretch(&slot.kind)?;
        let step = step(slot, high.saturating_sub(low.max(0)));
        // Ids begin at 1, dates and times at 2000-01-01, where that is allowed.
        let first = i64::from(step == 1 && slot.kind != Kind::Date);
        let from = if low > 0 || high < first { low } else { first };
        let start = match present.greatest(slot.name()) {
            Some(greatest) if greatest >= from => greatest.checked_add(step)?,
            _ => from,
        };
        (start <= high).then_some(Self { start, step, high })
    }

    /// Number of values.
    pub(super) fn count(&self) -> u64 {
        (self.high.abs_diff(self.start) / self.step.unsigned_abs()).saturating_add(1)
    }

    /// Those of its values that lie in a stretch; none if there are none.
    fn within(&self, stretch: Units) -> Option<Self> {
        let before = stretch.low.saturating_sub(self.start).max(0);
        let steps = before / self.step + i64::from(before % self.step > 0);
        let start = self.start.checked_add(steps.checked_mul(self.step)?)?;
        let high = self.high.min(stretch.high);
        (start <= high).then_some(Self { start, high, ..*self })
    }

    /// `rows` values at equal distances over the whole range; none if the range has fewer.
    fn spread(&self, rows: u64) -> Option<Values> {
        let steps = i64::try_from(self.count().checked_div(rows)?).ok().filter(|steps| *steps > 0)?;
        Some(Values::Serial { start: self.start, step: self.step.checked_mul(steps)? })
    }
}

/// Distance between two values: seconds for timestamps, where those are enough for many rows; else the least distance
/// that the column's precision allows.
fn step(slot: &Slot<'_>, length: i64) -> i64 {
    if !matches!(slot.kind, Kind::Timestamp | Kind::TimestampTz | Kind::Time | Kind::TimeTz | Kind::Interval)
    {
        return 1;
    }
    let digits = slot.info.data_type.base().modifiers.first().copied().unwrap_or(6).clamp(0, 6);
    let finest = 10_i64.pow(6 - digits.unsigned_abs());
    if length / SECOND >= 100_000_000 { SECOND } else { finest.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_reach_from_the_first_partition_to_the_last_one() {
        let run = Run { start: 1, step: 1, high: 2_000_000 };
        let serial = |run: &Run, rows| match run.spread(rows) {
            Some(Values::Serial { start, step }) => Some((start, step)),
            _ => None,
        };
        assert_eq!(serial(&run, 1_000), Some((1, 2_000)));
        assert_eq!(serial(&run, 1_500_000), Some((1, 1)));
        assert_eq!(serial(&run, 2_000_001), None);
        assert_eq!(serial(&run, 0), None);
        // Seconds from 2000 on, in partitions before an open end.
        let seconds = Run { start: 0, step: SECOND, high: i64::MAX };
        let within = seconds.within(Units { low: 5 * SECOND + 1, high: 16 * SECOND - 1 }).unwrap();
        assert_eq!((within.start, within.count()), (6 * SECOND, 10));
        assert_eq!(serial(&within, 5), Some((6 * SECOND, 2 * SECOND)));
        assert!(seconds.within(Units { low: -9, high: -1 }).is_none());
    }
}
