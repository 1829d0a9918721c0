//! Block I/O: each step with its trials, and rates.

use measure::{Run, Trial};
use serde_json::Value;

use super::together::grouped;
use super::tps::text;
use super::{Section, Shown, log_dots};
use crate::document::{median, values};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Dot, Grouped, Groups, Plot};
use crate::quantity::{Quantity, short};

const CONFIG: &str = "total";

pub(super) fn shown(run: &Run) -> Shown {
    let steps: Vec<&str> =
        run.plan["steps"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let rows: Vec<Dot> = steps
        .iter()
        .filter_map(|step| {
            let observed = values(run, CONFIG, step);
            Some(Dot {
                name: (*step).to_owned(),
                value: median(&observed)?,
                interval: None,
                observed,
                remark: state(run, step),
            })
        })
        .collect();
    let total = |trial: &Trial| steps.iter().filter_map(|step| trial.value(step)).sum::<f64>();
    let totals: Vec<f64> = run.trials.iter().filter(|trial| trial.config == CONFIG).map(total).collect();
    let Some(whole) = median(&totals) else {
        return Shown { result: "No trial was completed".to_owned(), sections: Vec::new() };
    };
    let size = run.request["size"].as_f64().unwrap_or(0.0);
    let trials =
        if totals.len() == 1 { "1 trial".to_owned() } else { format!("median of {} trials", totals.len()) };
    let result = format!(
        "All steps on a table of {} took {} ({trials})",
        Quantity::Bytes.text(size),
        Quantity::Seconds.text(whole)
    );
    let longest = rows.iter().max_by(|one, other| one.value.total_cmp(&other.value));
    let caption = format!(
        "Each circle is a trial, each line the median; the longest step is {}.",
        longest.map_or("", |row| &row.name)
    );
    let mut plots =
        vec![Plot::new("steps", "Time of each step", caption, log_dots("time", Quantity::Seconds, rows))];
    plots.extend(rates(run, &steps));
    let mut sections = vec![Section::new("Steps", plots)];
    let published: Vec<Plot> = [beside(run, &steps), vacuum(run)].into_iter().flatten().collect();
    if !published.is_empty() {
        sections.push(Section { text: sources(run), ..Section::new("Published machines", published) });
    }
    Shown { result, sections }
}

/// Source of the step's data (a cache or storage), if all trials agree.
fn state(run: &Run, step: &str) -> String {
    let events = run.trials.iter().flat_map(|trial| &trial.events);
    let mut found: Vec<&str> = events
        .filter(|event| event.what["event"] == "state" && event.what["step"] == step)
        .filter_map(|event| event.what["state"].as_str())
        .collect();
    found.dedup();
    if let [one] = found.as_slice() {
        format!("({})", one.replace("os-warm", "OS-warm"))
    } else {
        String::new()
    }
}

/// Plot of the least bytes that each step must read and write, divided by its time.
fn rates(run: &Run, steps: &[&str]) -> Option<Plot> {
    let rate = |step: &str| {
        let of = |trial: &Trial| {
            let bytes =
                trial.value(&format!("{step}-must-read"))? + trial.value(&format!("{step}-must-write"))?;
            (bytes > 0.0).then(|| Some(bytes / trial.value(step)?))?
        };
        median(&run.trials.iter().filter(|trial| trial.config == CONFIG).filter_map(of).collect::<Vec<_>>())
    };
    let rows: Vec<(String, Vec<Option<f64>>)> =
        steps.iter().filter_map(|step| Some(((*step).to_owned(), vec![Some(rate(step)?)]))).collect();
    let least =
        rows.iter().min_by(|one, other| one.1[0].unwrap_or(0.0).total_cmp(&other.1[0].unwrap_or(0.0)))?;
    let caption = format!(
        "Bytes that a step must read and write, divided by its time (medians); the lowest is {} of {}. Cached steps measure memory, not the disk.",
        Quantity::BytesPerSecond.text(least.1[0].unwrap_or(0.0)),
        least.0
    );
    let axis = Axis::new("bytes read and written per second", Quantity::BytesPerSecond, Spread::Linear);
    Some(Plot::new(
        "rates",
        "Rate of each step",
        caption,
        Chart::Bars(Bars { axis, groups: vec![String::new()], rows }),
    ))
}

/// The published machines of the document; none in older ones.
fn machines(run: &Run) -> impl Iterator<Item = (String, &Value)> {
    run.plan["published"].as_array().into_iter().flatten().map(|machine| {
        let size = machine["size"].as_str().map_or_else(String::new, |size| format!(" ({size})"));
        (text(&machine["name"]) + &size, machine)
    })
}

fn sources(run: &Run) -> Vec<String> {
    machines(run)
        .map(|(name, machine)| {
            format!("{name}: {}. Source: {}.", text(&machine["machine"]), text(&machine["source"]))
        })
        .collect()
}

/// Seconds of each step for a gigabyte of the table, here and on published machines. It is no rate: not all steps read all of it.
fn beside(run: &Run, steps: &[&str]) -> Option<Plot> {
    let timed: Vec<(String, f64, &Value)> = machines(run)
        .filter_map(|(name, machine)| Some((name, machine["heap"].as_f64()?, &machine["seconds"])))
        .collect();
    let own = |step: &str| {
        let of = |trial: &Trial| Some(trial.value(step)? / (trial.value("heap")? / 1e9));
        let trials = run.trials.iter().filter(|trial| trial.config == CONFIG);
        grouped(trials.filter_map(of).filter(|time| time.is_finite()).collect())
    };
    let row = |step: &&str| {
        let theirs = timed.iter().map(|(_, heap, seconds)| {
            seconds[*step].as_f64().map(|seconds| Grouped { value: seconds / (heap / 1e9), interval: None })
        });
        let values: Vec<Option<Grouped>> = std::iter::once(own(step)).chain(theirs).collect();
        (values[0].is_some() && values[1..].iter().any(Option::is_some)).then(|| ((*step).to_owned(), values))
    };
    let rows: Vec<(String, Vec<Option<Grouped>>)> = steps.iter().filter_map(row).collect();
    let share = |(step, values): &(String, Vec<Option<Grouped>>)| {
        Some((values.first()?.as_ref()?.value / values.get(1)?.as_ref()?.value, step.clone()))
    };
    let shares: Vec<(f64, String)> = rows.iter().filter_map(share).collect();
    let least = shares.iter().min_by(|one, other| one.0.total_cmp(&other.0));
    let most = shares.iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let of_it = |(times, step): &(f64, String)| format!("{step} ({})", short(*times));
    let compared = least.zip(most).map_or_else(String::new, |(least, most)| {
        format!(
            " In multiples of the time that {} needs, from {} to {}.",
            timed[0].0,
            of_it(least),
            of_it(most)
        )
    });
    let caption = format!(
        "Time of each step divided by the size of the table, as the tables differ in size; less is faster.{compared}"
    );
    let series = std::iter::once("this server".to_owned())
        .chain(timed.iter().map(|machine| machine.0.clone()))
        .collect();
    let axis = Axis::new("time for each GB of the table", Quantity::Seconds, Spread::Log);
    (!rows.is_empty()).then(|| {
        Plot::new(
            "published",
            "Beside published machines",
            caption,
            Chart::Groups(Groups { axis, series, rows }),
        )
    })
}

/// PostgreSQL's own rates of VACUUM, here and on published machines.
fn vacuum(run: &Run) -> Option<Plot> {
    let machines: Vec<(String, &Value)> =
        machines(run).filter(|(_, machine)| machine["vacuum"].is_object()).collect();
    let row = |name: &str| {
        let own = grouped(server_rates(run, name))?;
        let theirs = machines.iter().map(|(_, machine)| {
            machine["vacuum"][name].as_f64().map(|value| Grouped { value, interval: None })
        });
        Some((name.to_owned(), std::iter::once(Some(own)).chain(theirs).collect::<Vec<_>>()))
    };
    let rows: Vec<(String, Vec<Option<Grouped>>)> = ["read", "write"].into_iter().filter_map(row).collect();
    let own = rows.first().filter(|_| !machines.is_empty())?.1[0]?;
    let caption = format!(
        "Rates that VACUUM itself reports: it read {} here (median).",
        Quantity::BytesPerSecond.text(own.value)
    );
    let series = std::iter::once("this server".to_owned())
        .chain(machines.into_iter().map(|machine| machine.0))
        .collect();
    let axis =
        Axis::new("bytes per second, as VACUUM reports them", Quantity::BytesPerSecond, Spread::Linear);
    Some(Plot::new("vacuum", "VACUUM's own rates", caption, Chart::Groups(Groups { axis, series, rows })))
}

/// Rates that VACUUM reported in each trial, bytes per second.
pub(crate) fn server_rates(run: &Run, name: &str) -> Vec<f64> {
    let events = run.trials.iter().flat_map(|trial| &trial.events);
    events
        .filter(|event| event.what["event"] == "server-rates")
        .filter_map(|event| event.what[name].as_f64())
        .collect()
}
