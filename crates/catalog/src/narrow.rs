//! Derives from conditions the values that each column may have.

use std::collections::{BTreeMap, BTreeSet};

use rowgen::{Kind, Units};

use super::allowed::{Allowed, Set};
use super::condition::{Condition, Operator, Subject};
use super::constants::{Constant, Constants, in_units, is_float};
use super::info::KeyInfo;
use super::slot::Slot;

/// One way to fulfil conditions: the values that each column may then have. A column that is not
/// named may have any value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Way {
    pub(super) columns: BTreeMap<String, Allowed>,
    /// Number of alternatives of the conditions that this way covers.
    covers: usize,
    /// Whether all of the condition was understood.
    understood: bool,
}

/// Most ways that are considered; further ways of a condition are dropped.
const MOST_WAYS: usize = 4096;

/// Reads conditions with their constants.
pub(super) struct Narrow<'a> {
    pub(super) slots: &'a [Slot<'a>],
    pub(super) constants: &'a Constants,
    /// The table's unique keys.
    pub(super) keys: &'a [KeyInfo],
    /// Whether alternatives that are not understood count like others. Otherwise they are dropped.
    pub(super) all_alternatives: bool,
    /// The bounds of partitions, of which as many as possible get rows.
    pub(super) bounds: Option<&'a Condition>,
}

impl Narrow<'_> {
    /// The way to fulfil all conditions that covers most, e.g. the most partitions; none if they
    /// contradict each other.
    pub(super) fn best(&self, conditions: &[Condition]) -> Option<Way> {
        let best = broadest(&self.joined(conditions))?.clone();
        let listed = |(column, allowed): (String, Allowed)| match self.kind(&column) {
            Some(kind) => (column, allowed.listed(kind)),
            None => (column, allowed),
        };
        Some(Way { columns: best.columns.into_iter().map(listed).collect(), ..best })
    }

    /// Ways to fulfil all conditions. If none of them reaches all partitions, ways for partitions with levels of their own also cover those
    /// beside them.
    pub(super) fn joined(&self, conditions: &[Condition]) -> Vec<Way> {
        let ways = self.all(conditions);
        let reaches_all = |way: &Way| self.bounds.is_none_or(|bounds| self.reaches_all(bounds, way));
        if broadest(&ways).is_none_or(reaches_all) { ways } else { merged(ways, Way::beside) }
    }

    /// Whether some rows fulfil both the way and each alternative of the condition.
    fn reaches_all(&self, condition: &Condition, way: &Way) -> bool {
        let Condition::Any(parts) = condition else { return true };
        let ways = parts.iter().map(|part| self.ways(part)).filter(|ways| !ways.is_empty());
        let mut reached = ways.map(|ways| ways.iter().any(|one| one.and(way).is_possible()));
        reached.all(|reached| reached)
    }

    /// Whether every way that fulfils the condition is fully understood, so that all its rows pass
    /// for certain.
    pub(super) fn understands(&self, condition: &Condition) -> bool {
        self.ways(condition).iter().all(Way::is_understood)
    }

    /// Whether rows fulfil the condition because one of these columns is NULL.
    pub(super) fn needs_null(&self, condition: &Condition, columns: &BTreeSet<&str>) -> bool {
        let is_null = |(column, allowed): (&String, &Allowed)| {
            allowed.set == Set::NullOnly && columns.contains(column.as_str())
        };
        self.ways(condition).iter().any(|way| way.columns.iter().any(is_null))
    }

    fn kind(&self, column: &str) -> Option<&Kind> {
        self.slots.iter().find(|slot| slot.name() == column).map(|slot| &slot.kind)
    }

    fn is_not_null(&self, column: &str) -> bool {
        self.slots.iter().any(|slot| slot.name() == column && slot.info.not_null)
    }

    fn is_in_a_key(&self, column: &str) -> bool {
        self.keys.iter().any(|key| key.columns().any(|name| name == column))
    }

    fn ways(&self, condition: &Condition) -> Vec<Way> {
        match condition {
            Condition::All(parts) => self.all(parts),
            Condition::Any(parts) => self.any(parts),
            Condition::Compare { subject, operator, constant } => {
                let allowed = self
                    .constants
                    .one(subject, constant)
                    .and_then(|constant| self.compared(subject, *operator, constant));
                Way::of(subject, allowed)
            }
            Condition::OneOf { subject, array } => {
                let allowed = self.constants.array(subject, array).and_then(|constants| {
                    let each = constants.iter().map(|one| self.compared(subject, Operator::Equal, one));
                    each.collect::<Option<Vec<_>>>()?.into_iter().reduce(|a, b| a.or(&b))
                });
                Way::of(subject, allowed)
            }
            // No way, then: another alternative of the condition has to hold.
            Condition::Null { column } if self.is_not_null(column) => Vec::new(),
            Condition::Null { column } => {
                Way::of(&Subject::Value(column.clone()), Some(Allowed::only(Set::NullOnly)))
            }
            Condition::NotNull { column } => {
                let not_null = Allowed { null: false, ..Allowed::anything() };
                Way::of(&Subject::Value(column.clone()), Some(not_null))
            }
            Condition::Columns { .. } | Condition::Other => vec![Way::not_understood()],
        }
    }

    /// Every way to fulfil all conditions.
    pub(super) fn all(&self, parts: &[Condition]) -> Vec<Way> {
        parts.iter().fold(vec![Way::anything()], |ways, part| {
            let more = self.ways(part);
            let both = ways.iter().flat_map(|way| more.iter().map(|other| way.and(other)));
            merged(both.filter(Way::is_possible).take(MOST_WAYS).collect(), Way::or)
        })
    }

    /// Every way to fulfil one of the conditions. Alternatives that are understood are preferred,
    /// and among those the ones that leave a column a value.
    fn any(&self, parts: &[Condition]) -> Vec<Way> {
        let mut ways: Vec<Way> = parts.iter().flat_map(|part| self.ways(part)).take(MOST_WAYS).collect();
        if self.all_alternatives && !ways.iter().all(Way::is_understood) {
            return vec![Way::not_understood()];
        }
        for preferred in [Way::is_understood, Way::has_values] {
            if ways.iter().any(preferred) {
                ways.retain(preferred);
            }
        }
        merged(ways, Way::or)
    }

    fn compared(&self, subject: &Subject, operator: Operator, constant: &Constant) -> Option<Allowed> {
        let (Subject::Value(column) | Subject::Length(column) | Subject::Bytes(column)) = subject;
        let kind = self.kind(column)?;
        let is_length = match (subject, kind) {
            (Subject::Value(_), _) => false,
            (_, Kind::Bytea)
            | (Subject::Length(_), Kind::Text | Kind::Varchar(_) | Kind::Char(_) | Kind::Name) => true,
            _ => return None,
        };
        if is_length {
            let allowed = of_length(operator, constant)?;
            // Bytes that all differ are not shorter than this. Texts may be; they are fewer then.
            let least = kind.unique_length().filter(|_| *kind == Kind::Bytea && self.is_in_a_key(column));
            let is_short = allowed.longest.zip(least).is_some_and(|(longest, least)| longest < least);
            return (!is_short).then_some(allowed);
        }
        let set = if is_float(kind) {
            floats(operator, constant.float?)?
        } else if in_units(kind).is_some() {
            Set::Units(units(kind, operator, constant)?)
        } else if operator == Operator::Equal {
            Set::Listed(vec![constant.text.clone()])
        } else {
            return None;
        };
        Some(Allowed::only(set))
    }
}

