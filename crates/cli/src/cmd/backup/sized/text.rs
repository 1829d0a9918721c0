//! Results of a forecast as text.

use std::fmt::Write;
use std::time::Duration;

use backup::{Figure, Forecast, Outcome, Plan, Rto, SizesRequest, Summary, Way};
use measure::human::{bytes, time};

use super::{again, held};
use crate::app::numbers::duration;
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::backup::text::{further, range, verified, whole};
use crate::cmd::backup::{incremental, load, pitr};

/// The limits of data that are made.
pub(super) fn caution(asked: &SizesRequest) -> String {
    if asked.shape.is_like_original {
        "pgrig made the rows from statistics, and replaced text of the original: compressed backups of the original may be larger or \
         smaller; compare with pgrig backup rehearse -d DBNAME"
            .to_owned()
    } else {
        format!(
            "the values of {} are artificial: sizes and times of compressed backups mislead, because real data compress differently; \
             give --model FILE or -d DBNAME",
            asked.shape.origin
        )
    }
}

/// Measured costs, forecasts as far as there are any, and the verified properties.
pub(super) fn results(outcome: &Outcome, plan: &Plan, asked: &SizesRequest) -> Vec<String> {
    if outcome.trials.is_empty() {
        return Vec::new();
    }
    let sizes = outcome.sizes();
    let all: Vec<Vec<Summary>> = sizes.iter().map(|size| outcome.at(*size).summaries(&plan.ways)).collect();
    let largest = at_largest(&all, &plan.ways);
    let measured = measured(&all, &sizes.iter().map(|size| size.bytes).collect::<Vec<_>>(), &plan.ways);
    let mut texts = vec![measured, further(&largest, plan)];
    texts.extend(incremental::parts(outcome));
    texts.extend(pitr::parts(outcome));
    texts.extend(asked.load.as_ref().and_then(|asked| load::text(asked, &outcome.wal)));
    texts.extend(held::text(outcome));
    texts.push(verified(&largest));
    if !outcome.forecasts.is_empty() {
        texts.push(forecasts(outcome, asked));
    }
    texts
}

/// Of each way its results at the largest size at which it was measured.
fn at_largest(all: &[Vec<Summary>], ways: &[Way]) -> Vec<Summary> {
    let of_way = |way: &Way| all.iter().rev().flatten().find(|one| one.way == *way).cloned();
    ways.iter().filter_map(of_way).collect()
}

/// The costs at each size.
fn measured(all: &[Vec<Summary>], sizes: &[u64], ways: &[Way]) -> String {
    let mut table = new_table(&["way", "data", "size", "backup", "", "restore", ""]);
    for way in ways {
        for (size, summaries) in sizes.iter().zip(all) {
            let Some(one) = summaries.iter().find(|one| one.way == *way) else { continue };
            table.add_row([
                one.way.to_string(),
                bytes(*size),
                bytes(whole(one.size.median)),
                time(one.backup.median),
                range(&one.backup),
                time(one.restore.median),
                range(&one.restore),
            ]);
        }
    }
    align_right(&mut table, 1..4);
    align_right(&mut table, 5..6);
    "measured\n".to_owned() + &trimmed(&table)
}

