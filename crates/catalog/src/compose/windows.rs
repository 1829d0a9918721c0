//! Columns whose values ascend in each row: each gets a stretch of its own, apart from those of the others.

use std::collections::{BTreeMap, BTreeSet};

use rowgen::{Kind, Units};

use super::{Choice, is_counted_on};
use crate::allowed::{Allowed, Set};
use crate::condition::{Condition, Operator};
use crate::looks;
use crate::slot::Slot;

/// Stretches for columns of the same kind that have to ascend in a row, like a start and an end.
pub(super) fn windows(choice: &Choice<'_>, conditions: &[Condition]) -> BTreeMap<String, Units> {
    let mut pairs: Vec<(&str, &str)> = conditions.iter().flat_map(ascending).collect();
    pairs.extend(times(choice, &pairs));
    let random = |name: &str| {
        let slot = choice.slots.iter().find(|slot| slot.name() == name && slot.is_free())?;
        let is_taken = choice.turn(name).is_some() || choice.groups.iter().any(|group| group.has(name));
        let is_listed = matches!(choice.way.allowed(name).set, Set::Listed(_));
        (!is_taken && !is_listed && is_counted_on(&slot.kind)).then_some(slot)
    };
    let pairs: Vec<(&Slot<'_>, &Slot<'_>)> = pairs
        .into_iter()
        .filter_map(|(low, high)| Some((random(low)?, random(high)?)))
        .filter(|(low, high)| low.kind == high.kind)
        .collect();
    // The longest chain below a column is its level; a cycle ends after as many rounds as columns.
    let mut levels: BTreeMap<&str, i64> = BTreeMap::new();
    for _ in 0..choice.slots.len() {
        for (low, high) in &pairs {
            let above = levels.get(low.name()).copied().unwrap_or(0) + 1;
            levels.entry(low.name()).or_insert(0);
            let level = levels.entry(high.name()).or_insert(0);
            *level = above.max(*level);
        }
    }
    let bounds = Bounds::of(choice, &pairs);
    let mut apart = BTreeMap::new();
    for together in connected(&pairs) {
        let windows = together.iter().map(|name| Some((*name, (bounds.window(name)?, levels[name]))));
        let windows: Option<BTreeMap<&str, (Units, i64)>> = windows.collect();
        apart.extend(windows.and_then(|windows| ascending_windows(&windows)).unwrap_or_default());
    }
    apart
}

/// The columns that pairs connect, in groups.
fn connected<'c>(pairs: &[(&'c Slot<'c>, &'c Slot<'c>)]) -> Vec<BTreeSet<&'c str>> {
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for (low, high) in pairs {
        let mut group = BTreeSet::from([low.name(), high.name()]);
        let (met, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(|other| !other.is_disjoint(&group));
        group.extend(met.into_iter().flatten());
        groups = apart;
        groups.push(group);
    }
    groups
}

/// A column's own stretch, and its bounds: none where conditions leave that end open.
#[derive(Clone, Copy)]
struct Bound<'a> {
    kind: &'a Kind,
    own: Units,
    low: Option<i64>,
    high: Option<i64>,
}

/// Bounds of columns that have to ascend in a row.
struct Bounds<'a> {
    columns: BTreeMap<&'a str, Bound<'a>>,
}

impl<'a> Bounds<'a> {
    /// The columns' own bounds, and those that follow from the columns that are less or greater.
    fn of(choice: &Choice<'a>, pairs: &[(&'a Slot<'a>, &'a Slot<'a>)]) -> Self {
        let mut columns = BTreeMap::new();
        for slot in pairs.iter().flat_map(|(low, high)| [*low, *high]) {
            let allowed = choice.way.allowed(slot.name());
            if let (Some(own), Some(whole)) = (allowed.stretch(&slot.kind), slot.kind.units()) {
                let low = (own.low > whole.low).then_some(own.low);
                let high = (own.high < whole.high).then_some(own.high);
                columns.insert(slot.name(), Bound { kind: &slot.kind, own, low, high });
            }
        }
        for _ in 0..columns.len() {
            for (low, high) in pairs {
                let [Some(mut lesser), Some(mut greater)] =
                    [low, high].map(|slot| columns.get(slot.name()).copied())
                else {
                    continue;
                };
                if let Some(most) = greater.high {
                    lesser.high = Some(
                        lesser.high.map_or(most.saturating_sub(1), |own| own.min(most.saturating_sub(1))),
                    );
                }
                if let Some(least) = lesser.low {
                    greater.low = Some(
                        greater.low.map_or(least.saturating_add(1), |own| own.max(least.saturating_add(1))),
                    );
                }
                columns.insert(low.name(), lesser);
                columns.insert(high.name(), greater);
            }
        }
        Self { columns }
    }

