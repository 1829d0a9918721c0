//! Measures how faithful a copy is: compares statistics of two databases, taking the variation of
//! ANALYZE into account.

mod arrays;

use rowgen::Kind;

use crate::facts::{ColumnFacts, ColumnRole, Facts, Statistics, TableFacts};
use crate::file::Bytes;
use crate::make::{is_code, is_text};

/// Standard deviations that the median of the copy may lie off.
const DEVIATIONS: f64 = 3.0 * std::f64::consts::SQRT_2;
/// Difference that counts as equal: relative to the value, but absolute for correlations and
/// positions.
const EQUAL: f64 = 0.01;

/// Statistics of a copy beside those of the original.
#[derive(Clone, Debug)]
pub struct Fidelity {
    /// All fields that both databases have; of arrays of frequencies, one for each rank, in succession.
    pub fields: Vec<Field>,
    /// Number of fields that are NULL in both databases.
    pub nulls: usize,
    /// Sizes of the tables that both have.
    pub sizes: Vec<Sizes>,
    /// Tables and columns that the copy lacks.
    pub missing: Vec<String>,
    /// The original compared with itself: ANALYZEs against other ANALYZEs, judged in the same way.
    /// Number of fields within their tolerance, and of all fields, as in [`counts`](Self::counts). None with too few ANALYZEs.
    pub itself: Option<(f64, usize)>,
}

/// One field of `pg_stats`.
#[derive(Clone, Debug)]
pub struct Field {
    /// `schema.table.column`.
    pub column: String,
    /// Name of the field.
    pub name: &'static str,
    /// The rank (from 1) of the frequency that this is, if the field is an array of frequencies.
    pub rank: Option<usize>,
    /// The original's value: the mean over its ANALYZEs.
    pub original: f64,
    /// The copy's value: the median over its ANALYZEs.
    pub copy: f64,
    /// Most by which the copy's value may differ.
    pub tolerance: f64,
    /// Whether the schema determines it, so that every copy has the same value.
    pub(crate) is_fixed: bool,
    /// Whether a model promises it: of tables with fewer than k rows a model has only the number of
    /// rows.
    pub(crate) is_promised: bool,
}

/// Sizes of one table.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// `schema.table`.
    pub table: String,
    /// Rows of original and copy.
    pub rows: (u64, u64),
    /// Bytes of original and copy.
    pub bytes: (Bytes, Bytes),
}

impl Field {
    /// Whether the copy's value is within the tolerance.
    pub fn is_within(&self) -> bool {
        (self.copy - self.original).abs() <= self.tolerance
    }

    /// Whether it counts: the schema leaves it open, and a model promises it.
    pub fn counts(&self) -> bool {
        !self.is_fixed && self.is_promised
    }

    /// Whether both are of the same field of `pg_stats`.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.name == other.name && self.column == other.column
    }

    /// How many fields of `pg_stats` are within their tolerance, and how many there are. An array of frequencies counts as one
    /// field: with the share of its ranks that are within theirs.
    pub fn within(fields: &[&Self]) -> (f64, usize) {
        let share = |ranks: &[&Self]| {
            ranks.iter().filter(|rank| rank.is_within()).count() as f64 / ranks.len() as f64
        };
        let shares = fields.chunk_by(|one, next| one.is_beside(next)).map(share);
        shares.fold((0.0, 0), |(within, all), share| (within + share, all + 1))
    }
}