/// The forecasts, with the reasons why some are not known.
fn forecasts(outcome: &Outcome, asked: &SizesRequest) -> String {
    let forecasts = &outcome.forecasts;
    let front = outcome.forecast_front();
    let is_compared = front.iter().any(Option::is_some);
    let mut header: Vec<&str> = is_compared.then_some("").into_iter().collect();
    header.extend(["way", "size"]);
    header.extend(asked.price.map(|_| "a month"));
    header.extend(["backup", "restore", "disk"]);
    let rto = asked.rto.map(|rto| format!("RTO {}", duration(Duration::from_secs_f64(rto))));
    header.extend(rto.as_deref());
    let mut table = new_table(&header);
    let mut reasons: Vec<Reason> = Vec::new();
    for (one, is_front) in forecasts.iter().zip(&front) {
        let mark = if *is_front == Some(true) { "*" } else { "" };
        let mut row: Vec<String> = is_compared.then(|| mark.to_owned()).into_iter().collect();
        row.extend([one.way.to_string(), shown(one.size, &|size| bytes(whole(size)))]);
        row.extend(one.price.map(|price| shown(price, &money)));
        row.extend([shown(one.backup, &time), shown(one.restore, &time)]);
        row.push(shown(one.disk, &|disk| bytes(whole(disk))));
        row.extend(one.rto.map(|rto: Rto| rto.name().to_owned()));
        table.add_row(row);
        let figures =
            [("size", one.size), ("backup", one.backup), ("restore", one.restore), ("disk", one.disk)];
        for (name, figure) in figures {
            if let Some(why) = reason(name, figure, one) {
                add_reason(&mut reasons, one.way.to_string(), name, why);
            }
        }
    }
    let mut text = format!(
        "\nforecast for {} of tables and indexes, on a machine like this one; each interval should contain the true value in 90 of 100 cases\n{}\ndisk: the peak of disk space, of backup and restored server together",
        bytes(asked.size),
        trimmed(&table)
    );
    text += &meaning(forecasts, &front);
    for one in forecasts {
        let Some(day) = one.day else { continue };
        let _ = write!(
            text,
            "\n  {}: with the WAL of a day of the load, {}{}, which is replayed in {}",
            one.way,
            shown(day.wal, &|size| bytes(whole(size))),
            as_stored(day.stored),
            shown(day.replay, &time)
        );
    }
    if !reasons.is_empty() {
        text += "\n\nnot known";
        for Reason { ways, figures, why } in &reasons {
            let _ = write!(text, "\n  {}, {}: {why}", ways.join(", "), figures.join(" and "));
        }
    }
    if let Some(up_to) = needed(outcome, asked) {
        let _ = write!(text, "\n  {}", again::hint(&up_to));
    }
    text
}

/// The meaning of the marks; empty if no ways are compared.
fn meaning(forecasts: &[Forecast], front: &[Option<bool>]) -> String {
    if front.iter().all(Option::is_none) {
        return String::new();
    }
    let unknown = forecasts.iter().zip(front).filter(|(_, is_front)| is_front.is_none());
    let unknown: Vec<String> = unknown.map(|(one, _)| one.way.to_string()).collect();
    let but = match unknown.as_slice() {
        [] => String::new(),
        unknown => format!("; not compared, because a figure is not known: {}", unknown.join(", ")),
    };
    format!(
        "\n* by the forecast values, no other way is better in size, backup or restore without being worse in another of them{but}"
    )
}

/// The WAL of a day as a tool stores it.
fn as_stored(stored: Option<Figure>) -> String {
    match stored {
        Some(stored @ Figure::Value { .. }) => {
            format!(" ({} as the tool stores it)", shown(stored, &|size| bytes(whole(size))))
        }
        _ => String::new(),
    }
}

/// A figure with its interval.
pub(super) fn shown(figure: Figure, text: &dyn Fn(f64) -> String) -> String {
    match figure {
        Figure::Value { value, low, high } => format!("{} ({}–{})", text(value), text(low), text(high)),
        _ => "not known".to_owned(),
    }
}

/// Why figures are not known.
struct Reason {
    ways: Vec<String>,
    /// Their names, the same of each way.
    figures: Vec<&'static str>,
    why: String,
}

/// Adds that a figure of a way is not known; equal reasons stand in one line.
fn add_reason(reasons: &mut Vec<Reason>, way: String, name: &'static str, why: String) {
    let same = |reason: &&mut Reason| reason.why == why;
    if let Some(reason) = reasons.iter_mut().filter(same).find(|reason| reason.ways == [way.as_str()]) {
        reason.figures.push(name);
    } else if let Some(reason) = reasons.iter_mut().filter(same).find(|reason| reason.figures == [name]) {
        reason.ways.push(way);
    } else {
        reasons.push(Reason { ways: vec![way], figures: vec![name], why });
    }
}

/// Why a figure is not known.
fn reason(name: &str, figure: Figure, of: &Forecast) -> Option<String> {
    match figure {
        Figure::Value { .. } => None,
        Figure::Beyond { boundary, .. } => Some(format!(
            "from about {} on, {}; two of the measured sizes must be larger",
            bytes(boundary.at),
            boundary.cause.effect()
        )),
        Figure::TooFewSizes | Figure::TooSmall => Some(
            "it hardly grows between the measured sizes, or no more than runs differ; give a larger --up-to"
                .to_owned(),
        ),
        Figure::NotMeasured => Some(lacks(name, of).to_owned()),
    }
}

