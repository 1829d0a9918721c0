//! Output of `pgrig testdb list` for people.

use jiff::{SignedDuration, Timestamp};
use measure::human::bytes;
use testdb::lend::{List, Listed, ListedOwner, ListedState};

use crate::app::failure::Failure;
use crate::app::printer::Printer;
use crate::app::table::{align_right, new_table, trimmed};

const COLUMNS: [&str; 7] = ["name", "state", "source", "owner", "age", "size", "expires in"];
/// Index of the first column that is aligned to the right.
const LENGTHS: usize = 4;
/// Longest command line, characters; longer ones are cut.
const COMMAND: usize = 40;

/// Prints the databases and the durability settings.
pub(crate) fn print(list: &List, printer: &Printer) -> Result<(), Failure> {
    if list.databases.is_empty() {
        printer.result("this role has no databases of pgrig testdb")?;
    } else {
        let now = Timestamp::now();
        let rows: Vec<_> = list.databases.iter().map(|database| row(database, now)).collect();
        // A column that is empty for all databases is left out.
        let is_shown = |column: usize| rows.iter().any(|row| !row[column].is_empty());
        let columns: Vec<usize> = (0..COLUMNS.len()).filter(|column| is_shown(*column)).collect();
        let mut table = new_table(&columns.iter().map(|column| COLUMNS[*column]).collect::<Vec<_>>());
        align_right(&mut table, columns.partition_point(|column| *column < LENGTHS)..columns.len());
        for row in &rows {
            table.add_row(columns.iter().map(|column| &row[*column]));
        }
        printer.result(trimmed(&table))?;
    }
    if !list.settings.is_empty() {
        printer.result(settings(&list.settings))?;
    }
    Ok(())
}

/// Values of SHOW, on one line.
pub(crate) fn settings(settings: &[(String, String)]) -> String {
    let shown: Vec<String> = settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    format!("server: {}", shown.join(", "))
}

fn row(database: &Listed, now: Timestamp) -> [String; 7] {
    let Listed { name, state, source, own, owner, created, bytes: size, expires } = database;
    // An unfinished database has no comment yet, so its age is unknown.
    let age = if *state == ListedState::Making { String::new() } else { length(now, *created, 1) };
    let state = if *own { state.to_string() } else { format!("{state} of another keeper") };
    [
        name.clone(),
        state,
        source.clone(),
        owner.as_ref().map_or_else(String::new, owned),
        age,
        size.map_or_else(String::new, bytes),
        expires.map_or_else(String::new, |expires| length(now, expires, -1)),
    ]
}

fn owned(owner: &ListedOwner) -> String {
    let Some(command) = &owner.command else {
        return format!("{}, not a process of this machine", owner.pid);
    };
    let cut: String = command.chars().take(COMMAND).collect();
    let ellipsis = if cut.len() < command.len() { "…" } else { "" };
    format!("{} {cut}{ellipsis}", owner.pid)
}

/// The time between the two moments as text; empty if it is negative. `sign` tells which of them
/// comes first.
fn length(now: Timestamp, unix_seconds: u64, sign: i32) -> String {
    let then = i64::try_from(unix_seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let length = then.map_or(SignedDuration::ZERO, |then| now.duration_since(then) * sign);
    let seconds = length.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86400),
    }
}