impl Fidelity {
    /// Compares. Each of the slices has the facts after one or more ANALYZEs; neither is empty.
    ///
    /// A field's tolerance is 3·√2 standard deviations over the ANALYZEs of the original (of the
    /// copy, if the original was analyzed only once), but at least the variation of random samples
    /// of as many rows, and at least 1 %. The same holds of the frequency at each rank of an array. Of tables with fewer than
    /// `k` rows, nothing is promised.
    pub fn of(original: &[Facts], copy: &[Facts], k: u32) -> Self {
        let mut fidelity = Self::empty();
        for (at, table) in original[0].tables.iter().enumerate() {
            let Some(other) = copy[0].tables.iter().position(|other| other.name == table.name) else {
                fidelity.missing.push(table.name.clone());
                continue;
            };
            let last = &copy[copy.len() - 1].tables[other];
            fidelity.sizes.push(Sizes {
                table: table.name.clone(),
                rows: (table.rows, last.rows),
                bytes: (table.bytes, last.bytes),
            });
            let originals: Vec<&TableFacts> =
                original.iter().filter_map(|facts| facts.tables.get(at)).collect();
            let copies: Vec<&TableFacts> = copy.iter().filter_map(|facts| facts.tables.get(other)).collect();
            for column in &table.columns {
                fidelity.column(&table.name, column, &originals, &copies, k);
            }
        }
        if original.len() > 5 {
            let (some, others) = original.split_at(original.len() / 2);
            let own = Self::of_noise(others, some, k);
            fidelity.itself = Some(own.counts());
        }
        fidelity
    }

    fn empty() -> Self {
        Self { fields: Vec::new(), nulls: 0, sizes: Vec::new(), missing: Vec::new(), itself: None }
    }

    /// The comparison without that of the original with itself.
    fn of_noise(original: &[Facts], copy: &[Facts], k: u32) -> Self {
        let few = &original[..original.len().min(5)];
        let mut own = Self::empty();
        for (at, table) in few[0].tables.iter().enumerate() {
            let originals: Vec<&TableFacts> =
                original.iter().filter_map(|facts| facts.tables.get(at)).collect();
            let copies: Vec<&TableFacts> = copy.iter().filter_map(|facts| facts.tables.get(at)).collect();
            for column in &table.columns {
                own.column(&table.name, column, &originals, &copies, k);
            }
        }
        own
    }

    /// Number of fields within their tolerance, and of all fields, as in [`Field::within`]; without those that the schema
    /// determines, or that no model promises.
    pub fn counts(&self) -> (f64, usize) {
        self.count(Field::counts)
    }

    /// The same of the fields that no model promises.
    pub fn not_promised(&self) -> (f64, usize) {
        self.count(|field| !field.is_fixed && !field.is_promised)
    }

    /// The same of the fields that the schema determines.
    pub fn fixed(&self) -> (f64, usize) {
        self.count(|field| field.is_fixed)
    }

    fn count(&self, is_counted: impl Fn(&Field) -> bool) -> (f64, usize) {
        let counted: Vec<&Field> = self.fields.iter().filter(|field| is_counted(field)).collect();
        Field::within(&counted)
    }

    fn column(
        &mut self,
        table: &str,
        column: &ColumnFacts,
        originals: &[&TableFacts],
        copies: &[&TableFacts],
        k: u32,
    ) {
        let is_promised = originals[0].rows >= u64::from(k);
        let of = |tables: &[&TableFacts]| -> Vec<Statistics> {
            let statistics = |table: &&TableFacts| {
                table.columns.iter().find(|other| other.name == column.name)?.statistics.clone()
            };
            tables.iter().filter_map(statistics).collect()
        };
        let (before, after) = (of(originals), of(copies));
        let name = format!("{table}.{}", column.name);
        if before.is_empty() {
            return;
        }
        if after.is_empty() {
            self.missing.push(name);
            return;
        }
        // A model does not know kinds; the copy does.
        let same = copies[0].columns.iter().find(|other| other.name == column.name);
        let column = same.filter(|_| column.kind.is_none()).unwrap_or(column);
        let rows = originals[0].rows.min(copies[0].rows).max(1) as f64;
        let sides = Sides {
            column: &name,
            before: &before,
            after: &after,
            rows: (originals[0].rows, copies[0].rows),
            sampled: rows.min(originals[0].sampled as f64),
            is_promised,
            is_of_model: originals[0].sql_name.is_empty(),
        };
        for field in &FIELDS {
            let values = |all: &[Statistics]| -> Vec<f64> { all.iter().filter_map(field.value).collect() };
            let (mut ours, mut theirs) = (values(&before), values(&after));
            if ours.is_empty() || theirs.is_empty() {
                self.nulls += usize::from(ours.is_empty() && theirs.is_empty());
                continue;
            }
            if field.name == "n_distinct" {
                alike(&mut ours, sides.rows.0, &mut theirs, sides.rows.1);
            }
            let compared = sides.field(field.name, None, (&ours, theirs), field.scale);
            self.fields.push(Field { is_fixed: field.is_fixed(column), ..compared });
        }
        // Codes are replaced: their numbers say nothing.
        let original = ColumnFacts { statistics: before.first().cloned(), ..column.clone() };
        let is_replaced = is_code(&original, originals[0].rows, k);
        let is_number = |kind: &&Kind| kind.units().is_some() && !is_text(kind) && !is_replaced;
        self.frequencies(&sides);
        self.histogram(&sides, column.kind.as_ref().filter(is_number));
        self.elements(&sides);
        self.ranges(&sides, column.kind.as_ref());
    }
}

