//! Converts a model to column specifications.

use std::fmt::Write;

use rowgen::{Kind, Precision};

use crate::depend::common;
use crate::estimate::{RowCounts, different, hidden};
use crate::facts::{ColumnFacts, ColumnRole, Facts, Statistics, TableFacts};
use crate::file::{Column, Follows, Model, Others, Table, Values};
use crate::links::{link, link_of_nulls, order};
use crate::make::{GENERATED, KEY, rooms};
use crate::ranges::Ranges;

/// Rows that ANALYZE samples for each unit of the statistics target, which is also the greatest number of frequent values.
pub(crate) const SAMPLED_PER_TARGET: u64 = 300;

impl Model {
    /// The statistics of the model in the form of facts.
    pub fn facts(&self) -> Facts {
        let table = |table: &Table| TableFacts {
            name: table.name.clone(),
            sql_name: String::new(),
            rows: table.rows,
            analyzed_rows: table.rows,
            sampled: table.sampled,
            bytes: table.bytes,
            analyzed: table.analyzed.clone(),
            changed: table.changed,
            row_security: false,
            denied: Vec::new(),
            columns: table.columns.iter().map(|column| column.facts(table.sampled)).collect(),
            pairs: Vec::new(),
        };
        Facts {
            server: self.server.clone(),
            captured: self.captured.clone(),
            ddl: self.ddl.clone(),
            locale: self.locale.clone(),
            tables: self.tables.iter().map(table).collect(),
            unseen: Vec::new(),
            elsewhere: Vec::new(),
            aggregates: self.aggregates,
        }
    }
}

impl Column {
    fn facts(&self, sampled: u64) -> ColumnFacts {
        ColumnFacts {
            name: self.name.clone(),
            data_type: self.data_type.clone(),
            kind: None,
            role: ColumnRole::Free,
            statistics: self.statistics(sampled),
            ..ColumnFacts::default()
        }
    }

    /// The statistics in the form of `pg_stats`: relative to all rows, with as many frequent values as ANALYZE lists.
    fn statistics(&self, sampled: u64) -> Option<Statistics> {
        let there = 1.0 - self.nulls;
        let (correlation, common, bounds) = match &self.values {
            Values::Fill { .. } | Values::Serial { .. } => return None,
            Values::Keys { correlation, common, .. } | Values::Letters { correlation, common, .. } => {
                (Some(*correlation), places_as_values(common), Vec::new())
            }
            Values::Statistics { correlation, common, bounds, .. } => {
                (Some(*correlation), common.clone(), bounds.clone())
            }
            Values::List { correlation, values, .. } => (Some(*correlation), values.clone(), Vec::new()),
            Values::Any { common, .. } => (None, places_as_values(common), Vec::new()),
            Values::Elements { .. } | Values::Ranges { .. } => (None, Vec::new(), Vec::new()),
        };
        let mut common: Vec<(String, f64)> =
            common.into_iter().map(|(value, share)| (value, share * there)).collect();
        common.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        common.truncate(usize::try_from(sampled / SAMPLED_PER_TARGET).unwrap_or(usize::MAX).max(1));
        let distinct = match &self.values {
            // Relative to the keys.
            Values::Keys { .. } => 0.0,
            values => values.distinct().unwrap_or_default(),
        };
        let elements = match &self.values {
            Values::Elements { elements, .. } => elements.clone(),
            _ => Vec::new(),
        };
        Some(Statistics {
            null_frac: self.nulls,
            n_distinct: if distinct < 0.0 { distinct * there } else { distinct },
            avg_width: self.width.unwrap_or_default(),
            correlation,
            common,
            bounds,
            elements,
            ..Statistics::default()
        })
    }
}

fn places_as_values(common: &[(f64, f64)]) -> Vec<(String, f64)> {
    common.iter().map(|(place, share)| (place.to_string(), *share)).collect()
}

impl Table {
    fn counts(&self) -> RowCounts {
        RowCounts { all: self.rows, sampled: self.sampled }
    }

    /// Specifications of its columns, as `column=specification`; none for columns that the fill decides on.
    pub fn specs(&self) -> Vec<String> {
        let spec = |column: &Column| {
            let spec = self
                .ordered(column, self.columns.len())
                .or_else(|| self.spec(column))
                .or_else(|| column.only_nulls_spec())?;
            let name = &column.name;
            let quoted = if name.contains(['"', '=']) || name.trim() != name {
                format!("\"{}\"", name.replace('"', "\"\""))
            } else {
                name.clone()
            };
            Some(format!("{quoted}={spec}"))
        };
        self.columns.iter().filter_map(spec).collect()
    }

