//! Cycles of foreign keys whose columns are also those of other keys: in `FOREIGN KEY (tenant, b) REFERENCES b (tenant, id)` and
//! the same back, the tenant is part of both primary keys. No foreign key of such a cycle can get its values later. But if all
//! tables get the same number of rows, row 1 of each can reference row 1 of the others, row 2 the rows 2, and so on.
//!
//! The foreign keys make columns of the tables equal: these are a *class*. One column of each class has values of its own; the
//! others are copies of it.

use catalog::{ColumnInfo, ForeignKeyInfo, KeyInfo, Source, TableInfo, TypeShape};

use super::order::{Placed, is_referenced, keys_into};

/// A table's part in a cycle whose rows are paired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paired {
    /// Index of the first table of the cycle.
    first: usize,
    /// Columns that are copies.
    pub(super) copies: Vec<Copied>,
    /// Columns of which other columns are copies.
    pub(super) known: Vec<String>,
    /// Columns that must be unique together although the table has no such key, because keys of copies need it; with a foreign key
    /// to name.
    unique: Vec<(String, Vec<String>)>,
    /// Names of the foreign keys that paired rows satisfy.
    pub(super) satisfied: Vec<String>,
}

/// A column that has the value of another table's column in each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    /// Name of the column.
    pub(super) column: String,
    /// Index of the other table.
    pub(super) table: usize,
    /// Name of the column from which it takes its values.
    pub(super) source: String,
}

/// Index of a table, and the name of a column.
type ColumnOf<'a> = (usize, &'a str);

/// Tables of a cycle, in the order in which they are filled.
struct Pairing<'a> {
    tables: &'a [TableInfo],
    members: &'a [usize],
    /// Classes of columns; the one that has values of its own comes first.
    classes: Vec<Vec<ColumnOf<'a>>>,
}

impl Paired {
    /// Whether the column is a copy.
    pub(super) fn is_copy(&self, column: &str) -> bool {
        self.copies.iter().any(|copy| copy.column == column)
    }

    /// Whether pgrig must choose the column's values, whatever a model says of them.
    pub(super) fn is_chosen(&self, column: &str) -> bool {
        self.is_copy(column)
            || self.unique.iter().flat_map(|(_, columns)| columns).any(|unique| unique == column)
    }

    /// The table as its rows are described: with unique keys for columns that must be unique, and without NULLs in columns that are
    /// copied.
    pub(super) fn described(&self, info: &TableInfo) -> TableInfo {
        let mut described = info.clone();
        described.keys.extend(self.unique.iter().map(|(name, columns)| KeyInfo::unique(name, columns)));
        for column in described.columns.iter_mut().filter(|column| self.known.contains(&column.name)) {
            column.not_null = true;
        }
        described
    }
}

/// The tables of a cycle, so that paired rows satisfy its foreign keys; none if there are no such rows.
pub(super) fn paired(tables: &[TableInfo], cycle: &[usize]) -> Option<Vec<Placed>> {
    let ordered = in_order(tables, cycle);
    let members: Vec<usize> = ordered.iter().map(|(table, _)| *table).collect();
    let pairing = Pairing::of(tables, &members)?;
    let unique = pairing.unique()?;
    let part = |(table, later): (usize, Vec<ForeignKeyInfo>)| {
        let paired = Paired {
            first: *members.first()?,
            copies: pairing.copies(table),
            known: pairing.known(table),
            unique: unique
                .iter()
                .filter(|(of, _)| *of == table)
                .map(|(_, columns)| (pairing.key_with(table, columns), columns.clone()))
                .collect(),
            satisfied: pairing.satisfied(table)?,
        };
        pairing.suits(table).then_some(Placed { later, paired: Some(paired), ..Placed::new(table) })
    };
    ordered.into_iter().map(part).collect()
}

