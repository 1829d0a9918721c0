//! Values for conditions that pgrig does not understand: rejection sampling, with the server as judge.
//!
//! The rows as they are described so far are tried first; where all of them pass, nothing changes. Else the columns that
//! the condition mentions, and those of conditions that share a column with it, draw together from a list of tuples
//! that the server accepts. Candidates are the values that the columns have otherwise, then those mixed with NULLs and
//! with values near the constants in the conditions, in the shapes that pass.

mod between;
mod broken;
mod candidates;
mod distances;
mod distinct;
mod judge;
mod known;
mod leaves;
mod pattern;
mod random;
mod rule;
mod search;
mod shapes;

use std::collections::BTreeSet;
use std::ops::Range;

use rowgen::{Keys, Kind, Table};
use tokio_postgres::Client;

use self::candidates::{Unit, encoder, narrowed, near, texts};
use self::distances::Pair;
use self::judge::{Judge, Tuple};
pub(super) use self::rule::Rule;
use self::search::PassedTuples;
use super::error::CatalogError;
use super::info::TableInfo;
use super::keys::Part;
use super::mentioned::{compared_with, literals_in};
use super::references::{Group, Origin};
use super::slot::{Role, Slot, has_sequence};

/// Number of texts for each pattern in conditions: in general, and if they have to be unique.
const TEXTS: usize = 2_000;
const UNIQUE_TEXTS: usize = 50_000;
/// Most values of a column that conditions name.
const MOST_NAMED: usize = 24;

/// Facts about a table for the judgement of its conditions.
pub(super) struct Sampling<'a> {
    pub(super) client: &'a Client,
    pub(super) info: &'a TableInfo,
    pub(super) slots: &'a [Slot<'a>],
    pub(super) rules: Vec<Rule<'a>>,
    /// Foreign keys of the table.
    pub(super) groups: &'a [Group],
    /// The parts of keys; the columns that take turns are among them.
    pub(super) parts: &'a [Part],
    /// The rows as they are described so far, and their numbers.
    pub(super) made: &'a Table,
    pub(super) rows: Range<u64>,
    /// How many rows are wanted, or how many there can be, if that is known.
    pub(super) wanted: Option<u64>,
    /// The free columns as they would be if no key were unique.
    pub(super) drawn: &'a Table,
}

/// Columns that get their values from one list, and the rules on them.
#[derive(Debug)]
struct Together<'a> {
    columns: Vec<&'a str>,
    rules: Vec<&'a Rule<'a>>,
    /// Whether columns of unique keys, which would take turns, are among them.
    has_keys: bool,
}

