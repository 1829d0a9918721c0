//! Ranges from the quantiles in a model.

use rowgen::Kind;

use crate::lower::quoted;

/// Number of different ranges that are made.
const COUNT: u32 = 1_000;
/// Multiples of these, without their whole part, are spread evenly, and independently of each other.
const SPREADS: [f64; 3] = [0.618_033_988_749_895, 0.754_877_666_246_693, 0.569_840_290_998_053];

/// Values of a column of ranges, as a model has them.
pub(crate) struct Ranges<'a> {
    pub(crate) of: &'a str,
    pub(crate) empty: f64,
    pub(crate) unbounded: (f64, f64),
    pub(crate) low: &'a [String],
    pub(crate) lengths: &'a [i64],
}

impl Ranges<'_> {
    /// The type of the bounds.
    fn element(&self) -> Option<Kind> {
        let kinds =
            [Kind::Int4, Kind::Int8, Kind::Numeric(None), Kind::Date, Kind::Timestamp, Kind::TimestampTz];
        kinds.into_iter().find(|kind| kind.sql() == self.of)
    }

    /// The lower bounds in units.
    fn units(&self, element: &Kind) -> Option<Vec<i64>> {
        self.low.iter().map(|low| element.read_units(low)).collect()
    }

    /// # Errors
    /// If the quantiles are none of the type, or do not ascend.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some(element) = self.element() else {
            return Err(
                "\"of\" must be int, bigint, numeric, date, timestamp or timestamp with time zone".to_owned()
            );
        };
        let shares = [self.empty, self.unbounded.0, self.unbounded.1];
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
            return Err("\"empty\" and \"unbounded\" must be fractions from 0 to 1".to_owned());
        }
        if self.empty >= 1.0 {
            return Ok(());
        }
        if !self.units(&element).is_some_and(|low| !low.is_empty() && low.is_sorted()) {
            return Err(format!("\"low\" must have values of {} in ascending order", self.of));
        }
        let is_unbounded = self.unbounded.1 >= 1.0 && self.lengths.is_empty();
        let are_lengths = self.lengths.is_sorted() && self.lengths.first().is_some_and(|length| *length >= 0);
        if is_unbounded || are_lengths {
            Ok(())
        } else {
            Err("\"lengths\" must have numbers in ascending order, 0 or more".to_owned())
        }
    }

    /// The specification; none if the model is wrong.
    pub(crate) fn spec(&self, correlation: f64) -> Option<String> {
        let mut values = if self.empty < 1.0 { self.texts()? } else { Vec::new() };
        let mut common = String::new();
        if self.empty > 0.0 {
            values.insert(0, "empty".to_owned());
            common = format!("{}*{}", 0.5 / values.len() as f64, self.empty);
        }
        let count = values.len();
        let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
        Some(format!("repeated({count},{correlation},common({common}),cycle({}))", values.join(",")))
    }

    /// Ranges whose lower bounds and lengths have the quantiles.
    fn texts(&self) -> Option<Vec<String>> {
        let element = self.element()?;
        let low = self.units(&element)?;
        let most = element.extent()?.high;
        let (step, step_of_lengths) = (step(&low), step(self.lengths).max(1));
        let shortest = self.lengths.first().copied().unwrap_or_default();
        let (first, bound) = (*low.first()?, |units: i64| bound(&element, units));
        let texts = (0..COUNT).map(|number| {
            let place = f64::from(number) + 0.5;
            let [of_length, of_low, of_high] = SPREADS.map(|spread| (place * spread).fract());
            let at = quantile(&low, place / f64::from(COUNT));
            let begin = at - at.saturating_sub(first).rem_euclid(step.max(1));
            let length = quantile(self.lengths, of_length);
            let length = length - length.saturating_sub(shortest).rem_euclid(step_of_lengths);
            let end = begin.saturating_add(length.max(1)).min(most).max(begin.saturating_add(1));
            let has_low = of_low >= self.unbounded.0;
            let (open, begin) = if has_low { ('[', bound(begin)) } else { ('(', String::new()) };
            let end = if of_high >= self.unbounded.1 { bound(end) } else { String::new() };
            format!("{open}{begin},{end})")
        });
        Some(texts.collect())
    }
}