impl Way {
    /// The values that the column may have.
    pub(super) fn allowed(&self, column: &str) -> Allowed {
        self.columns.get(column).cloned().unwrap_or_else(Allowed::anything)
    }

    /// Whether a column's values lie in several stretches.
    pub(super) fn has_gaps(&self) -> bool {
        self.columns
            .values()
            .any(|allowed| matches!(&allowed.set, Set::Units(stretches) if stretches.len() > 1))
    }

    fn anything() -> Self {
        Self { columns: BTreeMap::new(), covers: 1, understood: true }
    }

    fn not_understood() -> Self {
        Self { understood: false, ..Self::anything() }
    }

    fn of(subject: &Subject, allowed: Option<Allowed>) -> Vec<Self> {
        let (Subject::Value(column) | Subject::Length(column) | Subject::Bytes(column)) = subject;
        let way = allowed.map_or_else(Self::not_understood, |allowed| Self {
            columns: BTreeMap::from([(column.clone(), allowed)]),
            ..Self::anything()
        });
        vec![way]
    }

    fn is_understood(&self) -> bool {
        self.understood
    }

    fn is_possible(&self) -> bool {
        !self.columns.values().any(Allowed::is_empty)
    }

    fn has_values(&self) -> bool {
        !self.columns.values().any(|allowed| allowed.set == Set::NullOnly)
    }

    fn and(&self, other: &Self) -> Self {
        let mut columns = self.columns.clone();
        for (column, allowed) in &other.columns {
            let both = columns.get(column).map_or_else(|| allowed.clone(), |mine| mine.and(allowed));
            columns.insert(column.clone(), both);
        }
        Self {
            columns,
            covers: self.covers.saturating_mul(other.covers),
            understood: self.understood && other.understood,
        }
    }