/// The part of a recovery that was not measured.
fn lacks(name: &str, of: &Forecast) -> &'static str {
    match name {
        _ if of.day.is_none() => {
            "it includes the WAL of a day of the load, which was not measured (a note has the reason)"
        }
        "restore" => {
            "the tool also fetches the WAL of a day, and pgrig measures only the time to fetch the WAL of the short load"
        }
        "disk" => {
            "the tool also fetches the WAL of a day, and pgrig measures only the disk space of the WAL of the short load"
        }
        _ => "its WAL command has added no data to {backup}, so the size of the WAL of a day is not known",
    }
}

/// The size that has to be measured for figures that are not known.
fn needed(outcome: &Outcome, asked: &SizesRequest) -> Option<String> {
    let beyond = |figure: Figure| match figure {
        Figure::Beyond { measure, .. } => Some(measure),
        _ => None,
    };
    let all = outcome.forecasts.iter().flat_map(|one| [one.backup, one.restore, one.disk]).filter_map(beyond);
    Some(rounded(outcome.up_to(all.max()?).min(asked.size)))
}

/// A size of two digits that is a little larger.
fn rounded(bytes: u64) -> String {
    let bytes = bytes + bytes / 50;
    let unit = if bytes >= 10_000_000_000 { ("GB", 1_000_000_000) } else { ("MB", 1_000_000) };
    let number = bytes.div_ceil(unit.1);
    let step = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    format!("{}{}", number.div_ceil(step) * step, unit.0)
}

/// Money without a currency.
fn money(amount: f64) -> String {
    let digits = match amount {
        100.0.. => 0,
        0.1..100.0 => 2,
        0.001..0.1 => 4,
        _ => 6,
    };
    format!("{amount:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(way: &str, restore: Figure) -> Forecast {
        let known = Figure::Value { value: 1.0, low: 1.0, high: 1.0 };
        let way = way.parse().unwrap();
        let (size, backup, disk) = (known, known, known);
        Forecast { way, bytes: 1, size, price: None, backup, restore, disk, day: None, held: None, rto: None }
    }

    #[test]
    fn ways_without_a_figure_are_not_compared() {
        let restore = |value| Figure::Value { value, low: value, high: value };
        let forecasts = vec![
            forecast("plain", restore(2.0)),
            forecast("custom", restore(1.0)),
            forecast("base", Figure::TooSmall),
        ];
        let outcome = Outcome { forecasts, ..Outcome::default() };
        let front = outcome.forecast_front();
        assert_eq!(front, [Some(false), Some(true), None]);
        let text = meaning(&outcome.forecasts, &front);
        assert!(
            text.starts_with("\n* by the forecast values, ") && text.ends_with("a figure is not known: base"),
            "{text}"
        );
        assert_eq!(meaning(&outcome.forecasts[..1], &[None]), "");
    }

    #[test]
    fn a_reason_names_its_ways_and_figures() {
        let mut reasons = Vec::new();
        for (way, name, why) in [
            ("custom:gzip", "backup", "from about 12.6 GB on"),
            ("custom:gzip", "restore", "it hardly grows"),
            ("base", "restore", "it hardly grows"),
            ("base", "disk", "it hardly grows"),
        ] {
            add_reason(&mut reasons, way.to_owned(), name, why.to_owned());
        }
        let shown: Vec<String> = reasons
            .iter()
            .map(|one| format!("{}, {}: {}", one.ways.join(", "), one.figures.join(" and "), one.why))
            .collect();
        assert_eq!(
            shown,
            [
                "custom:gzip, backup: from about 12.6 GB on",
                "custom:gzip, base, restore: it hardly grows",
                "base, disk: it hardly grows"
            ]
        );
    }

    #[test]
    fn sizes_to_measure_are_round_and_not_too_small() {
        for (bytes, text) in [(564_000_000, "580MB"), (14_500_000_000, "15GB"), (1_000_000, "2MB")] {
            assert_eq!(rounded(bytes), text);
        }
    }
}
