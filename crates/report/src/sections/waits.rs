//! Where the sessions of a run were: in total, and over time.

use std::fmt::Write;

use measure::{Run, Trial};

use super::intervals::{ShortEnd, joined};
use super::tps::spans;
use crate::document::series;
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Layer, MOST_PERIODS, Plot, Stack};
use crate::quantity::Quantity;

/// Waits that are shown by name.
const WAITS: usize = 12;
/// Events with a layer of their own over time; all that is rarer is one more.
const NAMED: usize = 5;
/// The colours of the events that are met most, so that they are the same in all reports: others get those that are left.
const COLOURS: [&str; NAMED] =
    ["IO:WalSync", "LWLock:WALWrite", "IO:DataFileRead", "Lock:transactionid", "IO:WalWrite"];
const ON_CPU: &str = "running on CPU";
const FOR_CLIENT: &str = "waiting for the client";
const OTHERS: &str = "others";

/// The name of an event in the plots.
fn shown(event: &str) -> &str {
    if event == "Client:ClientRead" { FOR_CLIENT } else { event }
}

/// Where sessions were when they were looked at, as shares of all looks.
pub(super) fn in_total(run: &Run) -> Option<Plot> {
    let samples: f64 = run.trials.iter().filter_map(|trial| trial.value("wait-samples")).sum();
    let mut found: Vec<(String, f64)> = Vec::new();
    let observed = run.trials.iter().flat_map(|trial| &trial.observations);
    for one in observed.filter(|one| one.name.starts_with("wait-") && one.name != "wait-samples") {
        let name = shown(&one.name["wait-".len()..]).to_owned();
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, value)) => *value += one.value,
            None => found.push((name, one.value)),
        }
    }
    found.sort_by(|one, other| other.1.total_cmp(&one.1));
    let (first, _) = found.first().filter(|_| samples > 0.0)?;
    let caption = format!(
        "pgrig sampled the sessions ten times a second. The most frequent state is {1}, in {0} of the samples.",
        Quantity::Share.text(found[0].1 / samples),
        first
    );
    let rows =
        found.iter().take(WAITS).map(|(name, count)| (name.clone(), vec![Some(count / samples)])).collect();
    let axis = Axis::new("share of samples", Quantity::Share, Spread::Linear);
    Some(Plot::new(
        "waits",
        "States of the sessions",
        caption,
        Chart::Bars(Bars { axis, groups: vec![String::new()], rows }),
    ))
}

/// The events of all trials of a run that have a layer, each with the number of its colour. It is the same in all plots of a page.
pub(super) struct Colours(Vec<(String, usize)>);

impl Colours {
    pub(super) fn of(run: &Run) -> Self {
        let mut sums: Vec<(String, f64)> = Vec::new();
        for series in run.trials.iter().flat_map(|trial| &trial.series) {
            let Some(name) = series.name.strip_prefix("wait-") else { continue };
            if ["looks", ON_CPU, OTHERS].contains(&name) || shown(name) == FOR_CLIENT {
                continue;
            }
            let sum: f64 = series.points.iter().map(|point| point.1).sum();
            match sums.iter_mut().find(|(known, _)| known == name) {
                Some((_, value)) => *value += sum,
                None => sums.push((name.to_owned(), sum)),
            }
        }
        sums.sort_by(|one, other| other.1.total_cmp(&one.1));
        sums.truncate(NAMED);
        let own = |name: &str| COLOURS.iter().position(|known| *known == name);
        let mut left: Vec<usize> = (0..NAMED).collect();
        left.retain(|colour| sums.iter().all(|(name, _)| own(name) != Some(*colour)));
        let mut left = left.into_iter();
        let mut colour = |name: &str| own(name).or_else(|| left.next());
        // The first colour is that of the processor.
        Self(sums.iter().filter_map(|(name, _)| Some((name.clone(), colour(name)? + 1))).collect())
    }

    /// The layer of an event.
    fn layer(&self, name: &str) -> (String, usize) {
        if name == ON_CPU {
            return (name.to_owned(), 0);
        }
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .cloned()
            .unwrap_or_else(|| (OTHERS.to_owned(), NAMED + 1))
    }
}

