//! The parts of recoveries to a point in time as text.

use std::fmt::Write;

use backup::{Outcome, Recovery, Trial};
use measure::human::{bytes, grouped, time};
use measure::{Median, Sample};

use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::backup::text::whole;

/// Base backup, WAL, restore and replay apart, for each size of data; none without recoveries.
pub(super) fn parts(outcome: &Outcome) -> Option<String> {
    let mut groups: Vec<Vec<&Trial>> = Vec::new();
    for trial in outcome.trials.iter().filter(|trial| trial.recovery.is_some()) {
        match groups.iter_mut().find(|group| (&group[0].way, group[0].at) == (&trial.way, trial.at)) {
            Some(group) => group.push(trial),
            None => groups.push(vec![trial]),
        }
    }
    groups.sort_by_key(|group| (group[0].way.to_string(), group[0].at.map(|at| at.bytes)));
    groups.first()?;
    let header = ["way", "data", "base", "WAL", "restore", "replay", "replayed", "per second"];
    let mut table = new_table(&header);
    let (mut before, mut after) = (0, 0);
    for group in &groups {
        let parts: Vec<&Recovery> = group.iter().filter_map(|trial| trial.recovery.as_ref()).collect();
        let median = |value: &dyn Fn(&Recovery) -> f64| {
            let sample = Sample::new(parts.iter().map(|part| value(part)).collect());
            sample.map_or(0.0, |sample| Median::of(&sample).median)
        };
        let size = |value: &dyn Fn(&Recovery) -> f64| bytes(whole(median(value)));
        before += parts.iter().map(|part| part.before).sum::<u64>();
        after += parts.iter().map(|part| part.after).sum::<u64>();
        table.add_row([
            group[0].way.to_string(),
            group[0].at.map_or(String::new(), |at| bytes(at.bytes)),
            size(&|part| part.base_size as f64),
            size(&|part| part.wal_size as f64),
            time(median(&|part| part.files)),
            time(median(&|part| part.replay)),
            size(&|part| part.replayed as f64),
            size(&Recovery::rate),
        ]);
    }
    align_right(&mut table, 1..header.len());
    let mut text = format!(
        "\nrecovery to a point in time, medians: size and restore above include both parts\n{}",
        trimmed(&table)
    );
    let _ = write!(
        text,
        "\n  {} rows of the table of commit times were committed before the target times, and all are present; {} were committed later, \
         and none is present",
        grouped(before),
        grouped(after)
    );
    Some(text)
}
