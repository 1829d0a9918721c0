//! Makes a model from facts. All decisions about privacy are made here.

use fastrand::Rng;
use rowgen::{Kind, Spec};

use crate::arrays;
use crate::depend::{self, Node};
use crate::estimate::{SAMPLED, different};
use crate::facts::{ColumnFacts, ColumnRole, Facts, Statistics, TableFacts};
use crate::file::{Column, FORMAT, How, Model, Table, Values};
use crate::numbers::{Number, move_bounds, replace_rare, smooth, step};
use crate::replace::{self, alphabet_of};

/// Rules for values of the original.
#[derive(Clone, Debug)]
pub struct Privacy {
    /// Values that fewer rows than this have are replaced.
    pub k: u32,
    /// Columns of text that keep their values: `table.column`, or with its schema.
    pub keep: Vec<String>,
    /// Seed of the random numbers that replace values.
    pub seed: u64,
}

/// Number of quantiles of a length.
const QUANTILES: usize = 11;
/// Share of the numbers between the bounds that occur, from which on bounds stay.
const DENSE: f64 = 0.9;
/// Rows per row of the referenced table above which a common key is worth a place of its own.
const DIGITS: f64 = 1e6;

impl Model {
    /// The model of these facts.
    pub fn of(facts: &Facts, privacy: &Privacy) -> Self {
        let mut rng = Rng::with_seed(privacy.seed);
        let tables = facts.tables.iter().map(|table| Maker { facts, table, privacy, rng: &mut rng }.table());
        Self {
            format: FORMAT,
            captured: facts.captured.clone(),
            server: facts.server.clone(),
            k: privacy.k,
            aggregates: facts.aggregates,
            ddl: facts.ddl.clone(),
            tables: tables.collect(),
        }
    }
}

struct Maker<'a> {
    facts: &'a Facts,
    table: &'a TableFacts,
    privacy: &'a Privacy,
    rng: &'a mut Rng,
}