    /// The specification of a column whose values are above or below another's in the same row.
    fn ordered(&self, column: &Column, most: usize) -> Option<String> {
        let (side, other) = match (&column.above, &column.not_below) {
            (Some(other), _) => ("above", self.columns.iter().find(|column| column.name == *other)?),
            (None, Some(other)) => ("greater", self.columns.iter().find(|column| column.name == *other)?),
            (None, None) => ("lesser", self.first_above(column)?),
        };
        // Of two columns, the lower one gets the lesser value. Any further one is above the value that its other column gets: in a chain, and
        // beside the first one. A chain is no longer than there are columns.
        let is_lowest = other.above.is_none() && other.not_below.is_none();
        let is_first = || self.first_above(other).is_some_and(|first| first.name == column.name);
        let is_of_two = side == "lesser" || is_lowest && is_first();
        let others = if is_of_two || most == 0 { self.spec(other)? } else { self.ordered(other, most - 1)? };
        Some(format!("{side}({},{others},{})", quoted(&other.name), self.spec(column)?))
    }

    /// The first column whose values are above or not below those of this one.
    fn first_above(&self, column: &Column) -> Option<&Column> {
        let names = |other: &&Column| {
            [&other.above, &other.not_below].into_iter().flatten().any(|name| *name == column.name)
        };
        self.columns.iter().find(names)
    }

    /// The column's specification, with its NULLs.
    fn spec(&self, column: &Column) -> Option<String> {
        let values = self.ordered_spec(column)?;
        if column.nulls_follow.is_none() {
            return Some(values);
        }
        Some(format!("nulls({},{values},by({}))", column.nulls, self.order_of_nulls(column)?))
    }

    /// The specification of its values. If it depends on another column, or another one on it, the specification includes the
    /// order; and the NULLs, unless these have an order of their own.
    fn ordered_spec(&self, column: &Column) -> Option<String> {
        let names = |of: &Option<Follows>| of.as_ref().is_some_and(|of| of.column == column.name);
        let has_nulls = column.nulls_follow.is_none();
        let is_followed = |other: &Column| names(&other.follows) || (has_nulls && names(&other.nulls_follow));
        if !self.columns.iter().any(is_followed) && column.follows.is_none() {
            return column.spec(None, self.counts());
        }
        Some(format!("ranked({},{})", self.order(column)?, column.spec(Some(1.0), self.counts())?))
    }

    /// The order of a column's values: `first,correlation,nulls,links(…)`.
    fn order(&self, column: &Column) -> Option<String> {
        let (first, links) = self.links(column)?;
        Some(order(first, self.rows, &links))
    }

    /// The column at the beginning of the chain to a column, and the links from there.
    fn links<'a>(&'a self, column: &'a Column) -> Option<(&'a Column, Vec<String>)> {
        let mut chain = vec![(column, None)];
        while let Some((other, how)) = self.followed(chain[chain.len() - 1].0) {
            chain.last_mut()?.1 = Some(how);
            chain.push((other, None));
        }
        let (first, _) = chain.pop()?;
        let mut other = first;
        let mut links = Vec::with_capacity(chain.len());
        for (column, how) in chain.iter().rev() {
            links.push(link(other, column, (*how)?, self.rows));
            other = column;
        }
        Some((first, links))
    }

    /// The same of its NULLs: over NULLs of other columns, to values of one.
    fn order_of_nulls(&self, column: &Column) -> Option<String> {
        let mut chain = vec![column];
        while let Some((other, _)) = self.nulls_followed(chain[chain.len() - 1]) {
            chain.push(other);
        }
        let (first, mut links) = self.links(chain.pop()?)?;
        for column in chain.iter().rev() {
            links.push(link_of_nulls(column, self.nulls_followed(column)?));
        }
        Some(order(first, self.rows, &links))
    }
}

impl Column {
    /// Its own specification, with its NULLs, and perhaps another correlation than its own. The table has so many rows.
    fn spec(&self, correlation: Option<f64>, rows: RowCounts) -> Option<String> {
        let spec = self.values_spec(correlation, rows)?;
        let nulls = self.ranked_nulls();
        Some(if nulls > 0.0 { format!("nulls({nulls},{spec})") } else { spec })
    }
}

impl Column {
    /// The fraction of NULLs of a column whose values the fill chooses, if it is known: with a width, the column has statistics.
    fn only_nulls_spec(&self) -> Option<String> {
        let is_chosen = matches!(self.values, Values::Fill { .. }) && !self.values.has_nulls_by_fill();
        let is_known = self.width.is_some() || self.nulls > 0.0;
        (is_chosen && is_known).then(|| format!("nulls({})", self.nulls))
    }

