//! The parts of incremental backups as text.

use backup::{Increment, Outcome, Trial};
use measure::human::{bytes, time};
use measure::{Median, Sample};

use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::backup::text::whole;

/// Full backup, incremental backup and the combination apart, for each size of data; none without incremental backups.
pub(super) fn parts(outcome: &Outcome) -> Option<String> {
    let mut groups: Vec<Vec<&Trial>> = Vec::new();
    for trial in outcome.trials.iter().filter(|trial| trial.increment.is_some()) {
        match groups.iter_mut().find(|group| group[0].at == trial.at) {
            Some(group) => group.push(trial),
            None => groups.push(vec![trial]),
        }
    }
    groups.sort_by_key(|group| group[0].at.map(|at| at.bytes));
    let is_sized = groups.first()?[0].at.is_some();
    let mut header = if is_sized { vec!["data"] } else { Vec::new() };
    header.extend(["full", "", "incremental", "", "combine", "WAL between"]);
    let mut table = new_table(&header);
    for group in &groups {
        let median = |value: &dyn Fn(&Increment) -> f64| {
            let sample =
                Sample::new(group.iter().filter_map(|trial| trial.increment.as_ref()).map(value).collect());
            sample.map_or(0.0, |sample| Median::of(&sample).median)
        };
        let size = |value: &dyn Fn(&Increment) -> u64| bytes(whole(median(&|part| value(part) as f64)));
        let mut row: Vec<String> = group[0].at.iter().map(|at| bytes(at.bytes)).collect();
        row.extend([
            size(&|part| part.full_size),
            time(median(&|part| part.full)),
            size(&|part| part.size),
            time(median(&|part| part.seconds)),
            time(median(&|part| part.combine)),
            size(&|part| part.wal),
        ]);
        table.add_row(row);
    }
    align_right(&mut table, 0..header.len());
    Some(format!(
        "\nincremental backups, medians: size and backup above include both parts\n{}",
        trimmed(&table)
    ))
}
