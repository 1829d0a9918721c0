//! Notices about pgrig's own PostgreSQL, printed before a command uses it.

use pgserver::{Home, Running};

use crate::app::printer::Printer;

/// Says which server this is, where it lives, and if a crash may cost data.
pub(crate) fn announce(running: &Running, home: &Home, printer: &Printer) {
    printer.say(format!(
        "pgrig's own PostgreSQL {}, profile {}, in {}",
        running.version(),
        running.profile(),
        running.data_dir().display(),
    ));
    if let Some(moved) = home.relocated() {
        printer.say(format!(
            "the server's account cannot access {}, so the data is in {}",
            home.root().display(),
            moved.display(),
        ));
    }
    let off: Vec<&str> = DURABILITY.into_iter().filter(|name| is_off(running.settings(), name)).collect();
    if !off.is_empty() {
        let loss = if off == ["synchronous_commit"] {
            "A crash may lose the last transactions"
        } else {
            "A crash of the machine may destroy all data"
        };
        printer.danger(format!(
            "DANGEROUS: {} {} off. {loss} of this instance.",
            off.join(", "),
            if off.len() == 1 { "is" } else { "are" }
        ));
    }
}

/// Says that the instance exists only for a plan.
pub(crate) fn announce_temporary(instance: &str, printer: &Printer) {
    printer.say(format!(
        "instance {instance} did not exist: pgrig created it for this plan, and deletes it at the end; without --explain, pgrig \
         keeps it"
    ));
}

/// Settings that keep data through a crash.
const DURABILITY: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

/// Whether the setting is off. If it occurs several times, the last value counts. Spellings as in
/// PostgreSQL's parse_bool.
fn is_off(settings: &[(String, String)], name: &str) -> bool {
    let last = settings.iter().rev().find(|(set, _)| set.eq_ignore_ascii_case(name));
    last.is_some_and(|(_, value)| {
        let value = value.to_ascii_lowercase();
        ["off", "false", "no", "0", "of", "f", "fa", "fal", "fals", "n"].contains(&value.as_str())
    })
}
