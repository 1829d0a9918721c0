//! Runs of one kind on top of each other.

use measure::{Median, Run, Sample, Trial};
use serde_json::Value;

use super::intervals::{rates, without};
use super::latency;
use super::tps::{CONFIG, short_end, tps};
use super::{Section, ddl, fill};
use crate::document::{configs, series, values};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Chart, Grouped, Groups, Line, Lines, Plot};
use crate::quantity::{Quantity, short};

/// x and y.
type Points = Vec<(f64, f64)>;

/// Runs that are drawn on top of each other: as many as there are colours.
const MOST_RUNS: usize = 8;
/// Rows of runs beside each other.
const MOST_ROWS: usize = 40;
/// Steps of an empirical distribution, and those that are drawn: the percentiles show the rest.
const STEPS: u32 = 200;
const DRAWN: u32 = 198;

/// Plots with all runs.
pub(super) fn section(runs: &[&Run], names: &[String]) -> Option<Section> {
    // Of many runs the latest.
    let left_out = runs.len().saturating_sub(MOST_RUNS);
    let all = Runs { runs: &runs[left_out..], names: &names[left_out..] };
    let first = runs[0];
    let plots: Vec<Plot> = match first.verb.as_str() {
        "tps" if first.request["matrix"].is_object() => {
            let groups = all.groups("transactions per second", Quantity::PerSecond, Spread::Linear, |run| {
                by_config(run, tps)
            });
            let p95 = all.groups("latency, p95", Quantity::Seconds, Spread::Log, |run| {
                by_config(run, |trial| trial.value("latency-p95"))
            });
            [
                groups.map(|chart| chart.plot("cells", "Transactions per second of each cell")),
                p95.map(|chart| chart.plot("p95", "p95 of each cell")),
            ]
            .into_iter()
            .flatten()
            .collect()
        }
        "tps" => all.tps(),
        "fill" if first.request["ladder"].is_object() => {
            let rates = all.groups(
                "bytes of finished tables and indexes per second",
                Quantity::BytesPerSecond,
                Spread::Linear,
                fill::levels,
            );
            rates.map(|chart| chart.plot("ladder", "Write rate of each level")).into_iter().collect()
        }
        "fill" => all.fill(),
        "blockio" => {
            let steps = all.groups("time", Quantity::Seconds, Spread::Log, steps);
            steps.map(|chart| chart.plot("steps", "Time of each step")).into_iter().collect()
        }
        "micro" => {
            let times = all.groups("time per row", Quantity::PerRow, Spread::Linear, own_times);
            times.map(|chart| chart.plot("times", "Time per row of each candidate")).into_iter().collect()
        }
        "testdb" => {
            let total = all.groups("time to prepare and run", Quantity::Seconds, Spread::Linear, |run| {
                by_config(run, |trial| trial.value("total"))
            });
            let rate = all.groups("transactions per second", Quantity::PerSecond, Spread::Linear, |run| {
                by_config(run, tps)
            });
            [
                total.map(|chart| chart.plot("variants", "Time of each variant")),
                rate.map(|chart| chart.plot("tps", "Transactions per second of each variant")),
            ]
            .into_iter()
            .flatten()
            .collect()
        }
        "backup" => {
            let times = ["backup", "restore"].map(|what| {
                let of = |run: &Run| by_config(run, |trial| trial.value(what));
                let title = if what == "backup" { "Time to back up" } else { "Time to restore" };
                let chart = all.groups("time", Quantity::Seconds, Spread::Log, of);
                chart.map(|chart| chart.plot(what, title))
            });
            times.into_iter().flatten().collect()
        }
        "ddl" => all.ddl(),
        "model" => {
            let shares = all.groups("share", Quantity::Share, Spread::Linear, shares);
            shares.map(|chart| chart.plot("fidelity", "Fidelity")).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let mut section = Section::new("On top of each other", plots);
    if left_out > 0 {
        let older = if left_out == 1 {
            "1 older one is not".to_owned()
        } else {
            format!("{left_out} older ones are not")
        };
        section.text.push(format!("The latest {MOST_RUNS} runs are drawn; {older}."));
    }
    (!section.plots.is_empty()).then_some(section)
}

#[derive(Clone, Copy)]
struct Runs<'a> {
    runs: &'a [&'a Run],
    names: &'a [String],
}

/// A row of a run: its name, its value, its interval.
type Row = (String, Grouped);