/// Sessions on average in each event over time, without those that wait for pgrig: those on a processor at the bottom.
/// Nothing for documents without these series.
pub(super) fn over_time(trial: &Trial, colours: &Colours) -> Option<Plot> {
    let looks = series(trial, "wait-looks")?;
    let short = ShortEnd::of(looks);
    let whole = |points: &[(f64, f64)]| joined(points, short, |one, other| one + other);
    let looks = whole(looks);
    let heights = |points: &[(f64, f64)]| -> Vec<f64> {
        let at = |(x, looks): &(f64, f64)| {
            let found = points.binary_search_by(|point| point.0.total_cmp(x));
            found.map_or(0.0, |at| points[at].1 / looks)
        };
        looks.iter().map(at).collect()
    };
    let all: Vec<(&str, Vec<f64>)> = trial
        .series
        .iter()
        .filter_map(|series| Some((series.name.strip_prefix("wait-")?, series)))
        .filter(|(name, _)| *name != "looks")
        .map(|(name, series)| (shown(name), heights(&whole(&series.points))))
        .collect();
    let mut layers: Vec<Layer> = Vec::new();
    for (name, heights) in all.iter().filter(|(name, _)| *name != FOR_CLIENT) {
        let (name, style) = colours.layer(name);
        match layers.iter_mut().find(|layer| layer.name == name) {
            Some(layer) => layer.heights.iter_mut().zip(heights).for_each(|(sum, height)| *sum += height),
            None => layers.push(Layer { name, style, heights: heights.clone() }),
        }
    }
    let mut caption = caption(&all, &looks)?;
    let together = looks.len().div_ceil(MOST_PERIODS);
    if together > 1 {
        let _ = write!(
            caption,
            " Layers are means of {together} intervals; the line is the highest sum of all layers in one of them."
        );
    }
    // The most frequent event is the lowest, but for the processor below it and the others above.
    let rank = |layer: &Layer| match layer.name.as_str() {
        ON_CPU => 0,
        OTHERS => 2,
        _ => 1,
    };
    layers.sort_by(|one, other| {
        rank(one).cmp(&rank(other)).then(mean(&other.heights).total_cmp(&mean(&one.heights)))
    });
    if layers.is_empty() {
        return None;
    }
    let chart = Stack {
        x: Axis::new("time", Quantity::Elapsed, Spread::Linear),
        y: Axis::new("sessions on average", Quantity::Sessions, Spread::Linear),
        xs: looks.iter().map(|look| look.0).collect(),
        layers,
        peak: "highest interval".to_owned(),
        spans: spans(trial),
    };
    Some(Plot::new("waits-over-time", "Busy and waiting sessions over time", caption, Chart::Stack(chart)))
}

fn mean(heights: &[f64]) -> f64 {
    heights.iter().sum::<f64>() / heights.len() as f64
}

/// The number of sessions that were busy or waited for anything but the client, and the event that rose most above its mean.
fn caption(all: &[(&str, Vec<f64>)], looks: &[(f64, f64)]) -> Option<String> {
    let text = |sessions: f64| Quantity::Sessions.text(sessions);
    let sum = |is_counted: &dyn Fn(&str) -> bool| {
        all.iter().filter(|(name, _)| is_counted(name)).map(|(_, heights)| mean(heights)).sum::<f64>()
    };
    let (for_client, every) = (sum(&|name| name == FOR_CLIENT), sum(&|_| true));
    let client = if for_client > 0.0 {
        format!(
            " Of {} sessions, {} waited for the client ({}) and are left out.",
            text(every),
            text(for_client),
            Quantity::Share.text(for_client / every)
        )
    } else {
        String::new()
    };
    let busy = || all.iter().filter(|(name, _)| *name != FOR_CLIENT);
    let first = busy().max_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)))?;
    let peak = busy()
        .filter(|(name, _)| ![ON_CPU, OTHERS].contains(name))
        .flat_map(|layer| layer.1.iter().zip(looks).map(move |(height, look)| (layer, *height, look.0)))
        .max_by(|one, other| (one.1 - mean(&one.0.1)).total_cmp(&(other.1 - mean(&other.0.1))));
    let peak = peak.map_or_else(String::new, |(layer, height, at)| {
        let name = if layer.0 == first.0 { "it" } else { layer.0 };
        let usual = if layer.0 == first.0 {
            String::new()
        } else {
            format!("{} on average and ", text(mean(&layer.1)))
        };
        format!(
            "; {name} had {usual}at most {}, {} after the start",
            text(height),
            Quantity::Elapsed.text(at)
        )
    });
    Some(format!(
        "Most sessions that do not wait for the client are in the state {}: {} on average{peak}.{client}",
        first.0,
        text(mean(&first.1))
    ))
}
