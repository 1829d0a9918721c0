//! One trial of all parts as one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::json;

use super::super::clock::Clock;
use super::window::Timeline;
use crate::increment::Increment;
use crate::latencies::{Latencies, LatenciesError, Percentile};
use crate::run::{Event, Observation, Trial, Unit};
use crate::series::Series;

/// Counts of a whole trial that are added as they are.
const ADDED: [&str; 3] = ["connections", "lost-clients", "moved-clients"];
/// Counts that no increment has: those of the watch.
const WATCHED: [&str; 2] = ["wait-", "disk-"];
/// Series of the server, which each part saw: that of the first part counts.
const OF_THE_SERVER: [&str; 3] = ["wal", "disk-read", "disk-written"];
/// Series of each part's own machine or process, which are added.
const OF_A_PART: [&str; 2] = ["client-cpu", "machine-busy"];
/// Looks at sessions: each part looks at its own.
const WAITS: &str = "wait-";
const LOOKS: &str = "wait-looks";
const MEAN: &str = "-mean";
/// Failed transactions by kind; the series has their sum.
const FAILED: [&str; 3] = ["failed-serialization", "failed-deadlock", "failed-other"];
/// Percentiles of each second.
const OF_A_SECOND: [Percentile; 4] = [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::Max];

/// One part's trial.
pub(super) struct PartTrial<'a> {
    pub(super) trial: &'a Trial,
    pub(super) clock: Clock,
    pub(super) timeline: Timeline<'a>,
}

/// Counts and latencies of a time.
#[derive(Default)]
struct Sum {
    counts: BTreeMap<String, u64>,
    histograms: BTreeMap<String, Latencies>,
}

impl Sum {
    fn add(&mut self, increment: &Increment) -> Result<(), LatenciesError> {
        for (name, count) in &increment.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        for (name, latencies) in &increment.histograms {
            *self.histograms.entry(name.clone()).or_default() += &latencies.unpack()?;
        }
        Ok(())
    }

    fn absorb(&mut self, other: &Self) {
        for (name, count) in &other.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        for (name, latencies) in &other.histograms {
            *self.histograms.entry(name.clone()).or_default() += latencies;
        }
    }
}