impl Runs<'_> {
    fn lines(self, of: impl Fn(&Run) -> Option<Points>) -> Vec<Line> {
        let line = |(run, name): (&&Run, &String)| {
            let points = of(run).filter(|points| !points.is_empty())?;
            Some(Line::new(name, points))
        };
        self.runs.iter().zip(self.names).filter_map(line).collect()
    }

    /// Rows of all runs, in the order in which they come first; none if there are none.
    fn groups(
        self,
        label: &str,
        quantity: Quantity,
        spread: Spread,
        of: impl Fn(&Run) -> Vec<Row>,
    ) -> Option<Groups> {
        let found: Vec<Vec<Row>> = self.runs.iter().map(|run| of(run)).collect();
        let mut names: Vec<&String> = Vec::new();
        for (name, _) in found.iter().flatten() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let is_drawn = |one: &Grouped| one.value.is_finite() && (spread != Spread::Log || one.value > 0.0);
        let row = |name: &String| {
            let value =
                |rows: &Vec<Row>| rows.iter().find(|row| row.0 == *name).map(|row| row.1).filter(is_drawn);
            (name.clone(), found.iter().map(value).collect())
        };
        let rows: Vec<(String, Vec<Option<Grouped>>)> = names.into_iter().take(MOST_ROWS).map(row).collect();
        let axis = Axis::new(label, quantity, spread);
        (!rows.is_empty()).then(|| Groups { axis, series: self.names.to_vec(), rows })
    }

    fn over(
        self,
        (name, title): (&str, &str),
        x: (&str, Quantity),
        y: Axis,
        of: impl Fn(&Run) -> Option<Points>,
    ) -> Option<Plot> {
        let lines = self.lines(of);
        let extreme = |of: fn(f64, f64) -> f64| {
            lines.iter().flat_map(|line| &line.points).map(|point| point.1).reduce(of)
        };
        let caption = format!(
            "A line for each of {} runs, {}: between {} and {}.",
            lines.len(),
            y.label,
            y.quantity.text(extreme(f64::min)?),
            y.quantity.text(extreme(f64::max)?)
        );
        let chart = Lines { x: Axis::new(x.0, x.1, Spread::Linear), y, series: lines, spans: Vec::new() };
        Some(Plot::new(name, title, caption, Chart::Lines(chart)))
    }

    fn tps(self) -> Vec<Plot> {
        let time = ("time, first trial of each run", Quantity::Elapsed);
        let rate = Axis::new("transactions per second", Quantity::PerSecond, Spread::Linear);
        let latency_axis =
            |name: &str| Axis::new(&format!("latency, {name}"), Quantity::Seconds, Spread::Log);
        let mut plots: Vec<Plot> = [
            self.over(("tps", "Transactions per second over time"), time, rate, |run| {
                Some(rates(series(first(run)?, "succeeded")?))
            }),
            self.over(("p99", "p99 over time"), time, latency_axis("p99"), |run| {
                let trial = first(run)?;
                Some(without(series(trial, "latency-p99")?, short_end(trial)))
            }),
        ]
        .into_iter()
        .flatten()
        .collect();
        plots.extend(distribution(self.lines(|run| {
            let found = latency::merged(run, None, "latency")?;
            let point = |step: u32| {
                let share = f64::from(step) / f64::from(STEPS);
                Some((found.quantile(share)?.as_secs_f64(), share))
            };
            let points: Points = (0..=DRAWN).filter_map(point).filter(|point| point.0 > 0.0).collect();
            Some(points)
        })));
        let percentiles =
            self.lines(|run| Some(latency::percentiles(&latency::merged(run, None, "latency")?)));
        plots.extend(latency::plot(percentiles));
        plots
    }

    fn ddl(self) -> Vec<Plot> {
        let of = |name: &str, title: &str, label: &str, quantity| {
            let chart = self.groups(label, quantity, Spread::Log, |run| ddl::each(run, name));
            chart.map(|chart| chart.plot(name, title))
        };
        [
            of("time", "Time of each statement", "time", Quantity::Seconds),
            of("wal", "WAL of each statement", "bytes of WAL", Quantity::Bytes),
            of("stall", "Longest wait of a reader or writer", "wait", Quantity::Seconds),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn fill(self) -> Vec<Plot> {
        let one = |run: &Run, name: &str| match run.trials.as_slice() {
            [trial] => series(trial, name).map(<[_]>::to_vec),
            _ => None,
        };
        let rate = Axis::new("rows per second", Quantity::RowsPerSecond, Spread::Linear);
        let time = ("time since generate began", Quantity::Elapsed);
        let mut plots: Vec<Plot> = self
            .over(("rows", "Rows per second"), time, rate, |run| Some(rates(&one(run, "rows-sent")?)))
            .into_iter()
            .collect();
        let steps = self.groups("time", Quantity::Seconds, Spread::Linear, fill::steps_of);
        plots.extend(steps.map(|chart| chart.plot("steps", "Steps")));
        let tables =
            self.groups("rows per second", Quantity::RowsPerSecond, Spread::Linear, fill::table_rates);
        plots.extend(tables.map(|chart| chart.plot("table-rates", "Rows per second of each table")));
        let mut kinds: Vec<String> = Vec::new();
        for series in self.runs.iter().flat_map(|run| &run.trials).flat_map(|trial| &trial.series) {
            let kind = series.name.strip_prefix("probe-").and_then(|name| name.strip_suffix("-p50"));
            kinds.extend(kind.map(str::to_owned).filter(|kind| !kinds.contains(kind)));
        }
        for kind in kinds {
            for at in ["p50", "p99"] {
                let y = Axis::new(&format!("latency, {at}"), Quantity::Seconds, Spread::Log);
                let name = format!("probe-{kind}-{at}");
                let title = format!("Latency of the probe {kind}: {at}");
                plots.extend(
                    self.over((&name, &title), ("size of the table", Quantity::Bytes), y, |run| {
                        one(run, &name)
                    }),
                );
            }
        }
        plots
    }
}

impl Groups {
    /// The plot, with the row in which runs differ most as its sentence.
    fn plot(self, name: &str, title: &str) -> Plot {
        let quantity = self.axis.quantity;
        let row = |(name, values): &(String, Vec<Option<Grouped>>)| {
            let there = || {
                values
                    .iter()
                    .zip(&self.series)
                    .filter_map(|(value, series)| Some((value.as_ref()?.value, series)))
            };
            let low = there().min_by(|one, other| one.0.total_cmp(&other.0))?;
            let high = there().max_by(|one, other| one.0.total_cmp(&other.0))?;
            (low.0 > 0.0 && high.0 > low.0).then(|| (high.0 / low.0, name.clone(), low, high))
        };
        let most = self.rows.iter().filter_map(row).max_by(|one, other| one.0.total_cmp(&other.0));
        let differ = most.map_or_else(
            || "All runs have the same values.".to_owned(),
            |(times, name, low, high)| {
                format!(
                    "They differ most in {name}: {} in {}, {} in {} ({} times).",
                    quantity.text(low.0),
                    low.1,
                    quantity.text(high.0),
                    high.1,
                    short(times)
                )
            },
        );
        let caption = format!(
            "Medians of {} runs with their trials' 95 % interval or range. {differ}",
            self.series.len()
        );
        Plot::new(name, title, caption, Chart::Groups(self))
    }
}

/// The trial of a run of `tps` that is drawn over time.
fn first(run: &Run) -> Option<&Trial> {
    run.trials.iter().find(|trial| trial.config == CONFIG)
}

/// The share of transactions that took at most so long.
fn distribution(lines: Vec<Line>) -> Option<Plot> {
    let half = |line: &Line| {
        let middle = line.points.iter().find(|point| point.1 >= 0.5)?;
        Some(format!("{} in {}", Quantity::Seconds.text(middle.0), line.name))
    };
    let halves: Vec<String> = lines.iter().take(4).filter_map(half).collect();
    if halves.is_empty() {
        return None;
    }
    let caption = format!(
        "Share of transactions that took at most this long (ECDF, up to 99 %); a line further left is faster. Half of them: {}.",
        halves.join(", ")
    );
    let chart = Lines {
        x: Axis::new("latency", Quantity::Seconds, Spread::Log),
        y: Axis::new("share of transactions", Quantity::Share, Spread::Linear),
        series: lines,
        spans: Vec::new(),
    };
    Some(Plot::new("ecdf", "Distribution of latencies", caption, Chart::Lines(chart)))
}

/// The median of trials, and its interval if there are several.
pub(super) fn grouped(observed: Vec<f64>) -> Option<Grouped> {
    let several = observed.len() > 1;
    let median = Median::of(&Sample::new(observed)?);
    let interval = several.then_some((median.interval.low, median.interval.high));
    Some(Grouped { value: median.median, interval })
}

fn by_config(run: &Run, value: impl Fn(&Trial) -> Option<f64>) -> Vec<Row> {
    let of = |config: String| {
        let trials = run.trials.iter().filter(|trial| trial.config == config);
        let observed = trials.filter_map(&value).filter(|value| value.is_finite()).collect();
        Some((config, grouped(observed)?))
    };
    configs(run).into_iter().filter_map(of).collect()
}

fn steps(run: &Run) -> Vec<Row> {
    let steps = run.plan["steps"].as_array().into_iter().flatten().filter_map(Value::as_str);
    steps.filter_map(|step| Some((step.to_owned(), grouped(values(run, "total", step))?))).collect()
}

fn own_times(run: &Run) -> Vec<Row> {
    let events = run.trials.iter().flat_map(|trial| &trial.events);
    let row = |event: &measure::Event| {
        let time = &event.what["time"];
        let interval = time["low"].as_f64().zip(time["high"].as_f64());
        Some((
            super::tps::text(&event.what["candidate"]),
            Grouped { value: time["value"].as_f64()?, interval },
        ))
    };
    events.filter(|event| event.what["event"] == "own-time").filter_map(row).collect()
}

fn shares(run: &Run) -> Vec<Row> {
    let share = |all: &str, part: &str| {
        let trial = run.trials.first()?;
        let all = trial.value(all).filter(|all| *all > 0.0)?;
        Some(Grouped { value: trial.value(part)? / all, interval: None })
    };
    [
        ("statistics within tolerance", share("fields", "fields-within")),
        ("plans of the same shape", share("plans", "plans-same")),
    ]
    .into_iter()
    .filter_map(|(name, share)| Some((name.to_owned(), share?)))
    .collect()
}
