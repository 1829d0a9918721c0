//! Ways to keep the unique keys of a table: the number of values that each column can have, and that each key needs.

use rowgen::{Column, Kind, Values};

use super::Design;
use crate::allowed::{Allowed, Set};
use crate::compose::{Run, is_counted_on};
use crate::error::CatalogError;
use crate::info::{ForeignKeyInfo, KeyElement, KeyInfo, Source, columns_of};
use crate::keys::{Assigned, MostRows, Part, Uniqueness, Wanted};
use crate::narrow::Way;
use crate::present::Present;
use crate::references::{Group, Origin};
use crate::slot::{Role, Slot};

impl Design<'_> {
    /// Columns, or groups of columns, that can make keys unique, with their numbers of values.
    pub(super) fn parts(&self, way: &Way, groups: &[Group], present: &Present) -> Vec<Part> {
        let of_group = |group: &Group| Part {
            name: group.what.clone(),
            columns: group.columns.clone(),
            count: group.keys.count(),
            way: Uniqueness::Few,
            fresh: group.one_to_one || group.are_planned,
            distinct: group.origin == Origin::Judged { distinct: true },
            turn: None,
            pick: None,
            spread: self.spread(group),
        };
        let is_grouped = |slot: &&Slot<'_>| groups.iter().any(|group| group.has(slot.name()));
        let columns = self.slots.iter().filter(|slot| !is_grouped(slot)).map(|slot| {
            let (way, count) = if self.is_unique_as_null(slot, way) {
                (Uniqueness::Already, u64::MAX)
            } else {
                uniqueness(slot, way, present)
            };
            let fresh = matches!(way, Uniqueness::Numbered | Uniqueness::Own);
            let columns = vec![slot.name().to_owned()];
            Part {
                name: slot.name().to_owned(),
                columns,
                count,
                way,
                fresh,
                distinct: false,
                turn: None,
                pick: None,
                spread: None,
            }
        });
        let mut parts: Vec<Part> = groups.iter().map(of_group).chain(columns).collect();
        let elements = self.info.keys.iter().flat_map(|key| &key.elements);
        for ends in elements.filter_map(|element| self.ends(element)) {
            pair(&mut parts, ends);
        }
        parts
    }

    /// Whether the column is always NULL and no key treats two NULLs as equal.
    fn is_unique_as_null(&self, slot: &Slot<'_>, way: &Way) -> bool {
        let is_null = match &slot.role {
            Role::Given(values) => *values == Values::Null,
            Role::Free => way.allowed(slot.name()).set == Set::NullOnly,
            _ => false,
        };
        let mut keys = self.info.keys.iter();
        is_null && !keys.any(|key| key.nulls_are_equal() && key.columns().any(|name| name == slot.name()))
    }

    /// The keys, each with the parts all of whose columns belong to it. Parts cannot make keys unique that are the same in
    /// each row.
    pub(super) fn wanted(&self, parts: &[Part]) -> Vec<Wanted<'_>> {
        let keys = self.info.keys.iter().filter(|key| !self.is_constant(key));
        keys.map(|key| self.wanted_key(key, parts)).collect()
    }

    /// Limits the rows to one where a unique key is the same in each row: `UNIQUE ((true))`. Of NULLs there may be any number.
    pub(super) fn limit_to_one(&self, assigned: &mut Assigned, present: &Present) {
        let has_rows = self.request.first_row > 0 || present.has_rows;
        let is_null = |key: &KeyInfo| key.elements.iter().any(|element| self.computed(element).is_null());
        let is_free = |key: &KeyInfo| is_null(key) && !key.nulls_are_equal();
        for key in self.info.keys.iter().filter(|key| self.is_constant(key) && !is_free(key)) {
            let KeyInfo { name, definition, .. } = key;
            assigned.limit(u64::from(!has_rows), Some(key), || {
                format!("{name} ({definition}) allows only one row")
            });
        }
    }

    /// Whether the key is the same in each row.
    fn is_constant(&self, key: &KeyInfo) -> bool {
        let all = self.info.column_names();
        key.elements.iter().all(|element| self.computed(element).is_constant(&all))
    }

    pub(super) fn wanted_key<'k>(&self, key: &'k KeyInfo, parts: &[Part]) -> Wanted<'k> {
        let all = self.info.column_names();
        let elements: Vec<KeyElement> = key.elements.iter().map(|element| self.computed(element)).collect();
        let columns: Vec<String> = elements
            .iter()
            .flat_map(|element| match element.injective_in(&all) {
                Some(column) => vec![column],
                None => self.apart(element),
            })
            .collect();
        let whole = |part: &Part| {
            let mut inside = part.columns.iter().map(|column| columns.contains(column));
            if part.distinct { inside.any(|inside| inside) } else { inside.all(|inside| inside) }
        };
        let apart: Vec<String> = elements.iter().flat_map(|element| self.apart(element)).collect();
        // Ranges that the server accepts as ranges may overlap each other.
        let may_overlap = |part: &Part| {
            part.way == Uniqueness::Few && part.columns.iter().any(|column| apart.contains(column))
        };
        let mut whole: Vec<usize> =
            (0..parts.len()).filter(|&at| whole(&parts[at]) && !may_overlap(&parts[at])).collect();
        // In the key's order: the first column changes fastest.
        whole.sort_by_key(|&at| columns.iter().position(|column| parts[at].columns.contains(column)));
        let mentioned = elements.iter().flat_map(|element| element.columns_in(&all));
        let is_given = |name: &str| {
            self.slots.iter().any(|slot| slot.name() == name && matches!(slot.role, Role::Given(_)))
        };
        let given = mentioned.into_iter().any(is_given);
        let is_referencing =
            |column: &String| self.info.foreign_keys.iter().any(|foreign| foreign.columns.contains(column));
        let of_key = columns_of(&elements, &all);
        // Unique values of a foreign key's column would be those of no other row.
        let (referencing, others): (Vec<String>, Vec<String>) = of_key.into_iter().partition(is_referencing);
        let columns = (referencing.is_empty() || !others.is_empty()).then(|| others.into());
        Wanted { key, columns, nulls: self.nulls(key), parts: whole, given }
    }

    /// Of each foreign key that may be NULL, so that a unique key does not conflict, the columns that may be.
    fn nulls(&self, key: &KeyInfo) -> Box<[Vec<String>]> {
        let may_be = |column: &&String| {
            let is_open = |slot: &Slot<'_>| {
                slot.name() == column.as_str()
                    && !slot.info.not_null
                    && !matches!(slot.role, Role::Given(_) | Role::Server)
            };
            self.slots.iter().any(is_open)
        };
        let of_foreign = |foreign: &ForeignKeyInfo| {
            let columns: Vec<String> = foreign.columns.iter().filter(may_be).cloned().collect();
            let is_whole = !foreign.is_match_full() || columns.len() == foreign.columns.len();
            let is_in_key = key.columns().any(|name| columns.iter().any(|column| column == name));
            (is_whole && is_in_key && !key.nulls_are_equal()).then_some(columns)
        };
        self.info.foreign_keys.iter().filter_map(of_foreign).collect()
    }

    /// The element with its expression instead of a generated column.
    fn computed(&self, element: &KeyElement) -> KeyElement {
        let column = element.column.as_ref().and_then(|name| self.info.column(name));
        match column.map(|column| &column.source) {
            Some(Source::Generated { expression, .. }) => {
                KeyElement { column: None, expression: Some(expression.clone()), ..element.clone() }
            }
            _ => element.clone(),
        }
    }

    /// Columns that keep ranges and networks from overlapping if each row has its own turn: a range column, one of
    /// networks, which are single addresses then, or the columns of a range's two ends.
    fn apart(&self, element: &KeyElement) -> Vec<String> {
        let is_apart = |name: &&String| {
            self.free(name).is_some_and(|slot| match &slot.kind {
                Kind::Range { element, .. } => is_counted_on(element),
                Kind::Inet | Kind::Cidr => true,
                _ => false,
            })
        };
        match (&element.column, self.ends(element)) {
            (Some(column), _) if element.overlap => {
                Some(column).filter(is_apart).cloned().into_iter().collect()
            }
            (_, Some(ends)) => ends.into(),
            _ => Vec::new(),
        }
    }

    /// The free columns with the ends of ranges that must not overlap.
    fn ends(&self, element: &KeyElement) -> Option<[String; 2]> {
        let ends = element.ends(&self.info.column_names())?;
        let [low, high] = [self.free(&ends[0])?, self.free(&ends[1])?];
        (low.kind == high.kind && is_counted_on(&low.kind)).then_some(ends)
    }

    pub(super) fn refuse_too_many(&self, most: Option<&MostRows>) -> Result<(), CatalogError> {
        match (self.request.rows, most) {
            (Some(rows), Some(most)) if rows > most.rows => Err(CatalogError::TooManyRows {
                table: self.info.shown(),
                rows,
                most: most.rows,
                why: most.why.clone(),
                key: most.key.clone(),
                is_constant: self
                    .info
                    .keys
                    .iter()
                    .any(|key| most.key.as_ref() == Some(&key.name) && self.is_constant(key)),
            }),
            _ => Ok(()),
        }
    }
}

