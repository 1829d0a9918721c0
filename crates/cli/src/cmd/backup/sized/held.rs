//! The row versions that the snapshot of a dump keeps under the load, as text.

use std::fmt::Write;

use backup::{Figure, Forecast, Held, Outcome};
use measure::human::{bytes, counted, time};
use measure::{Median, Sample};

use super::text::shown;
use crate::cmd::backup::text::whole;

/// The measured versions, and those that each dump keeps until its end; none if they were not measured.
pub(super) fn text(outcome: &Outcome) -> Option<String> {
    let median = |value: &dyn Fn(&Held) -> f64| {
        let sample = Sample::new(outcome.held.iter().map(value).collect())?;
        Some(Median::of(&sample).median)
    };
    let mut text = format!(
        "\nsnapshot of a dump under the load, open for {}: VACUUM cannot remove {} of old row versions ({} an hour; {})",
        time(median(&|held| held.seconds)?),
        bytes(whole(median(&|held| held.dead as f64)?)),
        bytes(whole(median(&Held::per_hour)?)),
        counted(whole(median(&|held| held.rows as f64)?), "version"),
    );
    text += &of_dumps(&outcome.forecasts);
    Some(text)
}

/// A line for each dump with a forecast of its time.
fn of_dumps(forecasts: &[Forecast]) -> String {
    let of_dump = |one: &Forecast| match one.held? {
        held @ Figure::Value { .. } => {
            let dump = format!("a dump of {} takes {}", bytes(one.bytes), shown(one.backup, &time));
            Some((one.way.to_string(), dump, shown(held, &|size| bytes(whole(size)))))
        }
        _ => None,
    };
    let dumps: Vec<(String, String, String)> = forecasts.iter().filter_map(of_dump).collect();
    let ways = dumps.iter().map(|(way, ..)| way.chars().count()).max().unwrap_or(0);
    let times = dumps.iter().map(|(_, dump, _)| dump.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (way, dump, held) in &dumps {
        let _ = write!(text, "\n  {way:ways$}   {dump:times$} and keeps {held}");
    }
    text
}
