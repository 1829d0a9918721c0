//! Results of a ladder for people.

use comfy_table::{CellAlignment, Table, presets};
use measure::human::bytes;
use measure::{Note, Sample, Trial};
use server::Survey;

use crate::app::table::trimmed;
use crate::cmd::fill::ladder::Rung;

/// Notes on influences on the comparison other than the levels.
pub(crate) fn cautions(size: u64, survey: &Survey) -> Vec<Note> {
    let memory = survey.environment.client.memory;
    let is_local = survey.environment.server_is_local == Some(true);
    let mut texts = Vec::new();
    if is_local && size < memory {
        texts.push(format!(
            "{} fit the page cache of this machine ({} of memory): give a size several times the memory to \
             measure the disk",
            bytes(size),
            bytes(memory)
        ));
    }
    if !is_local {
        texts.push(
            "the server is on another machine: its page cache may hold all data of this size, and pgrig cannot \
             flush it between trials. Give a SIZE several times the server's memory"
                .to_owned(),
        );
    }
    texts.into_iter().map(|text| Note { text }).collect()
}

/// The article's results table: every level fills the same size, so that a level without indexes makes
/// more rows instead of less data.
pub(crate) fn table(rungs: &[Rung], trials: &[Trial], survey: &Survey) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "level",
        "",
        "seconds",
        "from",
        "to",
        "size",
        "MB/s",
        "times level 1",
    ]);
    let plain = rungs.iter().find(|rung| rung.name == "1").and_then(|rung| rate(rung, trials));
    for rung in rungs {
        let (Some(seconds), Some(rate)) = (seconds(rung, trials), rate(rung, trials)) else { continue };
        let times = plain.map_or(String::new(), |plain| format!("{:.2}", rate / plain));
        table.add_row([
            rung.shown(),
            rung.phrase.clone(),
            format!("{:.2}", seconds.median()),
            format!("{:.2}", seconds.lowest()),
            format!("{:.2}", seconds.highest()),
            bytes(size(rung, trials)),
            format!("{:.0}", rate / 1e6),
            times,
        ]);
    }
    for column in 2..8 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let server = survey.environment.server.release();
    format!(
        "{}\n\n{server}; medians of trials; MB/s of finished tables and indexes. A level's flags: pgrig fill SIZE \
         --level N --explain",
        trimmed(&table)
    )
}

fn of<'t>(rung: &'t Rung, trials: &'t [Trial], name: &'t str) -> impl Iterator<Item = f64> + 't {
    trials.iter().filter(|trial| trial.config == rung.name).filter_map(move |trial| trial.value(name))
}

fn seconds(rung: &Rung, trials: &[Trial]) -> Option<Sample> {
    Sample::new(of(rung, trials, "total").collect())
}

/// Bytes of finished tables and indexes; much the same in each trial.
fn size(rung: &Rung, trials: &[Trial]) -> u64 {
    let total = of(rung, trials, "heap").zip(of(rung, trials, "index")).map(|(heap, index)| heap + index);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size that was observed")]
    Sample::new(total.collect()).map_or(0, |sample| sample.median() as u64)
}

/// Bytes per second at the median.
fn rate(rung: &Rung, trials: &[Trial]) -> Option<f64> {
    Some(size(rung, trials) as f64 / seconds(rung, trials)?.median())
}
