//! Ways to back up a database: size, time and proof of each.

mod forecast;
mod load;
mod network;
mod rto;

use measure::human::grouped;
use measure::{Run, Status};
use serde_json::Value;

use super::tps::text;
use super::{FEWEST, Section, Shown, dots, log_dots, marks, trials};
use crate::document::{configs, median, values};
use crate::plot::{Chart, Dot, Plot, Table};
use crate::quantity::Quantity;

/// The costs by which ways are compared.
const COSTS: [(&str, Quantity); 3] =
    [("size", Quantity::Bytes), ("backup", Quantity::Seconds), ("restore", Quantity::Seconds)];
const FRONT: &str = "(front)";
const MEANING: &str =
    "front: no other way is better in size, backup or restore without being worse in another of them";

pub(super) fn shown(run: &Run) -> Shown {
    let ways = ways(run);
    let costs = COSTS.map(|(name, _)| trials(run, &ways, |trial| trial.value(name)));
    let front = measured_front(&costs);
    if front.is_empty() {
        return Shown { result: "No way was completed".to_owned(), sections: Vec::new() };
    }
    let mut overview = Section::new("Ways to back up", plots(&costs, &front));
    overview.text.extend(missing(run, &ways));
    overview.first = Some(("All ways".to_owned(), table(run, &costs, &front)));
    if !run.plan["sizes"].is_null() {
        overview.text.push(
            "Measured at the largest of the three sizes of data, with the front at this size.".to_owned(),
        );
    }
    // With a forecast, it has the verdicts.
    if let Some(seconds) = rto::seconds(run).filter(|_| run.plan["sizes"].is_null()) {
        overview.text.push(rto::meaning(&costs[2], seconds));
    }
    let forecasts = forecasts(run, &ways);
    let mut sections = vec![overview];
    sections.extend(network::network(run, &ways));
    sections.extend(load::wal(run));
    sections.extend(load::snapshot(run, &forecasts));
    sections.extend(forecast::forecast(run, &forecasts));
    sections.extend(verification(run, &ways));
    Shown { result: result(&costs), sections }
}

/// The ways. Of several sizes of data, the largest stands for the way.
fn ways(run: &Run) -> Vec<String> {
    let planned: Vec<&str> =
        run.plan["ways"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all = configs(run);
    if run.plan["sizes"].is_null() {
        return all;
    }
    all.into_iter().filter(|config| planned.contains(&config.as_str())).collect()
}

/// The forecast of each way that has one.
fn forecasts<'a>(run: &'a Run, ways: &[String]) -> Vec<(String, &'a Value)> {
    let of_way = |way: &String| {
        let events = run.trials.iter().filter(|trial| trial.config == *way).flat_map(|trial| &trial.events);
        let mut found = events.filter(|event| event.what["event"] == "forecast");
        found.next().map(|event| (way.clone(), &event.what["forecast"]))
    };
    ways.iter().filter_map(of_way).collect()
}

/// The ways that no other way beats in the measured costs.
fn measured_front(costs: &[Vec<Dot>; 3]) -> Vec<String> {
    let [sizes, backups, restores] = costs;
    let all = sizes.iter().zip(backups).zip(restores);
    front(
        &all.map(|((size, backup), restore)| {
            (size.name.as_str(), [size, backup, restore].map(|row| row.value))
        })
        .collect::<Vec<_>>(),
    )
}

/// The names of those that no other one beats.
fn front(all: &[(&str, [f64; 3])]) -> Vec<String> {
    let beats = |one: &[f64; 3], other: &[f64; 3]| {
        one.iter().zip(other).all(|(own, others)| own <= others)
            && one.iter().zip(other).any(|(own, others)| own < others)
    };
    let is_front = |one: &[f64; 3]| !all.iter().any(|(_, other)| beats(other, one));
    all.iter().filter(|(_, one)| is_front(one)).map(|(name, _)| (*name).to_owned()).collect()
}

