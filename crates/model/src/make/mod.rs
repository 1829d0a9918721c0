//! Makes a model from facts. All decisions about privacy are made here.

mod chance;
mod codes;
mod keys;
mod numbers;
mod places;
mod ranges;
mod text;
mod wide;

use std::collections::BTreeMap;

use fastrand::Rng;
use rowgen::{Kind, Spec};

pub(crate) use self::chance::rooms;
use self::chance::without_chance;
pub use self::codes::is_code;
use self::places::{keys_in_order, texts_in_order};
pub(crate) use self::ranges::bounds_of;
pub(crate) use self::text::is_text;
use self::text::{bytes_of, json};
use self::wide::Wide;
pub use self::wide::shortened;

use crate::arrays;
use crate::depend::{self, Node};
use crate::elements;
use crate::facts::{ColumnFacts, ColumnRole, Facts, Statistics, TableFacts};
use crate::file::{Column, FORMAT, How, Model, Table, Values};
use crate::numbers::Number;

/// Why the fill decides on the values of a column, and on its NULLs.
pub(crate) const KEY: &str = "a key";
pub(crate) const GENERATED: &str = "generated";

/// Why a column of a type that pgrig does not know has no values in the model.
pub const UNKNOWN_TYPE: &str = "a type without known values";

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

/// Numbers in a model are multiples of 1 divided by this.
const DIGITS: f64 = 1e6;

/// Why a column has no values in the model: of its table, or of its own.
const FEW_ROWS: &str = "the table has fewer rows than --k";
const FEW_ANALYZED: &str = "the table perhaps had fewer rows than --k when it was analyzed: run ANALYZE";
const FEW_VALUES: &str = "fewer rows than --k have a value";

impl Model {
    /// The model of these facts.
    pub fn of(facts: &Facts, privacy: &Privacy) -> Self {
        let mut rng = Rng::with_seed(privacy.seed);
        let tables = facts.tables.iter().map(|table| {
            let wide = Wide::of_table(table);
            let privacy = Privacy { k: table.k(privacy.k), ..privacy.clone() };
            Maker { facts, table, privacy, wide, rng: &mut rng }.table()
        });
        Self {
            format: FORMAT,
            captured: facts.captured.clone(),
            server: facts.server.clone(),
            k: privacy.k,
            aggregates: facts.aggregates,
            ddl: facts.ddl.clone(),
            locale: facts.locale.clone(),
            tables: tables.collect(),
        }
    }
}