    /// Without its NULLs.
    pub(crate) fn values_spec(&self, correlation: Option<f64>, rows: RowCounts) -> Option<String> {
        let different = |distinct: f64| {
            let distinct = different(distinct, rows, self.nulls, &common(self), &self.rooms());
            // Ranked values are made for the rows that are not NULL, unless NULLs have an order of their own; others for all rows.
            let is_hidden = correlation.is_none() || self.nulls_follow.is_some();
            if is_hidden { hidden(distinct, self.nulls) } else { distinct }
        };
        self.values.spec(correlation, different)
    }

    /// The number of different values for which each bucket of its histogram has room; none of types whose units are hardly a limit.
    fn rooms(&self) -> Vec<f64> {
        let Values::Statistics { common, bounds, .. } = &self.values else { return Vec::new() };
        let kind = match self.data_type.split('(').next().unwrap_or_default().trim() {
            "smallint" => Kind::Int2,
            "integer" => Kind::Int4,
            "bigint" => Kind::Int8,
            "date" => Kind::Date,
            "numeric" => {
                let arguments = self.data_type.split(['(', ')']).nth(1).unwrap_or_default();
                let mut numbers = arguments.split(',').map(str::trim);
                let Some(precision) = numbers.next().and_then(|text| text.parse().ok()) else {
                    return Vec::new();
                };
                let scale = numbers.next().and_then(|text| text.parse().ok()).unwrap_or_default();
                Kind::Numeric(Some(Precision { precision, scale }))
            }
            _ => return Vec::new(),
        };
        rooms(&kind, bounds, common.iter().map(|(value, _)| value))
    }
}

impl Values {
    /// Whether the fill decides on NULLs, too.
    pub(crate) fn has_nulls_by_fill(&self) -> bool {
        matches!(self, Self::Fill { why } if why == KEY || why == GENERATED)
    }

    /// `different` makes the number of different values of the estimate that a model has.
    fn spec(&self, ranked: Option<f64>, different: impl Fn(f64) -> f64) -> Option<String> {
        Some(match self {
            Self::Fill { .. } => return None,
            Self::Serial { start, step } => format!("serial({start},{step})"),
            Self::Keys { distinct, correlation, common, bounds, rows } => {
                let correlation = ranked.unwrap_or(*correlation);
                let bounds: Vec<String> = bounds.iter().map(f64::to_string).collect();
                let bounds = if bounds.is_empty() {
                    String::new()
                } else {
                    format!(",histogram({})", bounds.join(","))
                };
                let rows = if rows.is_empty() { String::new() } else { format!(",rows({})", places(rows)) };
                format!("keys({distinct},{correlation},common({}){bounds}{rows})", places(common))
            }
            Self::Statistics { distinct, correlation, common, bounds, .. } => {
                let correlation = ranked.unwrap_or(*correlation);
                let common: Vec<String> =
                    common.iter().map(|(value, share)| format!("{}*{share}", quoted(value))).collect();
                let bounds: Vec<String> = bounds.iter().map(|bound| quoted(bound)).collect();
                let distinct = different(*distinct);
                format!(
                    "statistics({distinct},{correlation},common({}),histogram({}))",
                    common.join(","),
                    bounds.join(",")
                )
            }
            Self::Letters { distinct, correlation, common, alphabet, lengths } => {
                let correlation = ranked.unwrap_or(*correlation);
                let lengths = lengths.iter().fold(String::new(), |mut text, length| {
                    let _ = write!(text, ",{length}");
                    text
                });
                let distinct = different(*distinct);
                format!(
                    "repeated({distinct},{correlation},common({}),letters({alphabet}{lengths}))",
                    places(common)
                )
            }
            Self::List { correlation, values, .. } => {
                let correlation = ranked.unwrap_or(*correlation);
                let count = values.len() as f64;
                let shares = values.iter().enumerate();
                let common: Vec<(f64, f64)> =
                    shares.map(|(at, (_, share))| ((at as f64 + 0.5) / count, *share)).collect();
                let values: Vec<String> = values.iter().map(|(value, _)| quoted(value)).collect();
                format!(
                    "repeated({count},{correlation},common({}),cycle({}))",
                    places(&common),
                    values.join(",")
                )
            }
            Self::Elements { counts, elements, others, others_distinct, .. } => {
                let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
                let listed: Vec<String> =
                    elements.iter().map(|(element, share)| format!("{}*{share}", quoted(element))).collect();
                let others = match others {
                    Others::Any => "any".to_owned(),
                    Others::Letters { alphabet, lengths } => {
                        format!("letters({alphabet},{},{})", lengths.0, lengths.1)
                    }
                    Others::Between { low, high } if *others_distinct == 0.0 => {
                        format!("uniform({},{})", quoted(low), quoted(high))
                    }
                    Others::Between { low, high } => {
                        format!("statistics(-1,0,common(),histogram({},{}))", quoted(low), quoted(high))
                    }
                };
                let (counts, listed) = (counts.join(","), listed.join(","));
                let number =
                    if *others_distinct == 0.0 { String::new() } else { format!(",{others_distinct}") };
                // As many are different as their elements make: a fixed number of arrays would have other shares of elements.
                let correlation = ranked.unwrap_or(0.0);
                format!(
                    "repeated(-1,{correlation},common(),elements(counts({counts}),listed({listed}),{others}{number}))"
                )
            }
            Self::Ranges { of, empty, unbounded, low, lengths, .. } => {
                let ranges = Ranges { of, empty: *empty, unbounded: *unbounded, low, lengths };
                ranges.spec(ranked.unwrap_or(0.0))?
            }
            Self::Any { distinct, common, lengths } => {
                let correlation = ranked.unwrap_or(0.0);
                let distinct = different(*distinct);
                let values = lengths.map_or_else(
                    || "any".to_owned(),
                    |(least, greatest)| format!("random({least},{greatest})"),
                );
                format!("repeated({distinct},{correlation},common({}),{values})", places(common))
            }
        })
    }
}