impl Maker<'_> {
    fn table(&mut self) -> Table {
        let mut columns: Vec<Column> = self.table.columns.iter().map(|column| self.column(column)).collect();
        order(&mut columns, &self.table.columns);
        if self.table.rows >= u64::from(self.privacy.k) {
            let nodes: Vec<Node> = self
                .table
                .columns
                .iter()
                .zip(&columns)
                .map(|(facts, column)| self.node(facts, column))
                .collect();
            depend::tie(&mut columns, &nodes, self.table, self.privacy.k);
            place_frequent(&mut columns, self.table);
        }
        let TableFacts { name, rows, bytes, analyzed, changed, .. } = self.table.clone();
        Table { name, rows, analyzed, changed, bytes, columns }
    }

    fn column(&mut self, facts: &ColumnFacts) -> Column {
        let few = self.table.rows < u64::from(self.privacy.k);
        let (nulls, width, values) = match &facts.statistics {
            None => (0.0, None, fill("no statistics: run ANALYZE, or capture as the owner of the table")),
            Some(_) if few => (0.0, None, fill("the table has fewer rows than --k")),
            Some(statistics) => {
                let nulls = round(statistics.null_frac);
                (nulls, Some(statistics.avg_width), self.values(facts, &of_values(statistics)))
            }
        };
        // Where the fill decides on values, it decides on NULLs.
        let nulls = if matches!(values, Values::Fill { .. }) { 0.0 } else { nulls };
        let Values::List { values: ref list, .. } = values else {
            return column(facts, nulls, width, values);
        };
        if list.is_empty() && nulls >= 1.0 {
            return column(
                facts,
                nulls,
                width,
                Values::Any { distinct: -1.0, common: Vec::new(), lengths: None },
            );
        }
        if list.is_empty() {
            return column(facts, 0.0, width, fill("no statistics of its values"));
        }
        column(facts, nulls, width, values)
    }

    /// The column's frequent values in the original, in the order of those in the model.
    fn node(&self, facts: &ColumnFacts, column: &Column) -> Node {
        // A few ranks may come twice.
        let is_tied = facts.role == ColumnRole::Unique;
        let statistics = facts.statistics.clone().unwrap_or_default();
        let texts = || statistics.common.iter().map(|(value, _)| value.clone());
        let mut atoms: Vec<String> = match (&column.values, &facts.kind) {
            (Values::Fill { .. } | Values::Serial { .. }, _) => Vec::new(),
            (Values::Statistics { .. }, Some(kind)) => {
                let mut numbers: Vec<Number> = texts().filter_map(|text| Number::read(kind, &text)).collect();
                numbers.sort_by(|one, other| one.at.total_cmp(&other.at));
                numbers.into_iter().map(|number| number.text).collect()
            }
            (Values::List { .. }, _) => {
                let mut values: Vec<String> = texts().chain(statistics.bounds.iter().cloned()).collect();
                values.sort_unstable();
                values.dedup();
                values
            }
            (Values::Keys { .. }, _) => {
                let ColumnRole::Reference { table, column } = &facts.role else { return Node::none() };
                let line = self.key_line(table, column);
                keys_in_order(&of_values(&statistics), &line).into_iter().map(|key| key.0).collect()
            }
            (Values::Letters { .. }, Some(kind)) if is_text(kind) => {
                texts_in_order(&statistics).into_iter().map(|text| text.0).collect()
            }
            _ => texts().collect(),
        };
        // Where the two do not fit together, nothing is said of single values.
        if atoms.len() != depend::common(column).len() {
            atoms.clear();
        }
        Node {
            atoms,
            is_ranked: !is_tied && !matches!(column.values, Values::Fill { .. } | Values::Serial { .. }),
        }
    }

    fn values(&mut self, facts: &ColumnFacts, statistics: &Statistics) -> Values {
        let distinct = statistics.n_distinct;
        match &facts.role {
            ColumnRole::Key => return fill("a key"),
            ColumnRole::Counted { by, .. } => {
                return self.counted(statistics, by).unwrap_or_else(|| fill("a key"));
            }
            ColumnRole::Generated => return fill("generated"),
            ColumnRole::Constrained(why) => return fill(why),
            ColumnRole::Reference { table, column } => return self.keys(facts, statistics, table, column),
            ColumnRole::Unique if !facts.kind.as_ref().is_some_and(is_text) => {
                return self.serial(facts, statistics).unwrap_or_else(|| fill("a key"));
            }
            ColumnRole::Unique | ColumnRole::Free | ColumnRole::Above { .. } => {}
        }
        let Some(kind) = &facts.kind else { return fill("a type without known values") };
        if is_text(kind) {
            return self.text(facts, kind, statistics);
        }
        if kind.units().is_some() && (!statistics.common.is_empty() || statistics.bounds.len() > 1) {
            let nulls = facts.statistics.as_ref().map_or(0.0, |of| of.null_frac);
            return self.numbers(kind, &without_chance(statistics, self.table.rows, nulls));
        }
        if matches!(kind, Kind::Json | Kind::Jsonb) {
            return json(kind, statistics);
        }
        if let (Kind::Array(element), true) = (kind, statistics.bounds.len() < 2) {
            let least = f64::from(self.privacy.k) / self.table.rows.max(1) as f64;
            let replaced = arrays::replaced(element, &statistics.common, least, self.rng);
            if let Some(values) = replaced.filter(|values| !values.is_empty()) {
                let values = values.into_iter().map(|(value, share)| (value, round(share))).collect();
                return Values::List { correlation: correlation(statistics), values, kept: false };
            }
        }
        let distinct = if distinct == 0.0 { -1.0 } else { distinct };
        let count = statistics.common.len().max(1) as f64;
        let place = |(at, (_, share)): (usize, &(String, f64))| ((at as f64 + 0.5) / count, round(*share));
        let lengths = matches!(kind, Kind::Bytea).then(|| bytes_of(statistics));
        Values::Any { distinct, common: statistics.common.iter().enumerate().map(place).collect(), lengths }
    }

    /// Values for integers that ascend with the rows and have gaps: keys at equal distances.
    fn serial(&mut self, facts: &ColumnFacts, statistics: &Statistics) -> Option<Values> {
        let kind = facts.kind.as_ref().filter(|kind| matches!(kind, Kind::Int4 | Kind::Int8))?;
        let units = |text: &String| kind.read_units(text);
        let (first, last) = (units(statistics.bounds.first()?)?, units(statistics.bounds.last()?)?);
        let rows = i64::try_from(self.table.rows).ok().filter(|rows| *rows > 1_000)?;
        let step = last.checked_sub(first)?.checked_add(rows / 2)? / rows;
        if step < 2 || statistics.correlation.unwrap_or_default() < 0.999 {
            return None;
        }
        // The least key is one row's.
        Some(Values::Serial { start: first + self.rng.i64(0..step), step })
    }

    /// Values for references: the number of used keys, which keys, and the shares of the most
    /// frequent ones.
    fn keys(&self, facts: &ColumnFacts, statistics: &Statistics, table: &str, column: &str) -> Values {
        let parents = self.keys_of(table, column);
        let line = self.key_line(table, column);
        let rows = self.table.rows as f64;
        let used =
            if statistics.n_distinct < 0.0 { -statistics.n_distinct * rows } else { statistics.n_distinct };
        let fraction = if used > 0.0 { (used / parents.max(1.0)).min(1.0) } else { 1.0 };
        let common = keys_in_order(statistics, &line);
        let bounds = if line.len() > 1 {
            statistics.bounds.iter().map(|bound| round(place_of_key(bound, statistics, &line))).collect()
        } else {
            Vec::new()
        };
        Values::Keys {
            distinct: -round(fraction).max(1e-6),
            correlation: correlation(statistics),
            common: common.into_iter().map(|(_, place, share)| (place, share)).collect(),
            bounds,
            rows: if facts.rows_per_key.iter().any(|(rows, _)| *rows > 0.0) {
                facts.rows_per_key.iter().map(|(rows, share)| (round(*rows), round(*share))).collect()
            } else {
                // All other keys have no rows.
                Vec::new()
            },
        }
    }

    /// The number of different keys that a foreign key's first column can refer to: of a key of several
    /// columns, the first one has fewer values than rows.
    fn keys_of(&self, table: &str, column: &str) -> f64 {
        let Some(table) = self.referenced(table) else { return 0.0 };
        let rows = table.rows as f64;
        let column = table.columns.iter().find(|other| other.name == *column);
        match column.and_then(|column| column.statistics.as_ref()).map(|of| of.n_distinct) {
            Some(distinct) if distinct < 0.0 => -distinct * rows,
            Some(distinct) if distinct > 0.0 => distinct.min(rows),
            _ => rows,
        }
    }

    fn referenced(&self, table: &str) -> Option<&TableFacts> {
        self.facts.tables.iter().find(|other| other.name == *table)
    }

    /// Bounds of the keys that a foreign key refers to.
    fn key_line(&self, table: &str, column: &str) -> Vec<f64> {
        let keys = self
            .referenced(table)
            .and_then(|table| table.columns.iter().find(|other| other.name == *column)?.statistics.as_ref());
        let line = keys.map(|keys| keys.bounds.iter().filter_map(|bound| bound.parse().ok()).collect());
        line.unwrap_or_default()
    }

    fn text(&mut self, facts: &ColumnFacts, kind: &Kind, statistics: &Statistics) -> Values {
        let Statistics { common, bounds, .. } = statistics;
        let is_unique = facts.role == ColumnRole::Unique;
        let kept = self.is_kept(&facts.name);
        let are_all_common = bounds.len() < 2 && !is_unique;
        if kept || are_all_common {
            let each = (1.0 - common.iter().map(|(_, share)| share).sum::<f64>()).max(0.0)
                / bounds.len().max(1) as f64;
            let others = bounds.iter().map(|bound| (bound.clone(), each)).filter(|(_, share)| *share > 0.0);
            let mut values: Vec<(String, f64)> = common.iter().cloned().chain(others).collect();
            values.sort_by(|one, other| one.0.cmp(&other.0));
            values.dedup_by(|one, other| one.0 == other.0);
            if !kept {
                let originals: Vec<&str> = values.iter().map(|(value, _)| value.as_str()).collect();
                let replaced = replace::texts(&originals, kind.characters(), self.rng);
                for (value, replaced) in values.iter_mut().zip(replaced) {
                    value.0 = replaced;
                }
            }
            let values = values.into_iter().map(|(value, share)| (value, round(share))).collect();
            return Values::List { correlation: correlation(statistics), values, kept };
        }
        let originals = || bounds.iter().chain(common.iter().map(|(value, _)| value)).map(String::as_str);
        let common = if is_unique {
            Vec::new()
        } else {
            texts_in_order(statistics).into_iter().map(|(_, place, share)| (place, share)).collect()
        };
        let distinct = if is_unique { -1.0 } else { statistics.n_distinct };
        let lengths: Vec<usize> = if !facts.lengths.is_empty() {
            facts.lengths.clone()
        } else if bounds.len() > 1 {
            bounds.iter().map(length).collect()
        } else {
            originals().map(length).collect()
        };
        Values::Letters {
            distinct: if distinct == 0.0 { -1.0 } else { distinct },
            correlation: correlation(statistics),
            common,
            alphabet: match &facts.characters {
                // A blank at the end is none.
                Some(characters) => alphabet_of(std::iter::once(format!("{characters}x").as_str())),
                None => alphabet_of(originals()),
            }
            .name()
            .to_owned(),
            lengths: quantiles(lengths, statistics.avg_width, kind.characters()),
        }
    }

    /// Values for a foreign key whose rows another column numbers: as many rows have the number n as
    /// referenced rows have n rows or more. None if the numbers do not begin at 0 or 1, have gaps, or
    /// are too many for the list of frequent values.
    fn counted(&self, statistics: &Statistics, by: &str) -> Option<Values> {
        let by = self.table.columns.iter().find(|column| column.name == by)?.statistics.as_ref()?;
        let least = f64::from(self.privacy.k) / self.table.rows.max(1) as f64;
        let numbers = by.common.iter().filter(|(_, share)| *share >= least);
        let mut numbers: Vec<(i64, f64)> =
            numbers.map(|(value, share)| Some((value.parse().ok()?, *share))).collect::<Option<_>>()?;
        numbers.sort_unstable_by_key(|(number, _)| *number);
        let &(first, all) = numbers.first()?;
        let follow = numbers.iter().zip(first..).all(|((number, _), place)| *number == place);
        if by.bounds.len() > 1 || !(0..=1).contains(&first) || !follow || all <= 0.0 {
            return None;
        }
        let ends = numbers.iter().skip(1).map(|(_, share)| *share).chain([0.0]);
        let rows = numbers.iter().zip(ends).zip(1_u32..);
        let rows: Vec<(f64, f64)> = rows
            .map(|(((_, share), next), count)| (f64::from(count), ((share - next) / all).max(0.0)))
            .collect();
        let sum: f64 = rows.iter().map(|(_, fraction)| fraction).sum();
        let mut rows: Vec<(f64, f64)> =
            rows.into_iter().map(|(count, fraction)| (count, round(fraction / sum))).collect();
        rows.retain(|(_, fraction)| *fraction > 0.0);
        Some(Values::Keys {
            distinct: -1.0,
            correlation: correlation(statistics),
            common: Vec::new(),
            bounds: Vec::new(),
            rows,
        })
    }

    fn is_kept(&self, column: &str) -> bool {
        let whole = format!("{}.{column}", self.table.name);
        let plain = whole.split_once('.').map_or("", |(_, name)| name).to_owned();
        self.privacy.keep.iter().any(|kept| *kept == whole || *kept == plain)
    }

    fn numbers(&mut self, kind: &Kind, statistics: &Statistics) -> Values {
        let read = |text: &String| Number::read(kind, text);
        let mut common: Vec<(Number, f64)> =
            statistics.common.iter().filter_map(|(value, share)| Some((read(value)?, *share))).collect();
        common.sort_by(|(one, _), (other, _)| one.at.total_cmp(&other.at));
        let mut bounds: Vec<Number> = statistics.bounds.iter().filter_map(read).collect();
        bounds.sort_by(|one, other| one.at.total_cmp(&other.at));
        if common.is_empty() && bounds.len() < 2 {
            return Values::Any { distinct: -1.0, common: Vec::new(), lengths: None };
        }
        if !matches!(kind, Kind::Bool | Kind::Enum { .. }) {
            let step = step(kind, common.iter().map(|(number, _)| number).chain(&bounds));
            let least = f64::from(self.privacy.k) / self.table.rows.max(1) as f64;
            replace_rare(self.rng, least, kind, &mut common, &bounds, step);
            // A value that k rows hold on average may stay.
            let count = if statistics.n_distinct < 0.0 {
                -statistics.n_distinct * self.table.rows as f64
            } else {
                statistics.n_distinct
            };
            let is_rare = count * f64::from(self.privacy.k) > self.table.rows as f64;
            // Where nearly every number between the bounds occurs, moved ones are no others.
            let room = match (bounds.first(), bounds.last()) {
                (Some(low), Some(high)) if step > 0.0 => (high.at - low.at) / step + 1.0,
                _ => f64::INFINITY,
            };
            let is_rare = is_rare && count < DENSE * room;
            smooth(kind, &mut bounds, step);
            let others = (1.0 - common.iter().map(|(_, share)| share).sum::<f64>()).max(f64::MIN_POSITIVE);
            let of_bucket = least * bounds.len().max(1) as f64 / others;
            move_bounds(self.rng, kind, &mut bounds, step, of_bucket.min(1.0), is_rare);
        }
        common.dedup_by(|one, other| one.0.at.total_cmp(&other.0.at).is_eq());
        let distinct = if statistics.n_distinct == 0.0 { -1.0 } else { statistics.n_distinct };
        Values::Statistics {
            distinct,
            correlation: correlation(statistics),
            common: common.into_iter().map(|(number, share)| (number.text, round(share))).collect(),
            bounds: bounds.into_iter().map(|number| number.text).collect(),
        }
    }
}