    /// One way that covers both, if they differ in one column only.
    fn or(&self, other: &Self) -> Option<Self> {
        if !self.columns.keys().eq(other.columns.keys()) {
            return None;
        }
        let mut differing =
            self.columns.iter().filter(|(column, allowed)| other.columns[*column] != **allowed);
        let mut columns = self.columns.clone();
        if let Some((column, allowed)) = differing.next() {
            columns.insert(column.clone(), allowed.or(&other.columns[column]));
        }
        let merged = Self {
            columns,
            covers: self.covers + other.covers,
            understood: self.understood && other.understood,
        };
        differing.next().is_none().then_some(merged)
    }

    /// One way that reaches both, if they differ in one column only among those that both name. It keeps the values of columns that only one of
    /// them names: the other one allows all of them.
    fn beside(&self, other: &Self) -> Option<Self> {
        let both =
            self.columns.iter().filter_map(|(column, ours)| Some((column, ours, other.columns.get(column)?)));
        let mut differing = both.filter(|(_, ours, theirs)| ours != theirs);
        let (column, ours, theirs) = differing.next()?;
        if differing.next().is_some() {
            return None;
        }
        let mut columns = other.columns.clone();
        columns.extend(self.columns.clone());
        columns.insert(column.clone(), ours.or(theirs));
        Some(Self {
            columns,
            covers: self.covers + other.covers,
            understood: self.understood && other.understood,
        })
    }
}

/// The way that covers most alternatives.
fn broadest(ways: &[Way]) -> Option<&Way> {
    let most = ways.iter().map(|way| way.covers).max()?;
    ways.iter().find(|way| way.covers == most)
}

/// Merges ways, until no two are left of which `both` makes one.
fn merged(ways: Vec<Way>, both: fn(&Way, &Way) -> Option<Way>) -> Vec<Way> {
    let before = ways.len();
    let mut merged: Vec<Way> = Vec::new();
    for way in ways {
        match merged.iter().enumerate().find_map(|(at, known)| both(known, &way).map(|one| (at, one))) {
            Some((at, one)) => merged[at] = one,
            None => merged.push(way),
        }
    }
    if merged.len() < before && merged.len() > 1 { self::merged(merged, both) } else { merged }
}

fn of_length(operator: Operator, constant: &Constant) -> Option<Allowed> {
    let (floor, ceiling) = (constant.floor()?, constant.ceiling()?);
    let length = |length: i64| u32::try_from(length.max(0)).unwrap_or(u32::MAX);
    let (shortest, longest) = match operator {
        Operator::Less => (0, Some(length(ceiling - 1))),
        Operator::LessOrEqual => (0, Some(length(floor))),
        Operator::Equal => (length(ceiling), Some(length(floor))),
        Operator::GreaterOrEqual => (length(ceiling), None),
        Operator::Greater => (length(floor + 1), None),
        Operator::NotEqual => return None,
    };
    Some(Allowed { shortest, longest, ..Allowed::anything() })
}

fn units(kind: &Kind, operator: Operator, constant: &Constant) -> Option<Vec<Units>> {
    let whole = kind.units()?;
    let (floor, ceiling) = (constant.floor()?, constant.ceiling()?);
    let below = Units { high: whole.high.min(ceiling.saturating_sub(1)), ..whole };
    let above = Units { low: whole.low.max(floor.saturating_add(1)), ..whole };
    let to = Units { high: whole.high.min(floor), ..whole };
    let from = Units { low: whole.low.max(ceiling), ..whole };
    let stretches = match operator {
        Operator::Less => vec![below],
        Operator::LessOrEqual => vec![to],
        Operator::Equal => vec![Units { low: from.low, high: to.high }],
        Operator::NotEqual => vec![below, above],
        Operator::GreaterOrEqual => vec![from],
        Operator::Greater => vec![above],
    };
    Some(stretches.into_iter().filter(|stretch| stretch.low <= stretch.high).collect())
}

fn floats(operator: Operator, value: f64) -> Option<Set> {
    // Far enough inside for float4 too, whose values are rounded.
    let inside = (value.abs() * 1e-6).max(f64::from(f32::MIN_POSITIVE));
    let (low, high) = match operator {
        Operator::Less => (f64::NEG_INFINITY, value - inside),
        Operator::LessOrEqual => (f64::NEG_INFINITY, value),
        Operator::Equal => (value, value),
        Operator::GreaterOrEqual => (value, f64::INFINITY),
        Operator::Greater => (value + inside, f64::INFINITY),
        Operator::NotEqual => return None,
    };
    Some(Set::Floats { low, high })
}