/// Makes one part of the two ends of a range, whose values then alternate.
fn pair(parts: &mut Vec<Part>, ends: [String; 2]) {
    let single = |name: &String| parts.iter().position(|part| part.columns == [name.as_str()]);
    if let (Some(low), Some(high)) = (single(&ends[0]), single(&ends[1])) {
        let count = parts[low].count.min(parts[high].count) / 2;
        parts[low] = Part { columns: ends.into(), count, way: Uniqueness::Own, ..parts[low].clone() };
        parts.remove(high);
    }
}

/// Way to make a column unique, and the number of different values that it then has.
fn uniqueness(slot: &Slot<'_>, way: &Way, present: &Present) -> (Uniqueness, u64) {
    let whole = || slot.kind.distinct().unwrap_or(u64::MAX);
    match &slot.role {
        Role::Server if slot.is_unique_by_server() => (Uniqueness::Already, whole()),
        Role::Given(values) => {
            let column = Column::new(slot.name(), slot.kind.clone(), values.clone());
            column.unique_rows().map_or((Uniqueness::No, 0), |rows| (Uniqueness::Already, rows))
        }
        Role::Sequence(sequence) => (Uniqueness::Already, sequence.count),
        Role::Server | Role::OwnKey { .. } | Role::Unknown => (Uniqueness::No, 0),
        Role::Free => free_uniqueness(slot, &way.allowed(slot.name()), present),
    }
}

fn free_uniqueness(slot: &Slot<'_>, allowed: &Allowed, present: &Present) -> (Uniqueness, u64) {
    if let Some(few) =
        allowed.count(&slot.kind).filter(|_| matches!(allowed.set, Set::Listed(_) | Set::NullOnly))
    {
        return (Uniqueness::Few, few);
    }
    let Some(distinct) = allowed.shortened(&slot.kind).distinct() else { return (Uniqueness::No, 0) };
    match &slot.kind {
        Kind::Bool | Kind::Enum { .. } => (Uniqueness::Few, allowed.count(&slot.kind).unwrap_or(distinct)),
        Kind::Float4 | Kind::Float8 if allowed.set != Set::All => (Uniqueness::No, 0),
        kind if is_counted_on(kind) => {
            let count = Run::of(slot, allowed, present).map_or(0, |run| run.count());
            let own = matches!(
                kind,
                Kind::Timestamp | Kind::TimestampTz | Kind::Time | Kind::TimeTz | Kind::Interval
            );
            (if own { Uniqueness::Own } else { Uniqueness::Numbered }, count)
        }
        _ => (Uniqueness::Own, distinct),
    }
}