/// The tables with their foreign keys to tables that come later: few, and such that any role can have checked later.
fn in_order(tables: &[TableInfo], cycle: &[usize]) -> Vec<(usize, Vec<ForeignKeyInfo>)> {
    let from = |&first: &usize| {
        let mut left = cycle.to_vec();
        let (mut ordered, mut next) = (Vec::with_capacity(left.len()), Some(first));
        while let Some(table) = next {
            let later: Vec<ForeignKeyInfo> = keys_into(tables, table, &left).cloned().collect();
            left.retain(|other| *other != table);
            ordered.push((table, later));
            next = left.iter().copied().min_by_key(|&table| keys_into(tables, table, &left).count());
        }
        ordered
    };
    let cost = |ordered: &Vec<(usize, Vec<ForeignKeyInfo>)>| {
        let later = || ordered.iter().flat_map(|(_, later)| later);
        (later().any(|key| !key.definition.contains(" DEFERRABLE")), later().count())
    };
    cycle.iter().map(from).min_by_key(cost).unwrap_or_default()
}

impl<'a> Pairing<'a> {
    /// None if two columns of one table would have to be equal.
    fn of(tables: &'a [TableInfo], members: &'a [usize]) -> Option<Self> {
        let mut classes: Vec<Vec<ColumnOf<'a>>> = Vec::new();
        for &table in members {
            for key in keys_into(tables, table, members) {
                let other = members.iter().copied().find(|&other| is_referenced(key, &tables[other]))?;
                for (column, referenced) in key.columns.iter().zip(&key.referenced.columns) {
                    join(&mut classes, [(table, column.as_str()), (other, referenced.as_str())]);
                }
            }
        }
        let is_once = |class: &Vec<ColumnOf<'_>>| {
            members.iter().all(|member| class.iter().filter(|(table, _)| table == member).count() <= 1)
        };
        if !classes.iter().all(is_once) {
            return None;
        }
        let mut pairing = Self { tables, members, classes };
        let mut classes = std::mem::take(&mut pairing.classes);
        for class in &mut classes {
            class.sort_by_key(|place| pairing.rank(*place));
        }
        pairing.classes = classes;
        Some(pairing)
    }

    /// The column with the least rank has values of its own: one with a sequence, else one that is referenced.
    fn rank(&self, (table, name): ColumnOf<'_>) -> (bool, bool, Option<usize>) {
        let has_sequence = self.tables[table].column(name).is_some_and(has_sequence);
        let references = |key: &ForeignKeyInfo| {
            is_referenced(key, &self.tables[table]) && key.referenced.columns.iter().any(|of| of == name)
        };
        let is_target = self
            .members
            .iter()
            .flat_map(|&other| keys_into(self.tables, other, self.members))
            .any(references);
        (!has_sequence, !is_target, self.members.iter().position(|&member| member == table))
    }

    /// The column of which a column is a copy; none if it is none.
    fn source(&self, table: usize, name: &str) -> Option<ColumnOf<'a>> {
        let class = self.classes.iter().find(|class| class.contains(&(table, name)))?;
        class.first().copied().filter(|own| *own != (table, name))
    }

    fn has_copy(&self, table: usize, columns: &[impl AsRef<str>]) -> bool {
        columns.iter().any(|name| self.source(table, name.as_ref()).is_some())
    }

    fn copies(&self, table: usize) -> Vec<Copied> {
        let copy = |name: &String| {
            let (of, source) = self.source(table, name)?;
            Some(Copied { column: name.clone(), table: of, source: source.to_owned() })
        };
        self.tables[table].columns.iter().filter_map(|column| copy(&column.name)).collect()
    }

    /// Columns of the table of which others are copies.
    fn known(&self, table: usize) -> Vec<String> {
        let own = self.classes.iter().filter_map(|class| class.first());
        own.filter(|(of, _)| *of == table).map(|(_, name)| (*name).to_owned()).collect()
    }

    /// Whether the table can have such rows: its foreign keys and unique keys aside.
    fn suits(&self, table: usize) -> bool {
        let info = &self.tables[table];
        let is_classed = |name: &str| self.classes.iter().any(|class| class.contains(&(table, name)));
        let is_computed = |name: &str| {
            info.column(name).is_none_or(|column| matches!(column.source, Source::Generated { .. }))
        };
        let is_plain = info.partitions.is_none() && info.partition_of.is_none();
        is_plain
            && !info.columns.iter().any(|column| is_classed(&column.name) && is_computed(&column.name))
            && info.columns.iter().all(|column| self.keeps_domain(table, &column.name))
            && info.checks.iter().all(|check| self.keeps_check(table, &check.expression))
    }

    /// Whether the source of a copy has the domain of the copy, with its conditions.
    fn keeps_domain(&self, table: usize, name: &str) -> bool {
        let Some((of, source)) = self.source(table, name) else { return true };
        let (copy, source) = (self.tables[table].column(name), self.tables[of].column(source));
        copy.zip(source).is_some_and(|(copy, source)| {
            !matches!(copy.data_type.shape, TypeShape::Domain { .. }) || copy.data_type == source.data_type
        })
    }

    /// Whether paired rows satisfy a CHECK: it concerns no copy; or all of its columns are copies of columns of the same names, and
    /// their table has the same CHECK.
    fn keeps_check(&self, table: usize, expression: &str) -> bool {
        let names = self.tables[table].columns_in(expression);
        let sources: Vec<Option<ColumnOf<'a>>> = names.iter().map(|name| self.source(table, name)).collect();
        let Some(of) = sources.iter().flatten().map(|(of, _)| *of).next() else { return true };
        let is_same = |(name, source): (&&str, &Option<ColumnOf<'a>>)| *source == Some((of, *name));
        let is_kept_there = self.tables[of].checks.iter().any(|check| check.expression == expression);
        is_kept_there && names.iter().zip(&sources).all(is_same)
    }

    /// Names of the table's foreign keys that paired rows satisfy. None if they may break one.
    fn satisfied(&self, table: usize) -> Option<Vec<String>> {
        let mut satisfied = Vec::new();
        for key in &self.tables[table].foreign_keys {
            if self.is_satisfied(table, key)? {
                satisfied.push(key.name.clone());
            }
        }
        Some(satisfied)
    }

    /// Whether paired rows satisfy a foreign key of the table; no if it concerns no copy. None if they may break it.
    fn is_satisfied(&self, table: usize, key: &ForeignKeyInfo) -> Option<bool> {
        if self.members.iter().any(|&member| is_referenced(key, &self.tables[member])) {
            return (!key.period).then_some(true);
        }
        if key.to_itself {
            let concerns_copy =
                self.has_copy(table, &key.columns) || self.has_copy(table, &key.referenced.columns);
            return (!concerns_copy || self.is_null(table, key)).then_some(false);
        }
        if !self.has_copy(table, &key.columns) {
            return Some(false);
        }
        // All columns are copies from a table that references the same rows.
        let sources: Vec<ColumnOf<'a>> =
            key.columns.iter().map(|name| self.source(table, name)).collect::<Option<_>>()?;
        let of = sources.first()?.0;
        let is_same = |other: &ForeignKeyInfo| {
            let mut pairs = sources.iter().zip(&key.referenced.columns);
            other.referenced.schema == key.referenced.schema
                && other.referenced.table == key.referenced.table
                && other.columns.len() == key.columns.len()
                && pairs.all(|((from, name), referenced)| {
                    let mut columns = other.columns.iter().zip(&other.referenced.columns);
                    *from == of && columns.any(|(column, to)| column == name && to == referenced)
                })
        };
        self.tables[of].foreign_keys.iter().any(is_same).then_some(true)
    }

    /// Whether a foreign key of the table to itself is NULL in all rows: it has a column that is no copy, may be NULL, and that no
    /// other foreign key has; and no earlier row can be referenced, because a column references itself.
    fn is_null(&self, table: usize, key: &ForeignKeyInfo) -> bool {
        let info = &self.tables[table];
        let is_shared = |name: &String| {
            info.foreign_keys.iter().any(|other| other.name != key.name && other.columns.contains(name))
        };
        let is_null = |(name, referenced): (&String, &String)| {
            name != referenced
                && self.source(table, name).is_none()
                && !is_shared(name)
                && info.column(name).is_some_and(|column| !column.not_null)
        };
        let mut names = key.columns.iter();
        !key.is_match_full()
            && names.any(|name| key.referenced.columns.contains(name))
            && key.columns.iter().zip(&key.referenced.columns).any(is_null)
    }

    /// Columns that must be unique, so that all unique keys with copies are. None if nothing makes one of these unique.
    fn unique(&self) -> Option<Vec<(usize, Vec<String>)>> {
        let mut found: Vec<(usize, Vec<String>)> = Vec::new();
        for &table in self.members {
            for key in self.tables[table].keys.iter().filter(|key| self.concerns(table, key)) {
                if key.exclusion || key.nulls_are_equal() {
                    return None;
                }
                let origins = self.origins(table, key);
                let is_unique = |(of, columns): &(usize, Vec<String>)| {
                    let is_within = |(other, set): &(usize, Vec<String>)| {
                        other == of && set.iter().all(|name| columns.contains(name))
                    };
                    has_key(&self.tables[*of], columns) || found.iter().any(is_within)
                };
                if !origins.iter().any(is_unique) {
                    // Columns of the table itself keep its rows apart in the original, too.
                    found
                        .push(origins.into_iter().max_by_key(|(of, columns)| (*of == table, columns.len()))?);
                }
            }
        }
        Some(found)
    }

    /// Name of a foreign key of the cycle that has one of these columns of a table, or references one.
    fn key_with(&self, table: usize, columns: &[String]) -> String {
        let is_any = |names: &[String]| names.iter().any(|name| columns.contains(name));
        let mut keys = self.members.iter().flat_map(|&other| {
            keys_into(self.tables, other, self.members).map(move |key| (other == table, key))
        });
        let has_one = |(is_own, key): &(bool, &ForeignKeyInfo)| {
            let references = is_referenced(key, &self.tables[table]);
            *is_own && is_any(&key.columns) || references && is_any(&key.referenced.columns)
        };
        keys.find(has_one).map_or_else(String::new, |(_, key)| key.name.clone())
    }

    /// Whether a copy is part of the key.
    fn concerns(&self, table: usize, key: &KeyInfo) -> bool {
        let info = &self.tables[table];
        let expressions = key.elements.iter().filter_map(|element| element.expression.as_ref());
        let names: Vec<&str> = key.columns().collect();
        let mut expressions = expressions.chain(&key.predicate);
        self.has_copy(table, &names) || expressions.any(|text| self.has_copy(table, &info.columns_in(text)))
    }

    /// The columns of a key by the table that they have their values from: each of these sets, if it is unique there, makes the key
    /// unique.
    fn origins(&self, table: usize, key: &KeyInfo) -> Vec<(usize, Vec<String>)> {
        let mut origins: Vec<(usize, Vec<String>)> = Vec::new();
        for name in key
            .elements
            .iter()
            .filter(|element| element.equality)
            .filter_map(|element| element.column.as_deref())
        {
            let (of, source) = self.source(table, name).unwrap_or((table, name));
            match origins.iter_mut().find(|(other, _)| *other == of) {
                Some((_, columns)) => columns.push(source.to_owned()),
                None => origins.push((of, vec![source.to_owned()])),
            }
        }
        origins
    }
}