fn places(common: &[(f64, f64)]) -> String {
    let common: Vec<String> = common.iter().map(|(place, share)| format!("{place}*{share}")).collect();
    common.join(",")
}

/// The value in single quotes, so that commas, parentheses and stars belong to it.
pub(crate) fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Bytes;
    use crate::make::Privacy;
    use crate::testing::{column, facts, strings};

    #[test]
    fn specifications_are_readable_by_what_fills() {
        let column = |name: &str, nulls, values| Column {
            name: name.to_owned(),
            data_type: "text".to_owned(),
            nulls,
            width: None,
            not_below: None,
            above: None,
            gaps: Vec::new(),
            follows: None,
            nulls_follow: None,
            values,
        };
        let list = vec![("it's, (a) star * 2".to_owned(), 0.7), ("z".to_owned(), 0.3)];
        let table = Table {
            name: "public.t".to_owned(),
            rows: 10,
            sampled: 30_000,
            analyzed: None,
            changed: 0,
            bytes: Bytes::default(),
            columns: vec![
                column("id", 0.0, Values::Fill { why: "a key".to_owned() }),
                column("a", 0.1, Values::List { correlation: 0.5, values: list, kept: false }),
                column(
                    "b",
                    0.0,
                    Values::Letters {
                        distinct: -0.5,
                        correlation: 0.0,
                        common: vec![(0.25, 0.1)],
                        alphabet: "lower".to_owned(),
                        lengths: vec![3, 9],
                    },
                ),
                column("c", 0.0, Values::Any { distinct: 7.0, common: Vec::new(), lengths: None }),
            ],
        };
        let specs = table.specs();
        assert_eq!(specs.len(), 3);
        assert!(specs[0].starts_with("a=nulls(0.1,repeated(2,0.5,common(0.25*0.7,0.75*0.3),"));
        for spec in specs {
            let parsed: rowgen::ColumnSpec = spec.parse().unwrap();
            parsed.spec.values(&rowgen::Kind::Text, None).unwrap();
        }
    }

    #[test]
    fn columns_above_the_same_one_are_above_the_value_that_it_gets() {
        let statistics =
            Statistics { n_distinct: -1.0, bounds: strings(&["0", "500", "900"]), ..Statistics::default() };
        let above = |name: &str, is_strict| ColumnRole::Above { column: name.to_owned(), is_strict };
        let columns = [
            ("a", ColumnRole::Free),
            ("b", above("a", false)),
            ("c", above("b", true)),
            ("d", above("a", true)),
        ];
        let columns = columns.map(|(name, role)| column(name, Kind::Int4, role, statistics.clone()));
        let facts = facts(10_000, columns.to_vec());
        let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        let specs = model.tables[0].specs();
        for (spec, begin) in specs.iter().zip([
            "a=lesser('b',statistics(",
            "b=greater('a',statistics(",
            "c=above('b',greater('a',statistics(",
            "d=above('a',lesser('b',statistics(",
        ]) {
            assert!(spec.starts_with(begin), "{spec}");
        }
    }
}
