//! The longest waits of readers and writers while a migration runs.

use serde_json::Value;

use super::{MOST, Statement};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Plot};
use crate::quantity::Quantity;
use crate::sections::Section;
use crate::sections::tps::text;

/// A wait of a reader or writer.
struct Wait {
    statement: String,
    short: String,
    /// Reader or writer.
    who: &'static str,
    table: String,
    seconds: f64,
    /// Seconds of it in which it waited for a lock.
    lock: f64,
}

/// Readers and writers beside the migration; and the queue behind a transaction that the migration waits for.
pub(super) fn sections(statements: &[Statement], blocker: Option<f64>) -> Vec<Section> {
    let meanwhile = plot(
        &waits(statements, |one| one.stall),
        "stalls",
        "Longest waits of readers and writers",
        "The migration ran on the largest measured size, while readers and writers of its largest tables were sent a statement \
         every 2 ms. For each statement of the migration, the plot shows the longest wait of a reader and of a writer for an \
         answer.",
    );
    let open =
        blocker.map_or_else(String::new, |seconds| format!(" for {}", Quantity::Elapsed.text(seconds)));
    let queue = plot(
        &waits(statements, |one| one.blocked),
        "queue",
        "Queue behind an open transaction",
        &format!(
            "The same while a transaction that has read the tables stays open{open} (--blocker): the migration waits for it, and \
             readers and writers wait behind the migration."
        ),
    );
    let plots: Vec<Plot> = [meanwhile, queue].into_iter().flatten().collect();
    (!plots.is_empty())
        .then(|| Section::new("Readers and writers during the migration", plots))
        .into_iter()
        .collect()
}

fn waits<'a>(statements: &[Statement<'a>], of: impl Fn(&Statement<'a>) -> Option<&'a Value>) -> Vec<Wait> {
    let mut found = Vec::new();
    // Statements on the session or the transaction meet the end of earlier waits.
    for one in statements.iter().filter(|one| one.found.is_some()) {
        let Some(stall) = of(one) else { continue };
        for (who, wait) in [("reader", &stall["read"]), ("writer", &stall["write"])] {
            if let (Some(seconds), Some(lock)) = (wait["seconds"].as_f64(), wait["lock"].as_f64()) {
                found.push(Wait {
                    statement: one.name(),
                    short: one.short(),
                    who,
                    table: text(&wait["name"]),
                    seconds,
                    lock: lock.min(seconds),
                });
            }
        }
    }
    found
}

fn plot(waits: &[Wait], name: &str, title: &str, how: &str) -> Option<Plot> {
    let longest = waits.iter().max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    let caption = format!(
        "{how} The longest is {} of a {} of {}, {} of it for locks ({}).",
        Quantity::Seconds.text(longest.seconds),
        longest.who,
        longest.table,
        if longest.lock > 0.0 { Quantity::Seconds.text(longest.lock) } else { "nothing".to_owned() },
        longest.short
    );
    let row = |wait: &Wait| {
        let name = format!("{}, {}", wait.statement, wait.who);
        (name, vec![Some(wait.lock), Some(wait.seconds - wait.lock)])
    };
    // Of a long migration, the statements with the longest waits.
    let mut drawn: Vec<&Wait> = waits.iter().collect();
    if drawn.len() > MOST {
        let mut sorted: Vec<f64> = waits.iter().map(|wait| wait.seconds).collect();
        sorted.sort_by(|one, other| other.total_cmp(one));
        drawn.retain(|wait| wait.seconds >= sorted[MOST - 1]);
    }
    let axis = Axis::new("time from the scheduled start to the answer", Quantity::Seconds, Spread::Linear);
    let groups = vec!["waiting for locks".to_owned(), "slower for other reasons".to_owned()];
    let rows = drawn.into_iter().map(row).collect();
    Some(Plot::new(name, title, caption, Chart::Parts(Bars { axis, groups, rows })))
}
