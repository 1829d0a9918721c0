//! A server's knowledge of its tables: catalogs and statistics, with original values.

use rowgen::Kind;

use crate::estimate::RowCounts;
use crate::file::Bytes;
use crate::locale::Locale;

/// All tables of a model, before anything is replaced.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The beginning of `version()`: `PostgreSQL 18.0`.
    pub server: String,
    /// When the facts were read, by the server's clock.
    pub captured: String,
    /// Statements that make the schema.
    pub ddl: String,
    /// The locale of the database; none if it is not known.
    pub locale: Option<Locale>,
    /// The tables, in the order of their names.
    pub tables: Vec<TableFacts>,
    /// Whether tables were queried for aggregates.
    pub aggregates: bool,
    /// Facts that the role could not see, and why: a sentence each.
    pub unseen: Vec<String>,
    /// Rows that a copy does not have where the original has them, and why: a sentence each.
    pub elsewhere: Vec<String>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct TableFacts {
    /// `schema.name`.
    pub name: String,
    /// The same as SQL has it, with quotes where they are needed; empty if the facts are those of a model.
    pub sql_name: String,
    /// `pg_class.reltuples`.
    pub rows: u64,
    /// Rows that it had at least when its statistics were made, at most `rows`.
    pub analyzed_rows: u64,
    /// Rows that ANALYZE samples: 300 times the greatest statistics target of the columns.
    pub sampled: u64,
    /// Bytes on disk.
    pub bytes: Bytes,
    /// When it was last analysed, if ever.
    pub analyzed: Option<String>,
    /// Rows that changed since then (`n_mod_since_analyze`); of a partitioned table, all rows of partitions that were analyzed since then.
    pub changed: u64,
    /// Whether row-level security applies to the role, and so hides statistics from it.
    pub row_security: bool,
    /// Columns that the role may not read.
    pub denied: Vec<String>,
    /// Columns in the table's order.
    pub columns: Vec<ColumnFacts>,
    /// Dependences between pairs of its columns.
    pub pairs: Vec<Pair>,
}

impl TableFacts {
    pub(crate) fn counts(&self) -> RowCounts {
        RowCounts { all: self.rows, sampled: self.sampled }
    }

    /// The number of rows that stand for `k` rows: shares in statistics are of the rows at the time of ANALYZE, which were perhaps fewer.
    pub fn k(&self, k: u32) -> u32 {
        if self.analyzed_rows >= self.rows {
            return k;
        }
        let scaled = u128::from(k) * u128::from(self.rows);
        u32::try_from(scaled.div_ceil(u128::from(self.analyzed_rows.max(1)))).unwrap_or(u32::MAX)
    }
}

/// Two columns that depend on each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Their names.
    pub columns: (String, String),
    /// The kind of dependence.
    pub joint: Joint,
}

/// How two columns depend on each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Joint {
    /// Combinations of values with their shares of all rows; none stands for NULL.
    Common(Vec<(Option<String>, Option<String>, f64)>),
    /// Values of the first column (none for NULL) in strata of the second one.
    Strata {
        /// Where strata end, as fractions of the rows that are not NULL; the last one ends at 1.
        cuts: Vec<f64>,
        /// Shares of all rows that have a value and lie in a stratum (none: NULL).
        shares: Vec<(Option<String>, Option<usize>, f64)>,
    },
    /// Strata of both columns.
    Parts {
        /// Where the strata of each column end, as fractions of the rows that are not NULL; the last one ends at 1.
        cuts: (Vec<f64>, Vec<f64>),
        /// Shares of all rows that lie in a stratum of each (none: NULL).
        shares: Vec<(Option<usize>, Option<usize>, f64)>,
    },
    /// Spearman's correlation of their ranks, -1 to 1, where neither is NULL.
    Rank(f64),
    /// Degree to which the first column determines the second one, as in
    /// `pg_stats_ext.dependencies`.
    Dependency(f64),
    /// Number of different combinations, as in `pg_stats_ext.n_distinct`, but never relative to the
    /// rows.
    Distinct(f64),
}