/// The best way for each cost.
fn result(costs: &[Vec<Dot>; 3]) -> String {
    let best = |cost: usize| {
        let row = costs[cost].iter().min_by(|one, other| one.value.total_cmp(&other.value))?;
        Some(format!("{} ({})", row.name, COSTS[cost].1.text(row.value)))
    };
    ["Smallest backup", "fastest backup", "fastest restore"]
        .into_iter()
        .enumerate()
        .filter_map(|(cost, word)| Some(format!("{word}: {}", best(cost)?)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// A plot for each cost.
fn plots(costs: &[Vec<Dot>; 3], front: &[String]) -> Vec<Plot> {
    let titles = [
        ["sizes", "Size of the backup", "bytes of all files"],
        ["backup", "Time to back up", "time to back up"],
        ["restore", "Time to restore", "time to restore"],
    ];
    let all = titles.into_iter().zip(costs).zip(COSTS);
    all.map(|((titles, rows), (_, quantity))| plot(titles, rows, quantity, front)).collect()
}

/// A plot with this name, this title and this label of its axis.
fn plot([name, title, label]: [&str; 3], rows: &[Dot], quantity: Quantity, front: &[String]) -> Plot {
    let remark = |row: &Dot| if front.contains(&row.name) { FRONT.to_owned() } else { String::new() };
    let rows: Vec<Dot> = rows.iter().map(|row| Dot { remark: remark(row), ..row.clone() }).collect();
    let least = rows.iter().map(|row| row.value).fold(f64::INFINITY, f64::min);
    let most = rows.iter().map(|row| row.value).fold(0.0, f64::max);
    let range = format!("From {} to {}", quantity.text(least), quantity.text(most));
    let caption = format!("{}; {MEANING}. {range}.", marks(&rows));
    // A compressed dump may be a hundredth of a base backup.
    let is_wide = least > 0.0 && most / least > 20.0;
    let chart: Chart = if is_wide { log_dots(label, quantity, rows) } else { dots(label, quantity, rows) };
    Plot::new(name, title, caption, chart)
}

/// All costs of each way.
fn table(run: &Run, costs: &[Vec<Dot>; 3], front: &[String]) -> Table {
    let rto = rto::seconds(run).filter(|_| run.plan["sizes"].is_null());
    let of_rto = rto.map(rto::title);
    let mut header = vec![
        "way",
        "front",
        "trials",
        "size",
        "backup",
        "restore",
        "CPU of backup: programs + server",
        "CPU of restore: programs + server",
        "peak of disk space",
    ];
    header.extend(of_rto.as_deref());
    let mut table = Table::new(&header);
    let [sizes, backups, restores] = costs;
    for ((size, backup), restore) in sizes.iter().zip(backups).zip(restores) {
        let name = &size.name;
        let shown = |quantity: &str, unit: Quantity| {
            median(&values(run, name, quantity)).map_or_else(|| "–".to_owned(), |value| unit.text(value))
        };
        let cpu = |step: &str| {
            let of = |whose: &str| shown(&format!("{step}-{whose}"), Quantity::Seconds);
            format!("{} + {}", of("cpu"), of("server-cpu"))
        };
        let mut row = vec![
            name.clone(),
            if front.contains(name) { "yes".to_owned() } else { String::new() },
            size.observed.len().to_string(),
            with_interval(size, Quantity::Bytes),
            with_interval(backup, Quantity::Seconds),
            with_interval(restore, Quantity::Seconds),
            cpu("backup"),
            cpu("restore"),
            shown("peak-disk", Quantity::Bytes),
        ];
        row.extend(rto.map(|seconds| rto::measured(restore, seconds)));
        table.rows.push(row);
    }
    table
}

/// The median, with its interval; of fewer than six trials, with the least and the greatest value.
fn with_interval(row: &Dot, quantity: Quantity) -> String {
    let text = |value: f64| quantity.text(value);
    let range = || {
        let (low, high) =
            (row.observed.iter().copied().reduce(f64::min)?, row.observed.iter().copied().reduce(f64::max)?);
        (row.observed.len() > 1 && row.observed.len() < FEWEST).then_some((low, high))
    };
    match row.interval.or_else(range) {
        Some((low, high)) if text(low) != text(high) => {
            format!("{} ({} to {})", text(row.value), text(low), text(high))
        }
        _ => text(row.value),
    }
}

/// Ways that have no result.
fn missing(run: &Run, ways: &[String]) -> Option<String> {
    let planned = run.plan["ways"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<&str> = planned.filter(|way| !ways.iter().any(|known| known == way)).collect();
    let reason = if run.status == Status::Done { "" } else { "; the notes have the reason" };
    (!missing.is_empty()).then(|| format!("Without a result: {}{reason}.", missing.join(", ")))
}

/// How the content of each restored backup was compared.
fn verification(run: &Run, ways: &[String]) -> Option<Section> {
    let mut table = Table::new(&[
        "way",
        "rows",
        "tables",
        "number of rows",
        "sequences",
        "large objects",
        "constraints",
        "B-tree indexes (amcheck)",
        "other databases",
    ]);
    let mut is_compared = true;
    for way in ways {
        let of_way = run.trials.iter().filter(|trial| trial.config == *way);
        let found: Vec<&Value> = of_way
            .flat_map(|trial| &trial.events)
            .filter(|event| event.what["event"] == "verified")
            .map(|event| &event.what["verified"])
            .collect();
        // Of all trials the weakest proof.
        let weakest = found.iter().find(|verified| verified["witness"] == "changed").or(found.last());
        let Some(verified) = weakest else { continue };
        is_compared &= verified["witness"] != "changed";
        let number = |field: &str| verified[field].as_u64().map_or_else(|| "–".to_owned(), grouped);
        let how = match verified["witness"].as_str() {
            Some("same-snapshot") => "hashes are those of the dumped snapshot".to_owned(),
            Some("unchanged") => {
                "hashes are those of the original, in which no transaction ran meanwhile".to_owned()
            }
            Some("point-in-time") => {
                "hashes are those of the target time; all rows committed before are there, and none committed after"
                    .to_owned()
            }
            Some("changed") => "read, not compared: transactions ran in the original".to_owned(),
            _ => text(&verified["witness"]),
        };
        table.add([
            way.clone(),
            how,
            number("tables"),
            number("rows"),
            number("sequences"),
            number("large_objects"),
            number("constraints"),
            number("indexes"),
            // Only the first trial has them.
            found
                .iter()
                .filter_map(|verified| verified["other_databases"].as_array())
                .map(|names| names.len() as u64)
                .max()
                .map_or_else(|| "–".to_owned(), grouped),
        ]);
    }
    if table.rows.is_empty() {
        return None;
    }
    let text = if is_compared {
        "Each backup was restored. The restored rows are equal to the original, constraints are valid, and indexes sound."
    } else {
        "Each backup was restored. For some, pgrig could not compare the rows, because the original changed meanwhile."
    };
    let others = "Other databases of a base backup were read in the restored server, and not compared with the original.";
    let has_others =
        table.rows.iter().any(|row| row.last().is_some_and(|number| number != "–" && number != "0"));
    let text = [Some(text), has_others.then_some(others)].into_iter().flatten().map(ToOwned::to_owned);
    Some(Section {
        text: text.collect(),
        first: Some(("Proof of each way".to_owned(), table)),
        ..Section::new("Verification", Vec::new())
    })
}