/// A bound of a range as text.
fn bound(element: &Kind, units: i64) -> String {
    let text = element.write_units(units);
    match element {
        Kind::Numeric(_) if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        Kind::Timestamp | Kind::TimestampTz => format!("\"{text}\""),
        _ => text,
    }
}

/// The number at a place from 0 to 1 between quantiles at equal distances; 0 if there are none.
fn quantile(quantiles: &[i64], place: f64) -> i64 {
    let Some(last) = quantiles.len().checked_sub(1) else { return 0 };
    let place = place * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "below the number of quantiles"
    )]
    let before = (place.floor() as usize).min(last);
    let (low, high) = (quantiles[before], quantiles[(before + 1).min(last)]);
    #[expect(clippy::cast_possible_truncation, reason = "at most the distance of two quantiles")]
    let further = (high.saturating_sub(low) as f64 * place.fract()) as i64;
    low.saturating_add(further)
}

/// The largest unit of which all distances between numbers are multiples; 0 if all are equal.
fn step(numbers: &[i64]) -> i64 {
    let distances = numbers.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    distances.fold(0, gcd)
}

fn gcd(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(empty: f64, unbounded: (f64, f64), low: &[String]) -> Ranges<'_> {
        Ranges { of: "date", empty, unbounded, low, lengths: &[7, 14, 28] }
    }

    #[test]
    fn ranges_have_the_quantiles_and_fractions() {
        let low = ["2024-01-01", "2024-02-01", "2024-12-31"].map(str::to_owned);
        let ranges = dates(0.25, (0.0, 0.3), &low);
        ranges.check().unwrap();
        let texts = ranges.texts().unwrap();
        let count = |is: fn(&str) -> bool| texts.iter().filter(|text| is(text)).count();
        assert_eq!((texts.len(), count(|text| text.starts_with("[2024-01"))), (1_000, 500));
        let unbounded = count(|text| text.ends_with(",)"));
        assert!((280..=320).contains(&unbounded), "{unbounded}");
        let spec = ranges.spec(0.0).unwrap();
        assert!(spec.starts_with("repeated(1001,0,common(0.000499"), "{}", &spec[..60]);
        let kind = Kind::Range { name: "daterange".to_owned(), oid: 3912, element: Box::new(Kind::Date) };
        let parsed: rowgen::ColumnSpec = format!("during={spec}").parse().unwrap();
        parsed.spec.values(&kind, None).unwrap();
        let all_empty = Ranges { low: &[], lengths: &[], ..dates(1.0, (0.0, 0.0), &[]) };
        all_empty.check().unwrap();
        assert_eq!(all_empty.spec(0.0).unwrap(), "repeated(1,0,common(0.5*1),cycle('empty'))");
    }

    #[test]
    fn bounds_keep_their_unit_and_form() {
        // Whole hours.
        let low = ["2024-01-01 00:00:00+00", "2024-01-01 05:00:00+00"].map(str::to_owned);
        let hour = 3_600_000_000;
        let of = "timestamp with time zone";
        let ranges = Ranges { of, empty: 0.0, unbounded: (0.0, 0.0), low: &low, lengths: &[hour, 3 * hour] };
        for text in ranges.texts().unwrap() {
            assert!(text.starts_with("[\"2024-01-01 0") && text.matches(":00:00").count() == 2, "{text}");
        }
        assert_eq!(bound(&Kind::Numeric(None), 1_500_000), "1.5");
    }

    #[test]
    fn wrong_ranges_are_refused() {
        let low = ["2024-02-01", "2024-01-01"].map(str::to_owned);
        assert!(dates(0.0, (0.0, 0.0), &low).check().unwrap_err().contains("\"low\""));
        let wrong = Ranges { of: "text", ..dates(0.0, (0.0, 0.0), &low) };
        assert!(wrong.check().unwrap_err().contains("\"of\""));
        assert!(dates(2.0, (0.0, 0.0), &low).check().unwrap_err().contains("\"empty\""));
    }
}