struct Maker<'a> {
    facts: &'a Facts,
    table: &'a TableFacts,
    /// Its k is that of the table ([`TableFacts::k`]).
    privacy: Privacy,
    /// Widths of the columns that have values which ANALYZE does not keep.
    wide: BTreeMap<String, Wide>,
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
        let TableFacts { name, rows, analyzed, changed, sampled, bytes, .. } = self.table.clone();
        Table { name, rows, analyzed, changed, sampled, bytes, columns }
    }

    fn column(&mut self, facts: &ColumnFacts) -> Column {
        let few = self.table.rows < u64::from(self.privacy.k);
        let (nulls, width, values) = match &facts.statistics {
            None => (0.0, None, fill("no statistics: run ANALYZE, or capture as the owner of the table")),
            Some(_) if few => (0.0, None, unknown(facts, self.why_few())),
            Some(statistics) if self.has_few_values(statistics) => {
                (round(statistics.null_frac), None, self.counts_only(facts, statistics))
            }
            Some(statistics) => {
                let nulls = round(statistics.null_frac);
                let mut values = self.values(facts, &of_values(statistics));
                if let Some(kind) = &facts.kind {
                    values.mark_moved(kind, statistics);
                }
                (nulls, Some(statistics.avg_width), values)
            }
        };
        let nulls = if values.has_nulls_by_fill() { 0.0 } else { nulls };
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
            return column(facts, nulls, width, fill("ANALYZE keeps none of its values"));
        }
        column(facts, nulls, width, values)
    }

    fn why_few(&self) -> &'static str {
        if self.table.analyzed_rows < self.table.rows { FEW_ANALYZED } else { FEW_ROWS }
    }

    /// Whether some rows, but fewer than k, are not NULL.
    fn has_few_values(&self, statistics: &Statistics) -> bool {
        let there = (self.table.rows as f64 * (1.0 - statistics.null_frac)).round();
        statistics.null_frac < 1.0 && there < f64::from(self.privacy.k)
    }

    /// Values of a column that has a value in fewer rows than k: without those of the original. Of texts, their number stays; of a
    /// foreign key, the number of keys in use.
    fn counts_only(&mut self, facts: &ColumnFacts, statistics: &Statistics) -> Values {
        let Statistics { null_frac, n_distinct, .. } = of_values(statistics);
        match facts.role {
            ColumnRole::Free | ColumnRole::Above { .. } => {
                let mut values = unknown(facts, FEW_VALUES);
                if let Values::Letters { distinct, .. } = &mut values
                    && n_distinct != 0.0
                {
                    *distinct = n_distinct;
                }
                values
            }
            ColumnRole::Unique => fill(KEY),
            _ => self.values(facts, &Statistics { null_frac, n_distinct, ..Statistics::default() }),
        }
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
                // As the server prints them.
                let read = |text: String| Some((Number::read(kind, &text)?.at, text));
                let mut numbers: Vec<(f64, String)> = texts().filter_map(read).collect();
                numbers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
                numbers.into_iter().map(|(_, text)| text).collect()
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

    /// The share of the rows that are not NULL that k rows are.
    fn least(&self, statistics: &Statistics) -> f64 {
        let there = self.table.rows as f64 * (1.0 - statistics.null_frac);
        f64::from(self.privacy.k) / there.max(1.0)
    }

    fn values(&mut self, facts: &ColumnFacts, statistics: &Statistics) -> Values {
        match &facts.role {
            ColumnRole::Key => return fill(KEY),
            ColumnRole::Counted { table, by } => {
                return self.counted(statistics, table, by).unwrap_or_else(|| fill(KEY));
            }
            ColumnRole::Generated => return fill(GENERATED),
            ColumnRole::Constrained(why) => return fill(why),
            ColumnRole::Reference { table, column } | ColumnRole::Paired { table, column } => {
                return self.keys(facts, statistics, table, column);
            }
            ColumnRole::Unique if !facts.kind.as_ref().is_some_and(is_text) => {
                return self.serial(facts, statistics).unwrap_or_else(|| fill(KEY));
            }
            ColumnRole::Unique | ColumnRole::Free | ColumnRole::Above { .. } => {}
        }
        let Some(kind) = &facts.kind else { return fill(UNKNOWN_TYPE) };
        if is_text(kind) {
            return self.text(facts, kind, statistics);
        }
        if is_code(facts, self.table.rows, self.privacy.k)
            && !self.is_kept(&facts.name)
            && let Some(codes) = self.codes(kind, statistics)
        {
            return codes;
        }
        if let Some(list) = self.listed(kind, statistics) {
            return list;
        }
        if kind.units().is_some() && (!statistics.common.is_empty() || statistics.bounds.len() > 1) {
            let nulls = facts.statistics.as_ref().map_or(0.0, |of| of.null_frac);
            return self.numbers(kind, &without_chance(kind, statistics, self.table.counts(), nulls));
        }
        if matches!(kind, Kind::Json | Kind::Jsonb) {
            return json(kind, statistics, self.wide.get(&facts.name));
        }
        if let (Kind::Array(element), true) = (kind, statistics.bounds.len() < 2) {
            let least = self.least(statistics);
            let replaced = arrays::replaced(element, &statistics.common, least, self.rng);
            if let Some(values) = replaced.filter(|values| !values.is_empty()) {
                let values = values.into_iter().map(|(value, share)| (value, round(share))).collect();
                return Values::List {
                    correlation: correlation(statistics),
                    values,
                    kept: !is_text(element),
                };
            }
        }
        if let Kind::Array(element) = kind {
            let least = self.least(statistics);
            if let Some(values) =
                elements::of(element, statistics, least, self.table.counts(), round, self.rng)
            {
                return values;
            }
        }
        if let Kind::Range { name, element, .. } = kind
            && let Some(ranges) = self.ranges(name, element, statistics)
        {
            return ranges;
        }
        let mut values = random(kind, statistics);
        if let (Kind::Bytea, Values::Any { lengths, .. }) = (kind, &mut values) {
            let wide = self.wide.get(&facts.name).filter(|wide| wide.outside > 0.0);
            *lengths = Some(bytes_of(statistics, wide.map_or(statistics.avg_width, Wide::width)));
        }
        values
    }
}

/// Random values of the type, of which as many are different, and as frequent, as in the original.
fn random(kind: &Kind, statistics: &Statistics) -> Values {
    let distinct = if statistics.n_distinct == 0.0 { -1.0 } else { statistics.n_distinct };
    let count = statistics.common.len().max(1) as f64;
    let place = |(at, (_, share)): (usize, &(String, f64))| ((at as f64 + 0.5) / count, round(*share));
    let lengths = matches!(kind, Kind::Bytea).then(|| bytes_of(statistics, statistics.avg_width));
    Values::Any { distinct, common: statistics.common.iter().enumerate().map(place).collect(), lengths }
}

impl Maker<'_> {
    /// A list of the original's values, if all are frequent, and some would be other texts as numbers on a scale (`1 mon`, `7 days`), or are
    /// none (`NaN`, dates BC). Those that fewer than k rows have are left out.
    fn listed(&self, kind: &Kind, statistics: &Statistics) -> Option<Values> {
        let is_number = |(text, _): &(String, f64)| Number::read(kind, text).is_some();
        let is_read = *kind != Kind::Interval && statistics.common.iter().all(is_number);
        if kind.units().is_none() || statistics.bounds.len() > 1 || is_read {
            return None;
        }
        let least = self.least(statistics);
        let frequent = statistics.common.iter().filter(|(_, share)| *share >= least);
        let mut values: Vec<(String, f64)> =
            frequent.map(|(text, share)| (text.clone(), round(*share))).collect();
        values.sort_by(|(one, _), (other, _)| one.cmp(other));
        let correlation = correlation(statistics);
        (!values.is_empty()).then_some(Values::List { correlation, values, kept: true })
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
        nulls_follow: None,
        values,
    }
}

