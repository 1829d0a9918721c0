//! Durations, numbers and intervals as people read them, where `measure::human` has none.

use std::time::Duration;

use measure::IntervalKind;
use measure::human::{grouped, latency};

/// Seconds as `7 s`, `3:05 min` or `2:10 h`.
pub(crate) fn clock(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration to display")]
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{}:{:02} min", whole / 60, whole % 60),
        _ => format!("{}:{:02} h", whole / 3600, whole % 3600 / 60),
    }
}

/// For people: `3.20 ms`, `10.0 s`, `2.5 min`.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        0..120 => latency(duration.as_secs_f64()),
        120..7200 => format!("{} min", rounded(duration.as_secs_f64() / 60.0)),
        _ => format!("{} h", rounded(duration.as_secs_f64() / 3600.0)),
    }
}

/// Three digits at least, whole from 100 on: `0.81`, `8.12`, `81.2`, `8,123`.
pub(crate) fn rounded(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number to be shown")]
    match number {
        ..9.995 => format!("{number:.2}"),
        ..99.95 => format!("{number:.1}"),
        _ => grouped(number.round() as u64),
    }
}

/// The interval beside a median, in words for the line below a table.
pub(crate) fn interval(kind: Option<IntervalKind>) -> String {
    match kind {
        Some(IntervalKind::Confidence { level }) => {
            format!(
                "the {:.0} % confidence interval of the median of this run (the median of another run may be outside)",
                level * 100.0
            )
        }
        _ => "the minimum and the maximum".to_owned(),
    }
}
