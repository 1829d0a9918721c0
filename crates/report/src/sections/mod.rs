//! The sections of a report: a module for each verb makes them from documents.

mod backup;
pub(crate) mod blockio;
mod ddl;
mod fill;
mod history;
mod intervals;
mod latency;
mod matrix;
mod micro;
mod model;
mod several;
mod testdb;
mod together;
mod tps;
mod waits;

use measure::{Median, Run, Sample, Status};

use crate::plot::scale::Spread;
use crate::plot::{Axis, Chart, Dot, Dots, Plot, Table};
use crate::quantity::Quantity;

/// A part of a report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// Sentences before the plots.
    pub(crate) text: Vec<String>,
    /// A table that is shown before the plots without a click, with its title.
    pub(crate) first: Option<(String, Table)>,
    pub(crate) plots: Vec<Plot>,
    /// Tables with their titles.
    pub(crate) tables: Vec<(String, Table)>,
}

/// The verb's part of a report.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The result in one sentence.
    pub(crate) result: String,
    pub(crate) sections: Vec<Section>,
}

impl Section {
    pub(crate) fn new(title: &str, plots: Vec<Plot>) -> Self {
        Self { title: title.to_owned(), plots, ..Self::default() }
    }
}

/// The verb of a run, with its mode if results of different modes are not comparable.
pub(crate) fn kind(run: &Run) -> String {
    let mode = match run.verb.as_str() {
        "tps" if run.request["matrix"].is_object() => " --matrix",
        "fill" if run.request["ladder"].is_object() => " --ladder",
        "fill" if run.request["rules"].is_array() => " --ddl",
        "blockio" if run.request["mode"] == "compat" => " --compat",
        _ => "",
    };
    format!("{}{mode}", run.verb)
}

/// The parts on runs of one kind, in the order in which they began.
pub(crate) fn of(runs: &[&Run]) -> Shown {
    match runs {
        [run] => {
            let mut shown = of_one(run);
            let state = match run.status {
                Status::Done => "",
                Status::Unfinished => "Unfinished: ",
                Status::Failed => "Failed: ",
                Status::Interrupted => "Interrupted: ",
            };
            shown.result.insert_str(0, state);
            shown
        }
        several => several::shown(several),
    }
}

fn of_one(run: &Run) -> Shown {
    match run.verb.as_str() {
        "tps" if run.request["matrix"].is_object() => matrix::shown(run),
        "tps" => tps::shown(run),
        "fill" if run.request["ladder"].is_object() => fill::ladder(run),
        "fill" => fill::shown(run),
        "blockio" => blockio::shown(run),
        "micro" => micro::shown(run),
        "testdb" => testdb::shown(run),
        "model" => model::shown(run),
        "ddl" => ddl::shown(run),
        "backup" => backup::shown(run),
        verb => Shown { result: format!("A run of {verb}"), sections: Vec::new() },
    }
}

/// With fewer trials, all of them say more than an interval of their median.
const FEWEST: usize = 6;

/// A row of dots for each configuration: trials and their median; with six trials or more, its 95 % interval.
pub(crate) fn trials(
    run: &Run,
    configs: &[String],
    value: impl Fn(&measure::Trial) -> Option<f64>,
) -> Vec<Dot> {
    let row = |config: &String| {
        let observed: Vec<f64> =
            run.trials.iter().filter(|trial| trial.config == *config).filter_map(&value).collect();
        let Median { median: value, interval, .. } = Median::of(&Sample::new(observed.clone())?);
        let interval = (observed.len() >= FEWEST).then_some((interval.low, interval.high));
        Some(Dot { name: config.clone(), value, interval, observed, remark: String::new() })
    };
    configs.iter().filter_map(row).collect()
}

/// The sentence on the marks of such rows.
pub(crate) fn marks(rows: &[Dot]) -> &'static str {
    if rows.iter().any(|row| row.interval.is_some()) {
        "Each circle is a trial, each dot the median, with its 95 % interval"
    } else {
        "Each circle is a trial, each short line the median"
    }
}

/// Dots on an axis that starts at zero.
pub(crate) fn dots(label: &str, quantity: Quantity, rows: Vec<Dot>) -> Chart {
    let axis = Axis::new(label, quantity, Spread::Linear);
    Chart::Dots(Dots { axis, rows, reference: None, band: None })
}

/// Dots on a logarithmic axis.
pub(crate) fn log_dots(label: &str, quantity: Quantity, mut rows: Vec<Dot>) -> Chart {
    rows.retain(|row| row.value > 0.0);
    let axis = Axis::new(label, quantity, Spread::Log);
    Chart::Dots(Dots { axis, rows, reference: None, band: None })
}
