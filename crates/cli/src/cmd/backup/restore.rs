//! `pgrig backup check --restore`: the restore, and the text of its result.

use std::fmt::Write;

use backup::check::restore::{Restored, restore};
use backup::check::{Outcome, Plan};
use measure::human::{counted, grouped, time};
use pgserver::Home;
use tokio::runtime::Builder;

use crate::app::failure::Failure;
use crate::app::interrupt::{self, interrupted};
use crate::app::printer::Printer;
use crate::cmd::backup::args::CheckArgs;
use crate::cmd::backup::check::SHOWN;

/// Restores the backup and prints the result.
pub(super) fn run(
    arguments: &CheckArgs,
    plan: &Plan,
    outcome: &Outcome,
    printer: &Printer,
) -> Result<Restored, Failure> {
    let home = Home::locate()?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let request = arguments.restore_request(&home);
    let tell = |text: &str| printer.say(text);
    let work = async {
        let restored = restore(plan, outcome, &request, &tell, interrupted(printer)).await?;
        Ok::<_, Failure>(restored)
    };
    let restored = interrupt::block_on(runtime, printer, Box::pin(work))?;
    printer.result(text(&restored))?;
    Ok(restored)
}

fn text(restored: &Restored) -> String {
    let mut lines = vec![summary(restored)];
    for failure in restored.failures.iter().take(SHOWN) {
        lines.push(format!("  error: {failure}"));
    }
    let hidden = restored.failures.len().saturating_sub(SHOWN) as u64 + restored.more;
    if hidden > 0 {
        lines.push(format!("  and {} more (--json FILE lists up to 1,000)", grouped(hidden)));
    }
    if !restored.missing_roles.is_empty() {
        lines.push(format!(
            "  the backup uses roles that it does not create: {}; first restore the output of pg_dumpall --roles-only",
            restored.missing_roles.join(", ")
        ));
    }
    if !restored.missing_tablespaces.is_empty() {
        lines.push(format!(
            "  the backup uses tablespaces that it does not create: {}; create them first, or make the dump with --no-tablespaces",
            restored.missing_tablespaces.join(", ")
        ));
    }
    lines.join("\n")
}

fn summary(restored: &Restored) -> String {
    let errors = counted(restored.failures.len() as u64 + restored.more, "error");
    // Without a server, nothing was read.
    let Some(version) = restored.server.split_whitespace().next() else {
        return if restored.is_sound() { "restored".to_owned() } else { format!("not restored: {errors}") };
    };
    let with = if restored.is_sound() { String::new() } else { format!(" with {errors}") };
    let indexes = restored.indexes.map_or("no amcheck".to_owned(), |indexes| {
        let noun = if indexes == 1 { "index" } else { "indexes" };
        format!("{} sound B-tree {noun} (amcheck)", grouped(indexes))
    });
    let mut text = format!(
        "restored into PostgreSQL {version}{with} in {}: {} in {}, {}, {indexes}",
        time(restored.seconds),
        counted(restored.rows, "row"),
        counted(restored.tables, "table"),
        counted(restored.constraints, "valid constraint"),
    );
    if restored.databases > 1 {
        let _ = write!(text, ", in {}", counted(restored.databases, "database"));
    }
    if restored.other_order > 0 {
        let _ = write!(
            text,
            "; B-tree indexes not checked, because this machine has their collation in another version (REINDEX them after a restore here): {}",
            grouped(restored.other_order)
        );
    }
    if restored.other_indexes > 0 {
        let _ = write!(text, "; indexes of other kinds, not checked: {}", grouped(restored.other_indexes));
    }
    text
}