    /// The values for a column; none if its bounds contradict each other.
    fn window(&self, name: &str) -> Option<Units> {
        let Bound { kind, own, low, high } = *self.columns.get(name)?;
        let whole = kind.units()?;
        let from_zero = (own == whole && low.is_none() && high.is_some_and(|high| high > 0)).then_some(0);
        let bounded = Units { low: low.or(from_zero).unwrap_or(whole.low), high: high.unwrap_or(whole.high) };
        (bounded.low <= bounded.high).then(|| Allowed::only(Set::Units(vec![bounded])).window(kind))?
    }
}

/// Stretches within the columns' windows, those of each level above those of the levels below; none if there is no room.
fn ascending_windows(windows: &BTreeMap<&str, (Units, i64)>) -> Option<BTreeMap<String, Units>> {
    let count = windows.values().map(|(_, level)| level + 1).max()?;
    // The greatest value of the levels below this one.
    let limit = |level: i64| {
        let below = windows.values().filter(|(_, one)| *one < level);
        let above = windows.values().filter(|(_, one)| *one >= level);
        let least = below.map(|(window, _)| window.low).max()?;
        let most = above.map(|(window, _)| window.high).min()?;
        let width = i128::from(most) - i128::from(least);
        let part = (width * i128::from(level) / i128::from(count)).min(width - 1);
        (width > 0).then(|| i64::try_from(i128::from(least) + part).ok())?
    };
    let placed = |(name, (window, level)): (&&str, &(Units, i64))| {
        let low = if *level > 0 { window.low.max(limit(*level)? + 1) } else { window.low };
        let high = if level + 1 < count { window.high.min(limit(level + 1)?) } else { window.high };
        (low <= high).then(|| ((*name).to_owned(), Units { low, high }))
    };
    windows.iter().map(placed).collect()
}

/// Times that pass one after the other in a row, as their columns' names say, where no condition orders them.
fn times<'c>(choice: &Choice<'c>, ordered: &[(&str, &str)]) -> Vec<(&'c str, &'c str)> {
    if choice.plain {
        return Vec::new();
    }
    let is_free = |slot: &&Slot<'_>| {
        let is_ordered = ordered.iter().any(|(low, high)| [*low, *high].contains(&slot.name()));
        slot.is_free() && !is_ordered
    };
    let place = |slot: &'c Slot<'c>| Some((looks::time_order(slot.name(), &slot.kind)?, slot.name()));
    let times: Vec<(usize, &str)> = choice.slots.iter().filter(is_free).filter_map(place).collect();
    let pairs = times.iter().flat_map(|low| times.iter().map(move |high| (low, high)));
    pairs.filter(|(low, high)| low.0 < high.0).map(|(low, high)| (low.1, high.1)).collect()
}

/// Pairs of columns, the lesser first.
pub(super) fn ascending(condition: &Condition) -> Vec<(&str, &str)> {
    match condition {
        Condition::All(parts) => parts.iter().flat_map(ascending).collect(),
        Condition::Columns { left, operator, right } => match operator {
            Operator::Less | Operator::LessOrEqual => vec![(left, right)],
            Operator::Greater | Operator::GreaterOrEqual => vec![(right, left)],
            Operator::Equal | Operator::NotEqual => Vec::new(),
        },
        // The first alternative whose columns ascend is one way to fulfil all.
        Condition::Any(parts) => {
            parts.iter().map(ascending).find(|pairs| !pairs.is_empty()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}