/// Whether the column has its values from a sequence if a row gives none.
pub(super) fn has_sequence(column: &ColumnInfo) -> bool {
    matches!(column.source, Source::Identity { .. } | Source::Default { sequence: true, .. })
}

/// Makes two columns members of one class.
fn join<'a>(classes: &mut Vec<Vec<ColumnOf<'a>>>, equal: [ColumnOf<'a>; 2]) {
    let (together, apart): (Vec<_>, Vec<_>) = std::mem::take(classes)
        .into_iter()
        .partition(|class: &Vec<ColumnOf<'a>>| class.iter().any(|place| equal.contains(place)));
    let mut class: Vec<ColumnOf<'a>> = together.into_iter().flatten().collect();
    for place in equal {
        if !class.contains(&place) {
            class.push(place);
        }
    }
    *classes = apart;
    classes.push(class);
}

/// Whether a unique key of the table has no other columns than these.
fn has_key(table: &TableInfo, columns: &[String]) -> bool {
    table.keys.iter().any(|key| {
        let is_plain = !key.exclusion && key.predicate.is_none();
        is_plain
            && key.elements.iter().all(|element| {
                element.equality && element.column.as_ref().is_some_and(|name| columns.contains(name))
            })
    })
}

/// Places of the tables whose rows are paired with those of the table at this place, with its own; none if its rows are not paired.
pub(super) fn members(order: &[Placed], at: usize) -> Vec<usize> {
    let first = |place: usize| order[place].paired.as_ref().map(|paired| paired.first);
    let own = first(at);
    (0..order.len()).filter(|&place| own.is_some() && first(place) == own).collect()
}