/// A column's statistics after the ANALYZEs of both databases.
#[derive(Clone, Copy)]
struct Sides<'a> {
    column: &'a str,
    before: &'a [Statistics],
    after: &'a [Statistics],
    /// Rows of original and copy.
    rows: (u64, u64),
    /// Rows that ANALYZE reads.
    sampled: f64,
    is_promised: bool,
    /// Whether the original is a model, which lacks some statistics that the original had.
    is_of_model: bool,
}

impl Sides<'_> {
    /// The field with these values after each ANALYZE.
    fn field(
        &self,
        name: &'static str,
        rank: Option<usize>,
        (ours, theirs): (&[f64], Vec<f64>),
        scale: Scale,
    ) -> Field {
        let original = mean(ours);
        let deviation = if ours.len() > 1 { deviation(ours) } else { deviation(&theirs) };
        let drawn = match scale {
            Scale::Share => ((original * (1.0 - original)).max(0.0) / self.sampled.max(1.0)).sqrt(),
            Scale::Place | Scale::Any => 0.0,
        };
        let least = if matches!(scale, Scale::Place) { EQUAL } else { EQUAL * original.abs() };
        Field {
            column: self.column.to_owned(),
            name,
            rank,
            original,
            copy: median(theirs),
            tolerance: (DEVIATIONS * deviation.max(drawn)).max(least),
            is_fixed: false,
            is_promised: self.is_promised,
        }
    }
}

/// How a field with one value is read and judged.
struct Reading {
    name: &'static str,
    value: fn(&Statistics) -> Option<f64>,
    scale: Scale,
}

/// The scale of a field's value.
#[derive(Clone, Copy)]
enum Scale {
    /// A share of the rows.
    Share,
    /// Between -1 and 1.
    Place,
    /// Any number.
    Any,
}

const FIELDS: [Reading; 5] = [
    Reading { name: "null_frac", value: |of| Some(of.null_frac), scale: Scale::Share },
    Reading { name: "n_distinct", value: distinct, scale: Scale::Any },
    Reading { name: "avg_width", value: |of| Some(f64::from(of.avg_width)), scale: Scale::Any },
    Reading { name: "correlation", value: |of| of.correlation, scale: Scale::Place },
    Reading {
        name: "range_empty_frac",
        value: |of| of.ranges.as_ref().map(|ranges| ranges.empty),
        scale: Scale::Share,
    },
];

/// Number of different values relative to the rows, so that tables of different sizes are
/// comparable where that number grows with the rows.
fn distinct(of: &Statistics) -> Option<f64> {
    (of.n_distinct != 0.0).then_some(of.n_distinct)
}