impl<'a> Sampling<'a> {
    /// The groups of columns that get their values from lists, and notes on them for the user. None
    /// if the rows already fulfil all conditions.
    pub(super) async fn groups(&self) -> Result<Option<(Vec<Group>, Vec<String>)>, CatalogError> {
        let broken = self.broken().await?;
        if broken.is_empty() {
            return Ok(None);
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut notes = Vec::new();
        for rule in broken {
            if groups.iter().any(|group| rule.columns.iter().any(|column| group.has(column))) {
                continue;
            }
            let (group, about) = self.sampled(rule).await?;
            groups.push(group);
            notes.extend(about);
        }
        let is_replaced =
            |group: &&Group| group.columns.iter().any(|name| groups.iter().any(|new| new.has(name)));
        let kept: Vec<Group> = self.groups.iter().filter(|group| !is_replaced(group)).cloned().collect();
        groups.extend(kept);
        Ok(Some((groups, notes)))
    }

    fn slot(&self, column: &str) -> Option<&'a Slot<'a>> {
        self.slots.iter().find(|slot| slot.name() == column)
    }

    /// Whether pgrig can choose the column's values.
    fn is_free(&self, column: &str) -> bool {
        self.slot(column).is_some_and(|slot| slot.is_free() && slot.known)
    }

    fn takes_turns(&self, column: &str) -> bool {
        self.parts.iter().any(|part| part.turn.is_some() && part.columns.iter().any(|name| name == column))
    }

    /// The beginning, the middle and the end of the rows.
    fn stretches(&self, length: u64) -> Vec<Range<u64>> {
        // Without a known end, the number of rows of a large table.
        let first = self.rows.start;
        let end = self.rows.end.min(first.saturating_add(1_000_000_000));
        if end.saturating_sub(first) <= 3 * length {
            return std::iter::once(first..end).collect();
        }
        let middle = first + (end - first) / 2;
        vec![first..first + length, middle..middle + length, end - length..end]
    }

    /// The judge of tuples of these columns under these rules.
    async fn judge<'s>(&'s self, columns: &[&str], rules: &[&Rule<'s>]) -> Result<Judge<'s>, CatalogError> {
        let info = |column: &&str| self.slot(column).map(|slot| slot.info);
        let mentioned: BTreeSet<&str> = rules.iter().flat_map(|rule| rule.columns.iter().copied()).collect();
        let others: Vec<&str> = mentioned.into_iter().filter(|column| !columns.contains(column)).collect();
        let is_server = |column: &&str| {
            self.slot(column)
                .is_some_and(|slot| slot.role == Role::Server && !has_sequence(&slot.info.source))
        };
        let (by_server, ranging): (Vec<&str>, Vec<&str>) = others.into_iter().partition(is_server);
        let mut conditions: Vec<String> = rules.iter().map(|rule| rule.sql.to_string()).collect();
        conditions.dedup();
        let ranges = self.ranges(&ranging, rules).await?;
        Ok(Judge {
            client: self.client,
            columns: columns.iter().filter_map(info).collect(),
            ranging: ranging.iter().filter_map(info).collect(),
            others: ranges,
            by_server: by_server.iter().filter_map(info).collect(),
            conditions,
        })
    }

    /// Values of columns that do not follow the tuples: those of some rows, and the constants that they meet.
    async fn ranges(&self, columns: &[&str], rules: &[&Rule<'_>]) -> Result<Vec<Tuple>, CatalogError> {
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let table = narrowed(self.made, columns);
        let rows = if table.columns.is_empty() {
            vec![Tuple::new()]
        } else {
            texts(&encoder(&table), self.stretches(3))
        };
        let at = |name: &str| table.columns.iter().position(|column| column.name == name);
        // The values of the server's own sequences are unknown: a number that all of them reach stands for them.
        let some =
            |row: &Tuple, name: &&str| at(name).map_or_else(|| Some("1000".to_owned()), |at| row[at].clone());
        let mut ranges: Vec<Tuple> =
            rows.iter().map(|row| columns.iter().map(|name| some(row, name)).collect()).collect();
        for (at, name) in columns.iter().enumerate() {
            let is_counted = self
                .slot(name)
                .is_some_and(|slot| matches!(slot.role, Role::Server | Role::Sequence(_) | Role::Free));
            if !is_counted {
                continue;
            }
            let constants: Vec<String> = rules.iter().flat_map(|rule| literals_in(rule.definition)).collect();
            for constant in self.readable(name, constants).await? {
                let mut met = ranges[0].clone();
                met[at] = Some(constant);
                ranges.push(met);
            }
        }
        ranges.dedup();
        Ok(ranges)
    }

    /// The texts that the column's type can read, as the server writes them.
    async fn readable(&self, column: &str, texts: Vec<String>) -> Result<Vec<String>, CatalogError> {
        let Some(slot) = self.slot(column).filter(|_| !texts.is_empty()) else { return Ok(Vec::new()) };
        // Any of them is one as it stands.
        if slot.info.data_type.sql == "text" {
            let texts: BTreeSet<String> = texts.into_iter().collect();
            return Ok(texts.into_iter().collect());
        }
        let judge = Judge {
            client: self.client,
            columns: vec![slot.info],
            ranging: Vec::new(),
            others: Vec::new(),
            by_server: Vec::new(),
            conditions: vec!["true".to_owned()],
        };
        let tuples: Vec<Tuple> = texts.into_iter().map(|text| vec![Some(text)]).collect();
        let passed: BTreeSet<String> =
            judge.judge(&tuples).await?.passed.into_iter().flatten().flatten().collect();
        Ok(passed.into_iter().collect())
    }

    /// The columns that get their values together because of a rule. Those that take turns are among them only
    /// `with_keys`.
    fn together<'s>(&'s self, rule: &Rule<'s>, with_keys: bool) -> Together<'s> {
        let may = |column: &str| self.is_free(column) && (with_keys || !self.takes_turns(column));
        let all = self.info.column_names();
        let mut columns: BTreeSet<&str> = rule.columns.iter().copied().filter(|column| may(column)).collect();
        loop {
            let known = columns.clone();
            for group in self.groups.iter().filter(|group| known.iter().any(|column| group.has(column))) {
                columns.extend(all.iter().filter(|column| group.has(column)));
            }
            let shares = |rule: &&Rule<'_>| rule.columns.iter().any(|column| known.contains(column));
            let more = self.rules.iter().filter(shares).flat_map(|rule| rule.columns.iter().copied());
            columns.extend(more.into_iter().filter(|column| may(column)));
            if columns.len() == known.len() {
                break;
            }
        }
        let rules =
            self.rules.iter().filter(|rule| rule.columns.iter().any(|column| columns.contains(column)));
        let has_keys = columns.iter().any(|column| self.takes_turns(column));
        let columns = all.into_iter().filter(|column| columns.contains(column)).collect();
        Together { columns, rules: rules.collect(), has_keys }
    }

    /// The list of tuples for a broken rule, and notes that say which rule it is for, and which partitions stay empty.
    async fn sampled(&self, rule: &Rule<'a>) -> Result<(Group, Vec<String>), CatalogError> {
        // A value that differs from some of a key's is not sure to differ from the one in its row.
        let meets_key = |column: &&str| self.is_free(column) && self.takes_turns(column);
        let with_keys = rule.is_about_pairs && rule.columns.iter().any(meets_key);
        let mut together = self.together(rule, with_keys);
        let mut found = PassedTuples::none();
        if !together.columns.is_empty() {
            found = self.found(&together).await?;
        }
        if found.is_rare() && !with_keys {
            let with_keys = self.together(rule, true);
            if with_keys.has_keys {
                found = self.found(&with_keys).await?;
                together = with_keys;
            }
        }
        if found.is_rare() {
            return Err(self.rare(&together, found));
        }
        let names = together.names(|rule| rule.name.to_owned());
        let columns = together.columns.join(", ");
        let count = found.list().iter().collect::<BTreeSet<_>>().len();
        let share = 100.0 * found.passed as f64 / found.tried as f64;
        let (combinations, satisfy) =
            if count == 1 { ("combination", "satisfies") } else { ("combinations", "satisfy") };
        let note = format!(
            "{columns}: pgrig uses {count} {combinations} that {satisfy} {names} ({share:.1} % of the {} that it tried)",
            found.tried
        );
        let notes = std::iter::once(note).chain(leaves::stay_empty(&found.empty)).collect();
        let group = Group {
            name: names.clone(),
            columns: together.columns.iter().map(|&column| column.to_owned()).collect(),
            what: format!("values under {names}"),
            keys: found.keys,
            one_to_one: false,
            are_planned: false,
            origin: Origin::Judged { distinct: together.has_keys },
        };
        Ok((group, notes))
    }

    fn rare(&self, together: &Together<'_>, found: PassedTuples) -> CatalogError {
        CatalogError::Rare {
            table: self.info.shown(),
            columns: together.columns.join(", "),
            constraints: together.names(Rule::shown),
            tried: found.tried,
            passed: found.passed,
            error: found.error,
        }
    }

    /// Columns whose difference a condition may limit.
    fn pairs(&self, together: &Together<'_>) -> Vec<Pair> {
        let is_free =
            |column: &&str| !self.takes_turns(column) && !self.groups.iter().any(|group| group.has(column));
        let kind = |at: usize| self.slot(together.columns[at]).map(|slot| &slot.kind);
        let mut pairs = Vec::new();
        for rule in together.rules.iter().filter(|rule| rule.definition.contains(['-', '+'])) {
            let mentioned: Vec<usize> = (0..together.columns.len())
                .filter(|&at| rule.columns.contains(&together.columns[at]) && is_free(&together.columns[at]))
                .collect();
            for (number, &first) in mentioned.iter().enumerate() {
                for &second in &mentioned[number + 1..] {
                    let literals = literals_in(rule.definition);
                    let kinds = kind(first).zip(kind(second));
                    pairs.extend(kinds.and_then(|kinds| Pair::of((first, second), kinds, &literals)));
                }
            }
        }
        pairs
    }

    /// Columns that may be NULL, and columns that may get values near constants.
    async fn units(&self, together: &Together<'_>) -> Result<Vec<Unit>, CatalogError> {
        let mut units: Vec<Unit> = Vec::new();
        let constants: Vec<String> =
            together.rules.iter().flat_map(|rule| literals_in(rule.definition)).collect();
        let patterns = if together.has_keys { UNIQUE_TEXTS } else { TEXTS };
        let at = |name: &str| together.columns.iter().position(|column| *column == name);
        for (position, column) in together.columns.iter().enumerate() {
            let Some(slot) = self.slot(column) else { continue };
            let group = self.groups.iter().find(|group| group.has(column));
            let columns: Vec<usize> = group.map_or_else(
                || vec![position],
                |group| group.columns.iter().filter_map(|name| at(name)).collect(),
            );
            if units.iter().any(|unit| unit.columns.contains(&position)) {
                continue;
            }
            let may_be_null =
                |&at: &usize| self.slot(together.columns[at]).is_some_and(|slot| !slot.info.not_null);
            let near = if group.is_some() {
                Vec::new()
            } else {
                let mut near = self.readable(column, near(&slot.kind, &constants, patterns)).await?;
                let between = self.between(slot, together).await?;
                // As many candidates are near the constants as lie between them.
                let again: Vec<String> = near.iter().cloned().cycle().take(between.len()).collect();
                near.extend(again);
                near.extend(between);
                near
            };
            let named = match columns.as_slice() {
                [_] => self.named(slot, group, &together.rules).await?,
                _ => Vec::new(),
            };
            units.push(Unit { nullable: columns.iter().all(may_be_null), columns, near, named });
        }
        Ok(units)
    }

    /// Values that rules compare the column with, as the server writes them. Of a foreign key, those that can be referenced.
    async fn named(
        &self,
        slot: &Slot<'_>,
        group: Option<&Group>,
        rules: &[&Rule<'_>],
    ) -> Result<Vec<String>, CatalogError> {
        let mut texts: Vec<String> =
            rules.iter().flat_map(|rule| compared_with(rule.definition, slot.name())).collect();
        if slot.kind == Kind::Bool {
            texts.extend(["true", "false"].map(str::to_owned));
        }
        let mut named = self.readable(slot.name(), texts).await?;
        if let Some(group) = group {
            named.retain(|text| match &*group.keys {
                Keys::Interval { low, high } => {
                    text.parse::<i64>().is_ok_and(|number| (*low..=*high).contains(&number))
                }
                Keys::Listed(keys) => keys.iter().any(|key| key[0].as_ref() == Some(text)),
                Keys::Made { .. } => false,
            });
        }
        named.truncate(MOST_NAMED);
        Ok(named)
    }
}

impl<'a> Together<'a> {
    fn names(&self, name: impl Fn(&Rule<'a>) -> String) -> String {
        let mut names: Vec<String> = self.rules.iter().map(|rule| name(rule)).collect();
        names.dedup();
        names.join(", ")
    }
}
