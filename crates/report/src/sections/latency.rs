//! Plots percentiles of latency histograms.

use std::time::Duration;

use measure::{Latencies, Run};

use crate::plot::scale::Spread;
use crate::plot::{Axis, Chart, Line, Lines, Plot};
use crate::quantity::Quantity;

/// Points for each factor of ten of 1/(1−p).
const PER_DECADE: u32 = 24;

/// The histograms of that name of all trials of a run, merged; none if there are none.
pub(super) fn merged(run: &Run, config: Option<&str>, name: &str) -> Option<Latencies> {
    let mut all = Latencies::default();
    let trials = run.trials.iter().filter(|trial| config.is_none_or(|config| trial.config == config));
    for histogram in trials.flat_map(|trial| &trial.histograms).filter(|histogram| histogram.name == name) {
        all += &histogram.latencies;
    }
    (all.count() > 0).then_some(all)
}

/// The latency at each percentile, as far as latencies beyond it exist.
pub(super) fn percentiles(latencies: &Latencies) -> Vec<(f64, f64)> {
    let decades = (latencies.count().max(2) as f64).log10();
    let share = |step: u32| 1.0 - 10f64.powf(-f64::from(step) / f64::from(PER_DECADE));
    let steps = (0..).take_while(|step| f64::from(*step) <= decades * f64::from(PER_DECADE));
    let mut shares: Vec<f64> = steps.map(share).chain([0.5]).collect();
    shares.sort_by(f64::total_cmp);
    shares.into_iter().filter_map(|share| Some((share, seconds(latencies.quantile(share)?)))).collect()
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

/// The plot of percentiles over log 1/(1−p).
pub(super) fn plot(lines: Vec<Line>) -> Option<Plot> {
    let lines: Vec<Line> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let at = |line: &Line, share: f64| {
        line.points.iter().rfind(|point| point.0 <= share + 1e-9).map_or(0.0, |point| point.1)
    };
    let text = |seconds: f64| Quantity::Seconds.text(seconds);
    let caption = if let [line] = lines.as_slice() {
        let end = line.points.last().copied().unwrap_or_default();
        format!(
            "Half of the transactions take at most {}, 99 % at most {}, {} at most {}.",
            text(at(line, 0.5)),
            text(at(line, 0.99)),
            Quantity::Percentile.text(end.0),
            text(end.1)
        )
    } else {
        let range = |share: f64| {
            let found = || lines.iter().map(|line| (at(line, share), &line.name));
            let low = found().min_by(|one, other| one.0.total_cmp(&other.0));
            let high = found().max_by(|one, other| one.0.total_cmp(&other.0));
            low.zip(high).map_or_else(String::new, |(low, high)| {
                format!("{} ({}) to {} ({})", text(low.0), low.1, text(high.0), high.1)
            })
        };
        format!("Half of the transactions take at most {}; 99 % take at most {}.", range(0.5), range(0.99))
    };
    let chart = Lines {
        x: Axis::new("share of transactions", Quantity::Percentile, Spread::Nines),
        y: Axis::new("latency", Quantity::Seconds, Spread::Log),
        series: lines,
        spans: Vec::new(),
    };
    Some(Plot::new("percentiles", "Latency by percentile", caption, Chart::Lines(chart)))
}