/// PostgreSQL says how many values differ relative to the rows where they exceed a tenth of these, and
/// else absolutely. Of a column about there, one of two samples may say the one, and the next the
/// other: then all numbers become relative.
fn alike(ours: &mut [f64], our_rows: u64, theirs: &mut [f64], their_rows: u64) {
    let is_mixed = ours.iter().chain(&*theirs).any(|distinct| *distinct < 0.0)
        && ours.iter().chain(&*theirs).any(|distinct| *distinct > 0.0);
    if !is_mixed {
        return;
    }
    for (values, rows) in [(ours, our_rows), (theirs, their_rows)] {
        for distinct in values.iter_mut().filter(|distinct| **distinct > 0.0) {
            *distinct = -*distinct / rows.max(1) as f64;
        }
    }
}

impl Reading {
    /// Whether the schema determines the field: the width of types with a fixed length, and the
    /// number of values of a unique column.
    fn is_fixed(&self, column: &ColumnFacts) -> bool {
        let is_unique = column.role == ColumnRole::Unique;
        match self.name {
            "avg_width" => column.kind.as_ref().is_some_and(Kind::has_fixed_width),
            "n_distinct" => is_unique,
            _ => false,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn facts(null_frac: f64, correlation: f64, rows: u64) -> Facts {
        let statistics = Statistics {
            null_frac,
            n_distinct: -0.5,
            avg_width: 4,
            correlation: Some(correlation),
            common: vec![("1".to_owned(), 0.2)],
            bounds: (0..=100).map(|bound| (bound * 10).to_string()).collect(),
            ..Statistics::default()
        };
        testing::facts(rows, vec![testing::column("c", Kind::Int4, ColumnRole::Free, statistics)])
    }

    #[test]
    fn a_copy_may_differ_as_much_as_analyze_does() {
        let noise = |by: f64| facts(0.3 + by, 0.5, 1_000_000);
        let originals: Vec<Facts> = (-5..=5).map(|step| noise(f64::from(step) * 0.001)).collect();
        let close = Fidelity::of(&originals, &[noise(0.008)], 20);
        assert!(close.fields.iter().all(Field::is_within), "{:#?}", close.fields);
        assert_eq!(close.itself, Some((6.0, 6)));
        let far = Fidelity::of(&originals, &[noise(0.05)], 20);
        let wrong: Vec<&str> =
            far.fields.iter().filter(|field| !field.is_within()).map(|field| field.name).collect();
        assert_eq!(wrong, ["null_frac"]);
        assert_eq!(
            Fidelity::of(&originals, &[noise(0.05)], 2_000_000).not_promised(),
            (5.0, 6),
            "fewer rows than k"
        );
        assert_eq!(far.counts(), (5.0, 6));
        assert_eq!(far.fixed(), (1.0, 1), "the width of an integer is the schema's");
        assert_eq!(far.nulls, 5, "of arrays and of ranges");
    }

    #[test]
    fn what_the_copy_lacks_is_named() {
        let mut copy = facts(0.3, 0.5, 10);
        copy.tables[0].columns[0].statistics = None;
        assert_eq!(Fidelity::of(&[facts(0.3, 0.5, 10)], &[copy], 1).missing, ["public.t.c"]);
        let none = Facts { tables: Vec::new(), ..facts(0.3, 0.5, 10) };
        assert_eq!(Fidelity::of(&[facts(0.3, 0.5, 10)], &[none], 1).missing, ["public.t"]);
    }

    #[test]
    fn numbers_of_different_values_compare_across_a_tenth_of_the_rows() {
        let with = |distinct: f64| {
            let mut of = facts(0.3, 0.5, 100_000);
            of.tables[0].columns[0].statistics.as_mut().unwrap().n_distinct = distinct;
            of
        };
        let is_within = |copy: f64| {
            let found = Fidelity::of(&[with(-0.1003)], &[with(copy)], 20);
            found.fields.iter().find(|field| field.name == "n_distinct").unwrap().is_within()
        };
        assert!(is_within(9_990.0) && !is_within(9_000.0));
    }
}