/// The trials of all parts, cut to the window, as one.
pub(super) fn merged(parts: &[PartTrial<'_>], window: &Range<f64>) -> Result<Trial, LatenciesError> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of seconds")]
    let length = (window.end - window.start) as usize;
    let mut seconds: Vec<Sum> = (0..length).map(|_| Sum::default()).collect();
    let mut covered = 0.0;
    for part in parts {
        for (second, increment) in part.timeline.cut(window) {
            covered += increment.until - increment.from;
            seconds[second - 1].add(increment)?;
        }
    }
    let mut all = Sum::default();
    for second in &seconds {
        all.absorb(second);
    }

    let mut trial = Trial { config: parts[0].trial.config.clone(), ..Trial::default() };
    trial.observe("elapsed", covered / parts.len() as f64, Unit::Seconds);
    let of_parts = |name: &str| parts.iter().filter_map(|part| part.trial.value(name)).collect::<Vec<f64>>();
    trial.observe("connecting", of_parts("connecting").into_iter().fold(0.0, f64::max), Unit::Seconds);
    for name in ADDED {
        let all = of_parts(name);
        if !all.is_empty() {
            trial.observe(name, all.iter().sum(), Unit::Count);
        }
    }
    observe(&mut trial, parts, &all);
    trial.series = series(&seconds);
    trial.events = events(&parts[0], window);
    watched(&mut trial, parts, window);
    Ok(trial)
}

/// Counts and latencies of the whole time, in the order in which the parts have them.
fn observe(trial: &mut Trial, parts: &[PartTrial<'_>], all: &Sum) {
    let mut seen = BTreeSet::new();
    for Observation { name, unit, .. } in parts.iter().flat_map(|part| &part.trial.observations) {
        if WATCHED.iter().any(|watched| name.starts_with(watched)) || !seen.insert(name) {
            continue;
        }
        if let Some(histogram) = name.strip_suffix(MEAN)
            && let Some(latencies) = all.histograms.get(histogram)
        {
            trial.observe_latencies(histogram, latencies);
        } else if *unit == Unit::Count && trial.value(name).is_none() {
            trial.observe(name, all.counts.get(name).copied().unwrap_or_default() as f64, Unit::Count);
        }
    }
}

/// Counts and percentiles of each second.
fn series(seconds: &[Sum]) -> Vec<Series> {
    let count = |name: &str, of: &[&str]| {
        let mut series = Series::new(name, Unit::Seconds, Unit::Count);
        let sum = |second: &Sum| of.iter().filter_map(|name| second.counts.get(*name)).sum::<u64>();
        series.points = (1..).zip(seconds).map(|(at, second)| (f64::from(at), sum(second) as f64)).collect();
        series
    };
    let succeeded = count("succeeded", &["succeeded"]);
    let others = [
        count("failed", &FAILED),
        count("skipped", &["skipped"]),
        count("retries", &["retries"]),
        count("late", &["late"]),
    ];
    // Series that are zero throughout are left out.
    let others = others.into_iter().filter(|series| series.points.iter().any(|(_, number)| *number > 0.0));
    let percentiles =
        ["latency", "lag"].into_iter().flat_map(|name| OF_A_SECOND.map(|percentile| (name, percentile)));
    let times = percentiles.map(|(name, percentile)| {
        let mut series = Series::new(&format!("{name}-{}", percentile.name()), Unit::Seconds, Unit::Seconds);
        let value = |second: &Sum| second.histograms.get(name)?.percentiles().map(|all| all.get(percentile));
        let point = |(at, second)| Some((f64::from(at), value(second)?.as_secs_f64()));
        series.points = (1..).zip(seconds).filter_map(point).collect();
        series
    });
    let times = times.filter(|series| !series.points.is_empty());
    std::iter::once(succeeded).chain(others).chain(times).collect()
}

/// Observations and series of the watches. Their points are not at whole seconds: a point that is in the window with a
/// part of its time counts with that part.
fn watched(trial: &mut Trial, parts: &[PartTrial<'_>], window: &Range<f64>) {
    let named =
        |name: &str| parts.iter().filter_map(|part| on_the_grid(part, name, window)).collect::<Vec<_>>();
    let mut keep = |mut all: Vec<Series>, count: usize| {
        if all.is_empty() || all.len() < count {
            return None;
        }
        let mut sum = all.remove(0);
        for other in &all {
            sum.points.iter_mut().zip(&other.points).for_each(|(point, other)| point.1 += other.1);
        }
        let total: f64 = sum.points.iter().map(|point| point.1).sum();
        let (name, unit) = (sum.name.clone(), sum.y_unit);
        trial.series.push(sum);
        Some((name, total, unit))
    };
    let mut totals = Vec::new();
    for name in OF_THE_SERVER {
        totals.extend(keep(named(name).into_iter().take(1).collect(), 1));
    }
    for name in OF_A_PART {
        totals.extend(keep(named(name), parts.len()));
    }
    let waits: BTreeSet<&str> = parts
        .iter()
        .flat_map(|part| &part.trial.series)
        .map(|series| series.name.as_str())
        .filter(|name| name.starts_with(WAITS) && *name != LOOKS)
        .collect();
    let waits: Vec<(String, f64, Unit)> = waits.into_iter().filter_map(|name| keep(named(name), 1)).collect();
    // All sessions of the run are looked at when each part looks at its own: the mean number of looks.
    if let Some((..)) = keep(named(LOOKS), 1)
        && let Some(looks) = trial.series.last_mut()
    {
        looks.points.iter_mut().for_each(|point| point.1 /= parts.len() as f64);
    }
    for (name, total, unit) in totals {
        trial.observe(&name, total, unit);
    }
    let samples: f64 = waits.iter().map(|wait| wait.1.round()).sum();
    for (name, total, unit) in waits.into_iter().filter(|wait| wait.1.round() > 0.0) {
        trial.observe(&name, total.round(), unit);
    }
    trial.observe("wait-samples", samples, Unit::Count);
}

/// A part's series, second by second of the window; none if the part has no such series.
fn on_the_grid(part: &PartTrial<'_>, name: &str, window: &Range<f64>) -> Option<Series> {
    let found = part.trial.series.iter().find(|series| series.name == name)?;
    let mut series = Series::new(name, found.x_unit, found.y_unit);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of seconds")]
    let length = (window.end - window.start) as u32;
    series.points = (1..=length).map(|second| (f64::from(second), 0.0)).collect();
    // All series of the watch have points at the same times; one of waits leaves out those without such a wait.
    let looks =
        part.trial.series.iter().find(|series| series.name == LOOKS).filter(|_| name.starts_with(WAITS));
    let ends: Vec<f64> = looks.unwrap_or(found).points.iter().map(|point| point.0).collect();
    let began = part.timeline.span().0 - window.start;
    let at = |x: f64| part.clock.time(x) - window.start;
    for &(x, amount) in &found.points {
        let before = ends.partition_point(|end| *end < x);
        let from = before.checked_sub(1).map_or(began, |before| at(ends[before]));
        spread(&mut series.points, from..at(x), amount);
    }
    Some(series)
}

/// Adds an amount, evenly over its time, to the seconds.
fn spread(points: &mut [(f64, f64)], time: Range<f64>, amount: f64) {
    let length = time.end - time.start;
    if length <= 0.0 {
        return;
    }
    for (end, sum) in points {
        let inside = end.min(time.end) - (*end - 1.0).max(time.start);
        *sum += amount * (inside / length).max(0.0);
    }
}

/// The events of the server that the first part saw, and the beginning of the shared time.
fn events(part: &PartTrial<'_>, window: &Range<f64>) -> Vec<Event> {
    let length = window.end - window.start;
    let begin = Event {
        at: 0.0,
        text: "counting begins".to_owned(),
        what: json!({ "event": "phase", "phase": "measured" }),
    };
    let shifted = |event: &Event| {
        let at = |name: &str| Some(part.clock.time(event.what[name].as_f64()?) - window.start);
        let from = at("from")?;
        let until = at("until");
        if from >= length || until.is_some_and(|until| until <= 0.0) {
            return None;
        }
        let mut event = event.clone();
        event.at = from.max(0.0);
        event.what["from"] = json!(from);
        event.what["until"] = json!(until.filter(|until| *until <= length));
        Some(event)
    };
    std::iter::once(begin).chain(part.trial.events.iter().filter_map(shifted)).collect()
}