/// Least and greatest length of byte strings: of the original's where the mean lies between them,
/// else both are the mean.
fn bytes_of(statistics: &Statistics) -> (u32, u32) {
    let header = if statistics.avg_width <= 127 { 1 } else { 4 };
    let mean = statistics.avg_width.saturating_sub(header).max(1);
    // As text: `\x` and two digits a byte.
    let length = |text: &String| u32::try_from(text.len().saturating_sub(2) / 2).unwrap_or(u32::MAX);
    let lengths =
        || statistics.bounds.iter().chain(statistics.common.iter().map(|(value, _)| value)).map(length);
    let (low, high) = (lengths().min().unwrap_or(mean), lengths().max().unwrap_or(mean));
    let reach = mean.saturating_sub(low).min(high.saturating_sub(mean));
    ((mean - reach).max(1), mean + reach)
}

/// One text in each document, so that documents are as long and as often equal as the original's.
fn json(kind: &Kind, statistics: &Statistics) -> Values {
    // Header, two entries and a name; or braces, quotes and a name.
    let around = if *kind == Kind::Jsonb { 14 } else { 10 };
    let length = usize::try_from(statistics.avg_width.saturating_sub(around).max(1)).unwrap_or(1);
    let count = statistics.common.len().max(1) as f64;
    let place = |(at, (_, share)): (usize, &(String, f64))| ((at as f64 + 0.5) / count, round(*share));
    Values::Letters {
        distinct: if statistics.n_distinct == 0.0 { -1.0 } else { statistics.n_distinct },
        correlation: correlation(statistics),
        common: statistics.common.iter().enumerate().map(place).collect(),
        alphabet: "words".to_owned(),
        lengths: vec![u32::try_from(length).unwrap_or(1)],
    }
}