/// A column.
#[derive(Clone, Debug, Default)]
pub struct ColumnFacts {
    /// Unquoted name.
    pub name: String,
    /// Its type, as SQL has it.
    pub data_type: String,
    /// The kind of values, if pgrig knows the type.
    pub kind: Option<Kind>,
    /// Constraint or default that determines its values besides statistics.
    pub role: ColumnRole,
    /// Its row of `pg_stats`, if there is one.
    pub statistics: Option<Statistics>,
    /// Quantiles of its texts' lengths in characters, at equal distances, if they were asked for.
    pub lengths: Vec<usize>,
    /// The classes of characters in its texts, if they were asked for.
    pub characters: Option<String>,
    /// For a foreign key: numbers of rows, each with the fraction of the keys to which so many rows
    /// refer. Keys that are most common values are not counted.
    pub rows_per_key: Vec<(f64, f64)>,
}

/// Constraint or default that determines a column's values besides its statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ColumnRole {
    /// No constraint: only its statistics determine its values.
    #[default]
    Free,
    /// A unique key of its own.
    Unique,
    /// It is part of a key, or takes its values from a sequence.
    Key,
    /// A foreign key to another table.
    Reference {
        /// The table that it refers to, `schema.name`.
        table: String,
        /// The column there.
        column: String,
    },
    /// A foreign key that makes a unique key together with another column, which numbers the rows of
    /// each referenced row: lines of an order.
    Counted {
        /// The table that it refers to, `schema.name`.
        table: String,
        /// The column that numbers the rows.
        by: String,
    },
    /// A foreign key that makes a unique key together with another foreign key.
    Paired {
        /// The table that it refers to, `schema.name`.
        table: String,
        /// The column there.
        column: String,
    },
    /// A CHECK says that it is not below another column.
    Above {
        /// The other column.
        column: String,
        /// Whether the two must differ.
        is_strict: bool,
    },
    /// The server computes it.
    Generated,
    /// Other constraints; the text says why its statistics are not used.
    Constrained(String),
}

/// A row of `pg_stats`.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Fraction of NULLs.
    pub null_frac: f64,
    /// Number of different values, as in PostgreSQL: below 0 relative to the number of rows.
    pub n_distinct: f64,
    /// Average width, bytes.
    pub avg_width: u32,
    /// None for types without an order.
    pub correlation: Option<f64>,
    /// Most common values as text, with their frequencies.
    pub common: Vec<(String, f64)>,
    /// Histogram bounds as text.
    pub bounds: Vec<String>,
    /// Most common elements of arrays as text, with the share of the arrays that are not NULL.
    pub elements: Vec<(String, f64)>,
    /// Histogram bounds of the number of different elements.
    pub element_counts: Vec<f64>,
    /// Those of a column of ranges.
    pub ranges: Option<RangeStatistics>,
}

/// Statistics of a column of ranges; `pg_stats` has them from PostgreSQL 17 on.
#[derive(Clone, Debug, Default)]
pub struct RangeStatistics {
    /// Fraction of empty ranges among those that are not NULL.
    pub empty: f64,
    /// Quantiles of the lower and of the upper bounds, as ranges.
    pub bounds: Vec<String>,
    /// Quantiles of the lengths, as the type's `subtype_diff` gives them; infinite where a bound is left out.
    pub lengths: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use rowgen::Kind;

    use super::*;
    use crate::file::{Model, Values};
    use crate::make::Privacy;
    use crate::testing::{column, facts};

    #[test]
    fn k_is_measured_with_the_rows_that_were_analyzed() {
        let common = [("1000", 0.6), ("5000", 0.1), ("9000", 0.3)];
        let common = common.map(|(value, share)| (value.to_owned(), share)).to_vec();
        let statistics = Statistics { n_distinct: 3.0, common, ..Statistics::default() };
        let mut facts = facts(10_000, vec![column("c", Kind::Int4, ColumnRole::Free, statistics)]);
        let mut values = |analyzed: u64, wanted: u32| {
            facts.tables[0].analyzed_rows = analyzed;
            assert_eq!(facts.tables[0].k(20), wanted);
            let mut model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
            assert_eq!(model.k, 20);
            model.tables.remove(0).columns.remove(0).values
        };
        // A tenth of the rows has 5000.
        for (analyzed, wanted, is_there) in [(10_000, 20, true), (300, 667, true), (100, 2_000, false)] {
            let Values::Statistics { common, .. } = values(analyzed, wanted) else { panic!() };
            assert_eq!(common.iter().any(|(value, _)| value == "5000"), is_there, "{analyzed}: {common:?}");
        }
        for (analyzed, wanted) in [(19, 10_527), (0, 200_000)] {
            assert!(matches!(values(analyzed, wanted), Values::Fill { .. }));
        }
    }
}
