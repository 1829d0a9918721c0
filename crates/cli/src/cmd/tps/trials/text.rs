//! A table of a run's trials.

use measure::{Censored, Percentile, Quantile, Sample};
use tps::{Outcome, Request};

use crate::app::numbers::rounded;
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::tps::text::milliseconds;

const SHOWN: [Percentile; 4] = [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::Max];

/// A line for each trial, then their median, lowest and highest figures.
pub(crate) fn table(request: &Request, trials: &[&Outcome]) -> String {
    let mut header = vec!["trial", "tps"];
    header.extend(SHOWN.map(Percentile::name));
    let mut table = new_table(&header);
    let latency = |outcome: &Outcome, percentile| {
        Censored::new(&outcome.all.latency, request.skipped(outcome.all.counts.skipped))
            .percentile(percentile)
    };
    for (number, outcome) in (1..).zip(trials) {
        let mut row = vec![number.to_string(), rounded(outcome.tps())];
        row.extend(SHOWN.map(|percentile| latency(outcome, percentile).map_or("-".to_owned(), shown)));
        table.add_row(row);
    }
    let tps = Sample::new(trials.iter().map(|outcome| outcome.tps()).collect());
    let latencies = SHOWN.map(|percentile| {
        let mut of_all: Vec<Quantile> =
            trials.iter().filter_map(|outcome| latency(outcome, percentile)).collect();
        of_all.sort_by_key(|quantile| (matches!(quantile, Quantile::Over(_)), quantile.least()));
        of_all
    });
    let mut row = |name: &str, tps: Option<f64>, of: fn(&[Quantile]) -> Option<Quantile>| {
        let mut row = vec![name.to_owned(), tps.map_or("-".to_owned(), rounded)];
        row.extend(latencies.iter().map(|sorted| of(sorted).map_or("-".to_owned(), shown)));
        table.add_row(row);
    };
    row("median", tps.as_ref().map(Sample::median), median);
    row("lowest", tps.as_ref().map(Sample::lowest), |sorted| sorted.first().copied());
    row("highest", tps.as_ref().map(Sample::highest), |sorted| sorted.last().copied());
    align_right(&mut table, 1..header.len());
    format!("{}\n(milliseconds; below: all {} trials together)", trimmed(&table), trials.len())
}

/// The median of sorted values. If it lies between two values and one of them is only a lower
/// bound, the median is a lower bound too.
fn median(sorted: &[Quantile]) -> Option<Quantile> {
    let (low, high) = (sorted.get(sorted.len().saturating_sub(1) / 2)?, sorted.get(sorted.len() / 2)?);
    Some(match (low, high) {
        (Quantile::Is(low), Quantile::Is(high)) => Quantile::Is((*low + *high) / 2),
        (_, over) => *over,
    })
}

fn shown(quantile: Quantile) -> String {
    match quantile {
        Quantile::Is(latency) => milliseconds(latency),
        Quantile::Over(limit) => format!(">{}", milliseconds(limit)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_median_is_between_two() {
        let [one, three] = [1, 3].map(|milliseconds| Quantile::Is(Duration::from_millis(milliseconds)));
        let over = Quantile::Over(Duration::from_millis(2));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[three]), Some(three));
        assert_eq!(median(&[one, three]), Some(Quantile::Is(Duration::from_millis(2))));
        assert_eq!(median(&[one, three, over]), Some(three));
        assert_eq!(median(&[one, over]), Some(over));
    }
}