fn column(facts: &ColumnFacts, nulls: f64, width: Option<u32>, values: Values) -> Column {
    let (name, data_type) = (facts.name.clone(), facts.data_type.clone());
    Column {
        name,
        data_type,
        nulls,
        width,
        not_below: None,
        above: None,
        gaps: Vec::new(),
        follows: None,
        values,
    }
}

fn fill(why: &str) -> Values {
    Values::Fill { why: why.to_owned() }
}

/// Places columns above others if a CHECK demands it and both have statistics; otherwise the fill
/// decides on them.
fn order(columns: &mut [Column], facts: &[ColumnFacts]) {
    for (at, facts) in facts.iter().enumerate() {
        let ColumnRole::Above { column: other, is_strict } = &facts.role else { continue };
        let is_number = |column: &Column| matches!(column.values, Values::Statistics { .. });
        let Some(other_at) = columns.iter().position(|column| column.name == *other) else { continue };
        if is_number(&columns[at]) && is_number(&columns[other_at]) {
            let side = if *is_strict { &mut columns[at].above } else { &mut columns[at].not_below };
            *side = Some(other.clone());
        } else {
            for at in [at, other_at].into_iter().filter(|&at| is_number(&columns[at])).collect::<Vec<_>>() {
                columns[at].values = fill("a CHECK ties it to a column without statistics");
                columns[at].nulls = 0.0;
            }
        }
    }
}