/// Values of a column in a table with fewer rows than k, or with fewer values. Text is made of random letters: words that its name
/// suggests, such as countries, may be the original's.
fn unknown(facts: &ColumnFacts, why: &str) -> Values {
    match &facts.kind {
        Some(kind) if is_text(kind) && facts.role == ColumnRole::Free => {
            let most = kind.characters().unwrap_or(u32::MAX).max(1);
            Values::Letters {
                distinct: -1.0,
                correlation: 0.0,
                common: Vec::new(),
                alphabet: "lower".to_owned(),
                lengths: [4, 12].map(|length: u32| length.min(most)).to_vec(),
            }
        }
        _ => fill(why),
    }
}

fn fill(why: &str) -> Values {
    Values::Fill { why: why.to_owned() }
}

/// Places columns above others if a CHECK demands it and both have statistics; otherwise the fill
/// decides on them. A column in which few rows have a value gets the values of the other one.
fn order(columns: &mut [Column], facts: &[ColumnFacts]) {
    for (at, of_column) in facts.iter().enumerate() {
        let ColumnRole::Above { column: other, .. } = &of_column.role else { continue };
        let is_number = |column: &Column| matches!(column.values, Values::Statistics { .. });
        let Some(other_at) = columns.iter().position(|column| column.name == *other) else { continue };
        let has_few = |column: &Column| column.values == fill(FEW_VALUES);
        for (few, with_values) in [(at, other_at), (other_at, at)] {
            let is_same = columns[few].data_type == columns[with_values].data_type;
            if is_same && has_few(&columns[few]) && is_number(&columns[with_values]) {
                columns[few].values = columns[with_values].values.clone();
                columns[few].nulls = facts[few].statistics.as_ref().map_or(0.0, |of| round(of.null_frac));
            }
        }
    }
    let is_number = |column: &Column| matches!(column.values, Values::Statistics { .. });
    let above = facts.iter().enumerate().filter_map(|(at, facts)| match &facts.role {
        ColumnRole::Above { column, is_strict } => Some((at, column, *is_strict)),
        _ => None,
    });
    let above: Vec<(usize, usize, bool)> = above
        .filter_map(|(at, other, is_strict)| {
            Some((at, columns.iter().position(|column| column.name == *other)?, is_strict))
        })
        .collect();
    // In a chain, one column without statistics takes those of all others.
    for _ in 0..=above.len() {
        for &(at, other, _) in &above {
            for (has, lacks) in [(at, other), (other, at)] {
                if is_number(&columns[has]) && !is_number(&columns[lacks]) {
                    columns[has].values = fill("a CHECK ties it to a column without statistics");
                }
            }
        }
    }
    for (at, other, is_strict) in
        above.into_iter().filter(|(at, ..)| is_number(&columns[*at])).collect::<Vec<_>>()
    {
        let name = Some(columns[other].name.clone());
        let side = if is_strict { &mut columns[at].above } else { &mut columns[at].not_below };
        *side = name;
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

fn correlation(statistics: &Statistics) -> f64 {
    round(statistics.correlation.unwrap_or(0.0)).clamp(-1.0, 1.0)
}

/// The number with six digits: no sample is more precise.
fn round(number: f64) -> f64 {
    (number * DIGITS).round() / DIGITS
}

/// Says of columns whose frequent values come together with others where these stand among the other values.
fn place_frequent(columns: &mut [Column], table: &TableFacts) {
    let is_by_pairs = |column: &Column| {
        let follows = column.follows.as_ref();
        follows
            .filter(|of| matches!(of.how, How::Pairs { .. } | How::Strata { .. }))
            .map(|of| of.column.clone())
    };
    let by_nulls = |column: &Column| column.nulls_follow.as_ref().map(|of| of.column.clone());
    let leaders: Vec<String> =
        columns.iter().flat_map(|column| [is_by_pairs(column), by_nulls(column)]).flatten().collect();
    for (column, facts) in columns.iter_mut().zip(&table.columns) {
        let is_concerned = is_by_pairs(column).is_some() || leaders.contains(&column.name);
        let Some(kind) = facts.kind.as_ref().filter(|_| is_concerned) else { continue };
        let spec = column.values_spec(None, table.counts()).and_then(|spec| spec.parse::<Spec>().ok());
        if let Some(rowgen::Values::Statistics(statistics)) =
            spec.and_then(|spec| spec.values(kind, None).ok())
        {
            column.gaps = statistics.gaps().into_iter().map(|gap| (gap * 1e9).round() / 1e9).collect();
        }
    }
}
