//! Candidates between the constants in the bounds of partitions, for keys such as `date_trunc('month', at)`,
//! `extract(year from at)` and `id / 1000`.

use std::collections::BTreeSet;

use rowgen::Kind;

use super::judge::undone;
use super::rule::Rule;
use super::{Sampling, Together};
use crate::error::CatalogError;
use crate::mentioned::literals_in;
use crate::slot::Slot;

/// Number of values in all, about; and most and fewest between two constants.
const VALUES: usize = 2_000;
const MOST: usize = 500;
const FEWEST: usize = 2;
/// Most constants of the key's expression by which those of the bounds are multiplied.
const FACTORS: usize = 8;

impl Sampling<'_> {
    /// Values of the column between the constants in the bounds of partitions, if the server judges these bounds; of unique keys also
    /// between 0 and the constants in other conditions, so that many values differ.
    pub(super) async fn between(
        &self,
        slot: &Slot<'_>,
        together: &Together<'_>,
    ) -> Result<Vec<String>, CatalogError> {
        let is_judged = |rule: &&&Rule<'_>| !rule.is_kept && (together.has_keys || rule.is_of_bounds());
        let judged: Vec<&&Rule<'_>> = together.rules.iter().filter(is_judged).collect();
        let mut constants: Vec<String> =
            judged.iter().flat_map(|rule| literals_in(rule.definition)).collect();
        if constants.is_empty() {
            return Ok(Vec::new());
        }
        let mut factors = vec![1.0];
        if judged.iter().any(|rule| rule.is_of_bounds()) {
            factors.extend(self.factors(&constants));
        } else {
            constants.push("0".to_owned());
        }
        match &slot.kind {
            Kind::Date => self.times(slot, &constants, ("date", "timestamp")).await,
            Kind::Timestamp => self.times(slot, &constants, ("timestamp", "timestamp")).await,
            Kind::TimestampTz => self.times(slot, &constants, ("timestamptz", "timestamptz")).await,
            Kind::Int2 | Kind::Int4 | Kind::Int8 => {
                let numbers = numbers(&constants, &factors);
                let texts = numbers.iter().map(|number| format!("{number:.0}")).collect();
                self.readable(slot.name(), texts).await
            }
            Kind::Numeric(_) | Kind::Float4 | Kind::Float8 => {
                let numbers = numbers(&constants, &factors);
                let texts = numbers.iter().map(|number| format!("{number:.2}")).collect();
                self.readable(slot.name(), texts).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Times between the constants that are times, years or months, and up to a month before and after them. The types are that
    /// of the times, and one to which intervals can be added.
    async fn times(
        &self,
        slot: &Slot<'_>,
        constants: &[String],
        (sql, stamp): (&str, &str),
    ) -> Result<Vec<String>, CatalogError> {
        let mut texts = constants.to_vec();
        texts.extend(constants.iter().flat_map(|constant| first_days(constant)));
        let known = self.readable(slot.name(), texts).await?;
        let parts = i32::try_from(parts(known.len())).unwrap_or(1);
        // Some are on the first day, for lists of days.
        let query = format!(
            "WITH known AS (
                 SELECT DISTINCT value::{sql}::{stamp} AS at FROM unnest($1::text[]) AS of (value) WHERE isfinite(value::{sql})
             ), gaps AS (
                 SELECT at AS low, coalesce(lead(at) OVER (ORDER BY at), at + interval '1 month') AS high, 1 AS every FROM known
                 UNION ALL SELECT min(at) - interval '1 month', min(at), 1 FROM known
                 UNION ALL SELECT at, at + interval '1 day', 8 FROM known
             )
             SELECT coalesce(array_agg(DISTINCT (low + (high - low) * ((part + 0.5) / $2::int)::float8)::{sql}::text), '{{}}')
               FROM gaps CROSS JOIN generate_series(0, $2::int - 1) AS part
              WHERE low IS NOT NULL AND part % every = 0"
        );
        let answer = undone(self.client, self.client.query_one(&query, &[&known, &parts])).await?;
        Ok(answer.map_or_else(|_| Vec::new(), |row| row.get(0)))
    }

    /// The numbers in the expression of the partition key: those among the constants that the bounds of all partitions have.
    fn factors(&self, constants: &[String]) -> Vec<f64> {
        let leaves = self.info.partitions.as_deref().unwrap_or_default();
        let bounds = leaves.iter().filter_map(|leaf| leaf.bound.as_deref());
        let of_each = bounds.map(|bound| literals_in(bound).into_iter().collect::<BTreeSet<String>>());
        let common = of_each.reduce(|some, others| some.intersection(&others).cloned().collect());
        let common = common.unwrap_or_else(|| constants.iter().cloned().collect());
        let numbers = common.iter().filter_map(|text| text.parse::<f64>().ok());
        numbers.filter(|number| number.is_finite() && *number > 1.0).take(FACTORS).collect()
    }
}

/// Number of values between two of so many constants.
fn parts(constants: usize) -> usize {
    (VALUES / constants.max(1)).clamp(FEWEST, MOST)
}

/// The day that a year or a month begins with, and the day after its end: of `2026`, `202601` and `2026-01`.
fn first_days(constant: &str) -> Vec<String> {
    let digits = if constant.len() == 7 { constant.replacen('-', "", 1) } else { constant.to_owned() };
    let Ok(number) = digits.parse::<u32>() else { return Vec::new() };
    let day = |year: u32, month: u32| format!("{year:04}-{month:02}-01");
    let (year, month) = (number / 100, number % 100);
    match (digits.len(), month) {
        (4, _) => vec![day(number, 1), day(number + 1, 1)],
        (6, 1..=11) => vec![day(year, month), day(year, month + 1)],
        (6, 12) => vec![day(year, 12), day(year + 1, 1)],
        _ => Vec::new(),
    }
}

/// The numbers among the constants, each times each factor, and numbers between, before and after them.
fn numbers(constants: &[String], factors: &[f64]) -> Vec<f64> {
    let bounds =
        constants.iter().filter_map(|text| text.parse::<f64>().ok()).filter(|bound| bound.is_finite());
    let mut known: Vec<f64> =
        bounds.flat_map(|bound| factors.iter().map(move |factor| bound * factor)).collect();
    known.sort_by(f64::total_cmp);
    known.dedup();
    let (Some(&first), Some(&last)) = (known.first(), known.last()) else { return Vec::new() };
    let gaps = known.len().saturating_sub(1).max(1) as f64;
    let beyond = ((last - first) / gaps).max(10.0);
    known.insert(0, first - beyond);
    known.push(last + beyond);
    let parts = parts(known.len());
    let between = |gap: &[f64]| {
        let (low, length) = (gap[0], gap[1] - gap[0]);
        (0..parts).map(move |part| low + length * part as f64 / parts as f64).collect::<Vec<f64>>()
    };
    known.windows(2).flat_map(between).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_and_months_have_first_days() {
        for (constant, days) in [
            ("2026", vec!["2026-01-01", "2027-01-01"]),
            ("202601", vec!["2026-01-01", "2026-02-01"]),
            ("2026-12", vec!["2026-12-01", "2027-01-01"]),
            ("202613", vec![]),
            ("month", vec![]),
            ("2026-01-01", vec![]),
            ("100", vec![]),
        ] {
            assert_eq!(first_days(constant), days, "{constant}");
        }
    }

    #[test]
    fn numbers_lie_between_the_constants_times_the_factors() {
        let constants = ["0", "5", "100", "1000"].map(str::to_owned);
        let numbers = numbers(&constants, &[1.0, 1_000.0]);
        for (low, high) in [(-999.0, 0.0), (0.0, 5.0), (5.0, 100.0), (1_000.0, 5_000.0), (5_000.0, 100_000.0)]
        {
            assert!(numbers.iter().any(|number| (low..high).contains(number)), "{low} to {high}");
        }
    }
}
