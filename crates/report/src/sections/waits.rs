//! Where the sessions of a run were: in total, and over time.

use std::fmt::Write;

use measure::{Run, Trial};

use super::intervals::{ShortEnd, joined};
use super::tps::spans;
use crate::document::series;
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, MOST_PERIODS, Peak, Plot, Stack};
use crate::quantity::Quantity;

/// Waits that are shown by name.
const WAITS: usize = 12;
/// Layers over time; all that is rarer is one of them.
const LAYERS: usize = 8;
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
        "Waits of the sessions",
        caption,
        Chart::Bars(Bars { axis, groups: vec![String::new()], rows }),
    ))
}

/// Sessions on average in each event over time: those on a processor at the bottom, those that wait for pgrig at the top.
/// Nothing for documents without these series.
pub(super) fn over_time(trial: &Trial) -> Option<Plot> {
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
    let mut layers: Vec<(String, Vec<f64>)> = trial
        .series
        .iter()
        .filter_map(|series| Some((series.name.strip_prefix("wait-")?, series)))
        .filter(|(name, _)| *name != "looks")
        .map(|(name, series)| (shown(name).to_owned(), heights(&whole(&series.points))))
        .collect();
    let mean = |layer: &(String, Vec<f64>)| layer.1.iter().sum::<f64>() / layer.1.len() as f64;
    layers.sort_by(|one, other| {
        (one.0 == OTHERS).cmp(&(other.0 == OTHERS)).then(mean(other).total_cmp(&mean(one)))
    });
    let rest = layers.split_off(layers.len().min(if layers.len() > LAYERS { LAYERS - 1 } else { LAYERS }));
    if !rest.is_empty() {
        let sum = |at: usize| rest.iter().map(|layer| layer.1[at]).sum();
        layers.push((OTHERS.to_owned(), (0..looks.len()).map(sum).collect()));
    }
    let mut caption = caption(&layers, &looks)?;
    if looks.len() > MOST_PERIODS {
        let _ = write!(
            caption,
            " Layers are means of {} intervals; the line shows their highest.",
            looks.len().div_ceil(MOST_PERIODS)
        );
    }
    layers.sort_by_key(|layer| match layer.0.as_str() {
        ON_CPU => 0,
        OTHERS => 2,
        FOR_CLIENT => 3,
        _ => 1,
    });
    let busy = layers.iter().filter(|layer| layer.0 != FOR_CLIENT).count();
    let chart = Stack {
        x: Axis::new("time", Quantity::Elapsed, Spread::Linear),
        y: Axis::new("sessions on average", Quantity::Sessions, Spread::Linear),
        xs: looks.iter().map(|look| look.0).collect(),
        layers,
        peak: Peak { name: "not waiting for the client, at most".to_owned(), layers: busy },
        spans: spans(trial),
    };
    Some(Plot::new("waits-over-time", "Waits over time", caption, Chart::Stack(chart)))
}

/// Where most sessions were, and the event that rose most above its mean.
fn caption(layers: &[(String, Vec<f64>)], looks: &[(f64, f64)]) -> Option<String> {
    let mean = |heights: &[f64]| heights.iter().sum::<f64>() / heights.len() as f64;
    let first = layers.iter().max_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)))?;
    let text = |sessions: f64| Quantity::Sessions.text(sessions);
    let peak = layers
        .iter()
        .filter(|layer| ![ON_CPU, FOR_CLIENT, OTHERS].contains(&layer.0.as_str()))
        .flat_map(|layer| layer.1.iter().zip(looks).map(move |(height, look)| (layer, *height, look.0)))
        .max_by(|one, other| (one.1 - mean(&one.0.1)).total_cmp(&(other.1 - mean(&other.0.1))));
    let peak = peak.map_or_else(String::new, |(layer, height, at)| {
        format!(
            "; {} had {} on average and at most {}, {} after the start",
            layer.0,
            text(mean(&layer.1)),
            text(height),
            Quantity::Elapsed.text(at)
        )
    });
    Some(format!(
        "The most frequent state is {}, with {} sessions on average{peak}.",
        first.0,
        text(mean(&first.1))
    ))
}
