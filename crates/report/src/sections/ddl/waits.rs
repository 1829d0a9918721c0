//! The longest waits of readers and writers while a migration runs.

use std::fmt::Write;

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

impl Wait {
    /// `reader of public.orders`, or the session of a statement of the user.
    fn session(&self) -> String {
        if self.table.contains('.') {
            format!("{} of {}", self.who, self.table)
        } else {
            format!("{} ({})", self.who, self.table)
        }
    }
}

/// A wait without a lock that is worth a word: the interval between two statements of a session is 2 ms.
const LATE: f64 = 0.02;

/// Readers and writers beside the migration; and the queue behind a transaction that the migration waits for.
pub(super) fn sections(statements: &[Statement], blocker: Option<f64>) -> Vec<Section> {
    let (alone, queued) = (waits(statements, |one| one.stall), waits(statements, |one| one.blocked));
    let reach = alone.iter().chain(&queued).map(|wait| wait.seconds).reduce(f64::max);
    let meanwhile = plot(
        &alone,
        reach,
        "stalls",
        "Longest waits of readers and writers",
        "The migration ran on the largest measured size, while pgrig sent readers and writers of its largest tables a statement every 2 \
         ms. For each statement of the migration, the plot shows the longest wait of a reader and of a writer for an \
         answer.",
    );
    let open =
        blocker.map_or_else(String::new, |seconds| format!(" for {}", Quantity::Elapsed.text(seconds)));
    let queue = plot(
        &queued,
        reach,
        "queue",
        "Queue behind an open transaction",
        &format!(
            "The same while a transaction that has read the tables stays open{open} (--blocker): the migration waits for it, and \
             readers and writers wait behind the migration. Both plots have the same scale."
        ),
    );
    let plots: Vec<Plot> = [meanwhile, queue].into_iter().flatten().collect();
    if plots.is_empty() {
        return Vec::new();
    }
    let mut section = Section::new("Readers and writers during the migration", plots);
    section.text.extend(late(statements, alone.iter().chain(&queued)));
    vec![section]
}

/// Where waits come from that are not for locks; none if there are no long ones.
fn late<'a>(statements: &[Statement], mut waits: impl Iterator<Item = &'a Wait>) -> Option<String> {
    waits.find(|wait| wait.seconds - wait.lock > LATE)?;
    let mut text = "pgrig sends each session a statement every 2 ms, and the session runs its statements one after the other. A \
        statement that takes longer, for example a commit that waits for the disk, delays the next statements. A wait includes this delay."
        .to_owned();
    // A statement on the session alone, such as SET, makes nobody wait.
    let idle = statements.iter().filter(|one| one.found.is_none() && one.failed.is_none()).find_map(|one| {
        let stall = one.stall?;
        let wait =
            ["read", "write"].iter().filter_map(|who| stall[who]["seconds"].as_f64()).reduce(f64::max)?;
        Some((one, wait))
    });
    if let Some((one, wait)) = idle.filter(|(_, wait)| *wait > LATE) {
        let _ = write!(
            text,
            " Even during {}, which does not touch the tables, the longest wait was {}: on this machine, the sessions were late without \
             the migration.",
            one.short(),
            Quantity::Seconds.text(wait)
        );
    }
    Some(text)
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

fn plot(waits: &[Wait], reach: Option<f64>, name: &str, title: &str, how: &str) -> Option<Plot> {
    let longest = waits.iter().max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    let caption = format!(
        "{how} The longest is {} of a {}, {} of it for locks ({}).",
        Quantity::Seconds.text(longest.seconds),
        longest.session(),
        if longest.lock > 0.0 { Quantity::Seconds.text(longest.lock) } else { "nothing".to_owned() },
        longest.short
    );
    let row = |wait: &Wait| {
        // The end of a long name is cut off: the statement's text is last.
        let (number, sql) = wait.statement.split_once(": ").unwrap_or(("", &wait.statement));
        let name = format!("{number}, {}: {sql}", wait.session());
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
    let axis = Axis { reach, ..axis };
    let groups = vec!["waiting for locks".to_owned(), "late for other reasons".to_owned()];
    let rows = drawn.into_iter().map(row).collect();
    Some(Plot::new(name, title, caption, Chart::Parts(Bars { axis, groups, rows })))
}