/// The statistics relative to the rows that are not NULL.
fn of_values(statistics: &Statistics) -> Statistics {
    let there = (1.0 - statistics.null_frac).max(f64::MIN_POSITIVE);
    let mut values = statistics.clone();
    for (_, share) in &mut values.common {
        *share = (*share / there).min(1.0);
    }
    if values.n_distinct < 0.0 {
        values.n_distinct = (values.n_distinct / there).max(-1.0);
    }
    values
}

/// The statistics without frequent values that may be frequent in ANALYZE's sample only. Of equally
/// frequent values a sample has some more often than others, and the list names these: in the copy
/// they would be more frequent indeed, and more of them in its sample.
fn without_chance(statistics: &Statistics, rows: u64, nulls: f64) -> Statistics {
    let sampled = SAMPLED * (1.0 - nulls);
    let shares: Vec<f64> = statistics.common.iter().map(|(_, share)| *share).collect();
    let distinct = different(statistics.n_distinct, rows, nulls, &shares);
    let values = if distinct < 0.0 { -distinct * rows as f64 * (1.0 - nulls) } else { distinct };
    let others = values - shares.len() as f64;
    if rows as f64 <= SAMPLED || others < shares.len() as f64 || statistics.bounds.len() < 2 {
        return statistics.clone();
    }
    let mean = sampled * (1.0 - shares.iter().sum::<f64>()).max(0.0) / others;
    let mut steady = statistics.clone();
    steady.common.retain(|(_, share)| values * as_often(mean, (share * sampled).round()) < 0.5);
    steady
}

/// The probability that a number with a Poisson distribution is at least `count`.
fn as_often(mean: f64, count: f64) -> f64 {
    let (mut term, mut below, mut at) = ((-mean).exp(), 0.0, 0.0);
    while at < count {
        below += term;
        at += 1.0;
        term *= mean / at;
    }
    (1.0 - below).max(0.0)
}

pub(crate) fn is_text(kind: &Kind) -> bool {
    matches!(kind, Kind::Text | Kind::Varchar(_) | Kind::Char(_) | Kind::Name)
}

fn length(text: impl AsRef<str>) -> usize {
    text.as_ref().trim_end().chars().count().max(1)
}

fn correlation(statistics: &Statistics) -> f64 {
    round(statistics.correlation.unwrap_or(0.0)).clamp(-1.0, 1.0)
}

/// The number with six digits: no sample is more precise.
fn round(number: f64) -> f64 {
    (number * DIGITS).round() / DIGITS
}

/// A value's position among all values, 0 to 1, by the bounds or the common values.
fn place(value: &str, bounds: &[String], common: &[(String, f64)]) -> f64 {
    let number = |text: &str| text.parse::<f64>().ok();
    let is_less = |other: &str| match (number(other), number(value)) {
        (Some(other), Some(value)) => other < value,
        _ => other < value,
    };
    if bounds.len() > 1 {
        let below = bounds.iter().filter(|bound| is_less(bound)).count();
        return (below as f64 / (bounds.len() - 1) as f64).min(1.0);
    }
    let below = common.iter().filter(|(other, _)| is_less(other)).count();
    (below as f64 + 0.5) / common.len().max(1) as f64
}

/// A number's position between the bounds of all values, 0 to 1.
fn place_on(number: f64, line: &[f64]) -> f64 {
    let after = line.partition_point(|bound| *bound <= number).clamp(1, line.len() - 1);
    let (low, high) = (line[after - 1], line[after]);
    let within = if high > low { ((number - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    (after as f64 - 1.0 + within) / (line.len() - 1) as f64
}

fn place_of_key(value: &str, statistics: &Statistics, line: &[f64]) -> f64 {
    match value.parse() {
        Ok(number) if line.len() > 1 => place_on(number, line),
        _ => place(value, &statistics.bounds, &statistics.common),
    }
}

/// Frequent keys in order, each with its position among all keys and its share.
fn keys_in_order(statistics: &Statistics, line: &[f64]) -> Vec<(String, f64, f64)> {
    in_order(&statistics.common, |value| place_of_key(value, statistics, line))
}

/// Frequent texts in order, each with its position among all texts and its share.
fn texts_in_order(statistics: &Statistics) -> Vec<(String, f64, f64)> {
    in_order(&statistics.common, |value| place(value, &statistics.bounds, &[]))
}

fn in_order(common: &[(String, f64)], place: impl Fn(&str) -> f64) -> Vec<(String, f64, f64)> {
    let at_place = |(value, share): &(String, f64)| (value.clone(), round(place(value)), round(*share));
    let mut places: Vec<(String, f64, f64)> = common.iter().map(at_place).collect();
    // Of the same place, by value: numbers by their length first.
    places.sort_by(|one, other| {
        one.1.total_cmp(&other.1).then_with(|| match (one.0.parse::<f64>(), other.0.parse::<f64>()) {
            (Ok(one), Ok(other)) => one.total_cmp(&other),
            _ => one.0.cmp(&other.0),
        })
    });
    places.retain(|(.., share)| *share > 0.0);
    places
}

/// Says of columns whose frequent values come together with others where these stand among the other values.
fn place_frequent(columns: &mut [Column], table: &TableFacts) {
    let is_by_pairs = |column: &Column| {
        column.follows.as_ref().filter(|of| matches!(of.how, How::Pairs { .. })).map(|of| of.column.clone())
    };
    let leaders: Vec<String> = columns.iter().filter_map(is_by_pairs).collect();
    for (column, facts) in columns.iter_mut().zip(&table.columns) {
        let is_concerned = is_by_pairs(column).is_some() || leaders.contains(&column.name);
        let Some(kind) = facts.kind.as_ref().filter(|_| is_concerned) else { continue };
        let spec = column.values_spec(None, table.rows).and_then(|spec| spec.parse::<Spec>().ok());
        if let Some(rowgen::Values::Statistics(statistics)) =
            spec.and_then(|spec| spec.values(kind, None).ok())
        {
            column.gaps = statistics.gaps().into_iter().map(|gap| (gap * 1e9).round() / 1e9).collect();
        }
    }
}

/// Points between two quantiles of a length at which a width is computed.
const BETWEEN: usize = 8;

/// Mean bytes of texts with these quantiles of their length, times a factor. A header takes one byte
/// up to 126 characters, else four.
fn width_of(quantiles: &[f64], factor: f64) -> f64 {
    let widths = quantiles.windows(2).flat_map(|pair| {
        (0..BETWEEN).map(move |at| {
            let length = factor * (pair[0] + (pair[1] - pair[0]) * (at as f64 + 0.5) / BETWEEN as f64);
            length + if length < 126.5 { 1.0 } else { 4.0 }
        })
    });
    widths.sum::<f64>() / (BETWEEN * (quantiles.len() - 1)) as f64
}

/// Quantiles of these lengths, scaled so that values take `width` bytes on average.
fn quantiles(mut lengths: Vec<usize>, width: u32, most: Option<u32>) -> Vec<u32> {
    lengths.sort_unstable();
    let steps = lengths.len().saturating_sub(1);
    let quantile = |index: usize| lengths.get(steps * index / (QUANTILES - 1)).copied().unwrap_or(1) as f64;
    let quantiles: Vec<f64> = (0..QUANTILES).map(quantile).collect();
    let mean = quantiles.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).sum::<f64>()
        / (QUANTILES - 1) as f64;
    // PostgreSQL cuts the mean off to a whole number.
    let is_right = |factor: f64| (0.0..1.0).contains(&(width_of(&quantiles, factor) - f64::from(width)));
    let factor = if mean > 0.0 && width > 1 && !is_right(1.0) {
        let (mut low, mut high) = (0.0, f64::from(width) / mean + 1.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            let is_less = width_of(&quantiles, middle) < f64::from(width) + 0.5;
            if is_less { low = middle } else { high = middle }
        }
        high
    } else {
        1.0
    };
    let stretched = quantiles.into_iter().map(|length| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let length = (length * factor).round().clamp(1.0, 1e6) as u32;
        most.map_or(length, |most| length.min(most.max(1)))
    });
    stretched.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Bytes;

    fn made(kind: Kind, role: ColumnRole, statistics: Statistics, keep: &[&str]) -> Column {
        let column = ColumnFacts {
            name: "c".to_owned(),
            data_type: kind.sql(),
            kind: Some(kind),
            role,
            statistics: Some(statistics),
            ..ColumnFacts::default()
        };
        let table = TableFacts {
            name: "public.t".to_owned(),
            rows: 10_000,
            bytes: Bytes::default(),
            analyzed: None,
            changed: 0,
            columns: vec![column],
            pairs: Vec::new(),
        };
        let facts = Facts {
            server: String::new(),
            captured: String::new(),
            ddl: String::new(),
            tables: vec![table],
            unseen: Vec::new(),
            aggregates: false,
        };
        let keep = keep.iter().map(|name| (*name).to_owned()).collect();
        let model = Model::of(&facts, &Privacy { k: 20, keep, seed: 1 });
        let read = Model::read(&model.write()).unwrap();
        assert_eq!(read, model);
        model.tables[0].columns[0].clone()
    }

    fn strings(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn numbers_that_few_rows_hold_are_replaced_and_bounds_move() {
        let statistics = Statistics {
            null_frac: 0.2,
            n_distinct: -0.4,
            avg_width: 4,
            correlation: Some(0.3),
            common: vec![("500".to_owned(), 0.4), ("77".to_owned(), 0.0008)],
            bounds: strings(&["1", "100", "1000", "5000", "9999"]),
        };
        let column = made(Kind::Int4, ColumnRole::Free, statistics, &[]);
        assert!((column.nulls - 0.2).abs() < 1e-9);
        let Values::Statistics { distinct, common, bounds, .. } = column.values else { panic!() };
        assert!((distinct + 0.5).abs() < 1e-9, "relative to the rows that are not NULL");
        assert!((common.iter().find(|(value, _)| value == "500").unwrap().1 - 0.5).abs() < 1e-9);
        assert!(common.iter().all(|(value, _)| value != "77") && common.len() == 2);
        let bounds: Vec<i64> = bounds.iter().map(|bound| bound.parse().unwrap()).collect();
        assert!(bounds.is_sorted() && bounds[0] >= 1 && bounds[4] <= 9_999);
        assert_ne!(bounds, [1, 100, 1000, 5000, 9999]);
    }

    #[test]
    fn the_least_and_the_greatest_number_move_inwards() {
        // 10 to 100 in steps of 10, each in 9 rows.
        let common: Vec<_> = (1..=10).map(|tens| (format!("{}", tens * 10), 0.009)).collect();
        let bounds = strings(&["11", "37", "52", "88", "99"]);
        let statistics = Statistics {
            null_frac: 0.0,
            n_distinct: 90.0,
            avg_width: 4,
            correlation: Some(0.0),
            common,
            bounds,
        };
        let column = made(Kind::Int4, ColumnRole::Free, statistics, &[]);
        let Values::Statistics { common, .. } = column.values else { panic!() };
        let numbers: Vec<i64> = common.iter().map(|(number, _)| number.parse().unwrap()).collect();
        assert!(numbers.iter().all(|number| (10..=100).contains(number)), "{numbers:?}");
    }

    #[test]
    fn numbers_of_lines_tell_how_many_rows_a_key_has() {
        let shares = [(0.4, "1"), (0.3, "2"), (0.2, "3"), (0.1, "4")];
        let column = |name: &str, role, statistics| ColumnFacts {
            name: name.to_owned(),
            data_type: "integer".to_owned(),
            kind: Some(Kind::Int4),
            role,
            statistics: Some(statistics),
            ..ColumnFacts::default()
        };
        let of = |first: &str| {
            let numbers = shares
                .iter()
                .map(|(share, number)| ((if *number == "1" { first } else { number }).to_owned(), *share));
            let numbers = Statistics { n_distinct: 4.0, common: numbers.collect(), ..Statistics::default() };
            let role = ColumnRole::Counted { table: "public.orders".to_owned(), by: "line".to_owned() };
            let keys = Statistics { n_distinct: -0.25, correlation: Some(1.0), ..Statistics::default() };
            let table = TableFacts {
                name: "public.lines".to_owned(),
                rows: 10_000,
                bytes: Bytes::default(),
                analyzed: None,
                changed: 0,
                columns: vec![column("order", role, keys), column("line", ColumnRole::Key, numbers)],
                pairs: Vec::new(),
            };
            let facts = Facts {
                server: String::new(),
                captured: String::new(),
                ddl: String::new(),
                tables: vec![table],
                unseen: Vec::new(),
                aggregates: false,
            };
            let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
            assert_eq!(Model::read(&model.write()).unwrap(), model);
            model.tables[0].columns[0].values.clone()
        };
        let Values::Keys { rows, .. } = of("1") else { panic!() };
        assert_eq!(rows, [(1.0, 0.25), (2.0, 0.25), (3.0, 0.25), (4.0, 0.25)]);
        assert_eq!(of("-5"), fill("a key"));
    }

    #[test]
    fn text_of_the_original_stays_only_where_that_is_asked_for() {
        let common = vec![("London".to_owned(), 0.5), ("Bath".to_owned(), 0.3)];
        let bounds = strings(&["Aberdeen", "Bristol", "Leeds", "York"]);
        for bounds in [Vec::new(), bounds] {
            let statistics = Statistics {
                n_distinct: 40.0,
                avg_width: 7,
                common: common.clone(),
                bounds: bounds.clone(),
                ..Statistics::default()
            };
            let originals: Vec<&str> = bounds.iter().map(String::as_str).chain(["London", "Bath"]).collect();
            let text = |keep: &[&str]| {
                format!("{:?}", made(Kind::Text, ColumnRole::Free, statistics.clone(), keep).values)
            };
            assert!(originals.iter().all(|original| !text(&[]).contains(original)), "{}", text(&[]));
            assert!(originals.iter().all(|original| text(&["t.c"]).contains(original)));
        }
    }

    #[test]
    fn labels_are_the_schema_s() {
        let kind = Kind::Enum {
            name: "mood".to_owned(),
            labels: strings(&["sad", "ok", "happy"]),
            oids: Vec::new(),
            oid: 0,
        };
        let statistics = Statistics {
            n_distinct: 2.0,
            avg_width: 4,
            common: vec![("happy".to_owned(), 0.9999), ("sad".to_owned(), 0.0001)],
            ..Statistics::default()
        };
        let column = made(kind, ColumnRole::Free, statistics, &[]);
        let Values::Statistics { common, .. } = column.values else { panic!() };
        assert_eq!(common, [("sad".to_owned(), 0.0001), ("happy".to_owned(), 0.9999)]);
    }

    #[test]
    fn frequent_values_that_chance_explains_are_not_made_frequent() {
        // 2,500 dates: 12 rows each in a sample, and a few of them 25; one has 60.
        let common = vec![("60".to_owned(), 0.002), ("1".to_owned(), 25.0 / 30_000.0)];
        let statistics = Statistics {
            n_distinct: 2_500.0,
            common,
            bounds: strings(&["0", "1000", "2500"]),
            ..Statistics::default()
        };
        let kept = |rows| without_chance(&statistics, rows, 0.0).common.len();
        assert_eq!((kept(1_000_000), kept(30_000)), (1, 2), "ANALYZE reads the smaller table whole");
        // Of a mean of 3, P(X >= 8) is 0.0119.
        assert!((as_often(3.0, 8.0) - 0.0119).abs() < 1e-4 && as_often(3.0, 0.0) > 0.999_999);
    }

    #[test]
    fn lengths_follow_the_average_width() {
        let quantiles = quantiles(vec![2, 4, 6, 8, 30], 21, None);
        let mean = quantiles.windows(2).map(|pair| f64::from(pair[0] + pair[1]) / 2.0).sum::<f64>() / 10.0;
        assert!((19.0..21.0).contains(&mean), "{quantiles:?}");
    }
}
