//! `pgrig backup check`: plan → check → verdict.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use backup::check::restore::Restored;
use backup::check::{self, Outcome, Plan, Verdict};
use measure::human::{bytes, counted, grouped};

use crate::app::failure::{BadResult, Failure};
use crate::app::json;
use crate::app::numbers::clock;
use crate::app::output::{Existing, refuse_unwritable, whole};
use crate::app::printer::{Printer, ProgressStyle};
use crate::cmd::backup::args::CheckArgs;
use crate::cmd::backup::restore;

/// Interval of progress, and the time before the first line.
const INTERVAL: Duration = Duration::from_secs(5);
/// Damages that are printed.
pub(super) const SHOWN: usize = 20;

pub(super) fn run(arguments: &CheckArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(file) = arguments.json.as_deref().filter(|file| *file != "-") {
        refuse_unwritable("--json", Path::new(file), Existing::Replaced)?;
    }
    arguments.refuse_restores()?;
    let plan = check::plan(&arguments.request())?;
    if arguments.restore {
        check::restore::check_possible(&plan, arguments.bin.as_deref())?;
    }
    let outcome = watched(&plan, printer)?;
    printer.result(text(&outcome))?;
    let is_to_file = arguments.json.as_deref().is_some_and(|name| name != "-");
    let restored = if arguments.restore && outcome.verdict() != Verdict::Damaged {
        if is_to_file {
            // If the restore does not come to its end, no document of an earlier check stays.
            save(arguments, &plan, &outcome, None)?;
        }
        Some(restore::run(arguments, &plan, &outcome, printer)?)
    } else {
        None
    };
    save(arguments, &plan, &outcome, restored.as_ref())?;
    let name =
        if plan.path == Path::new("-") { "standard input".into() } else { plan.path.to_string_lossy() };
    if outcome.verdict() == Verdict::Damaged {
        let more = if arguments.restore { ", so pgrig did not restore it" } else { "" };
        return Err(BadResult::Missed(vec![format!("{name} is damaged{more}")]).into());
    }
    if restored.is_some_and(|restored| !restored.is_sound()) {
        return Err(BadResult::Missed(vec![format!("{name} cannot be restored without errors")]).into());
    }
    Ok(())
}

/// Writes the document, if one is asked for.
fn save(
    arguments: &CheckArgs,
    plan: &Plan,
    outcome: &Outcome,
    restored: Option<&Restored>,
) -> Result<(), Failure> {
    let Some(name) = &arguments.json else { return Ok(()) };
    let document = json::pretty(&document(plan, outcome, restored)?)?;
    if name == "-" {
        return Ok(Printer::json(&document)?);
    }
    Ok(whole(Path::new(name), (document + "\n").as_bytes(), Existing::Replaced)?)
}

/// Checks in a thread of its own, and tells of progress. A signal ends pgrig at once: nothing is written.
fn watched(plan: &Plan, printer: &Printer) -> Result<Outcome, Failure> {
    let read = Arc::new(AtomicU64::new(0));
    let (done, ended) = channel();
    let (own_plan, counted) = (plan.clone(), Arc::clone(&read));
    let thread = std::thread::Builder::new().name("check".to_owned());
    thread.spawn(move || {
        // The receiver is gone if pgrig ends.
        done.send(check::check(&own_plan, &counted)).ok();
    })?;
    let began = Instant::now();
    loop {
        match ended.recv_timeout(INTERVAL) {
            Ok(outcome) => return Ok(outcome?),
            Err(RecvTimeoutError::Timeout) => {
                if printer.progress() != ProgressStyle::None {
                    printer.say(progress(plan, read.load(Ordering::Relaxed), began.elapsed().as_secs_f64()));
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(std::io::Error::other("the check ended without a result").into());
            }
        }
    }
}

fn progress(plan: &Plan, read: u64, seconds: f64) -> String {
    let rate = read as f64 / 1e6 / seconds;
    let text = format!("{} read, {rate:.0} MB/s", bytes(read));
    match plan.bytes.filter(|all| read > 0 && *all > read) {
        Some(all) => {
            let left = seconds * (all - read) as f64 / read as f64;
            format!("{} %: {text}, {} left", read * 100 / all, clock(left))
        }
        None => text,
    }
}

fn text(outcome: &Outcome) -> String {
    let mut lines = vec![format!("{}: {}", outcome.verdict(), described(outcome))];
    for damage in outcome.damages.iter().take(SHOWN) {
        lines.push(format!("  damage: {damage}"));
    }
    let hidden = outcome.damages.len().saturating_sub(SHOWN) as u64 + outcome.more;
    if hidden > 0 {
        lines.push(format!("  and {} more (--json FILE lists up to 1,000)", grouped(hidden)));
    }
    if outcome.verdict() == Verdict::NoDamageFound {
        lines.push("pgrig cannot verify these parts:".to_owned());
        let mut remedies: Vec<&str> = Vec::new();
        for gap in &outcome.gaps {
            lines.push(format!("  {}", gap.part));
            if !remedies.contains(&gap.remedy.as_str()) {
                remedies.push(&gap.remedy);
            }
        }
        lines.push("remedies:".to_owned());
        lines.extend(remedies.iter().map(|remedy| format!("  {remedy}")));
    }
    lines.join("\n")
}

/// The kind, and the amount that was read.
fn described(outcome: &Outcome) -> String {
    if outcome.kind.is_empty() {
        return "a backup of unknown kind".to_owned();
    }
    let mut parts = match &outcome.server {
        Some(version) => vec![format!("{}, of PostgreSQL {version}", outcome.kind)],
        None => vec![outcome.kind.clone()],
    };
    if let (Some(tables), Some(rows)) = (outcome.tables, outcome.rows) {
        let of_copy = format!("{} in {}", counted(rows, "row"), counted(tables, "table"));
        parts.push(match (outcome.has_inserts, rows) {
            (false, _) => of_copy,
            (true, 0) => "rows as INSERT, which pgrig does not count".to_owned(),
            (true, _) => format!("{of_copy}, further rows as INSERT, which pgrig does not count"),
        });
    }
    if outcome.large_objects > 0 {
        parts.push(counted(outcome.large_objects, "large object"));
    }
    if outcome.wal > 0 {
        parts.push(format!("{} of WAL", bytes(outcome.wal)));
    }
    let files =
        if outcome.files > 1 { format!(" in {}", counted(outcome.files, "file")) } else { String::new() };
    format!("{}; {} read{files}", parts.join(", "), bytes(outcome.bytes))
}

fn document(
    plan: &Plan,
    outcome: &Outcome,
    restored: Option<&Restored>,
) -> Result<serde_json::Value, Failure> {
    let mut document = json::value(outcome)?;
    document["path"] = json::value(&plan.path)?;
    document["verdict"] = json::value(outcome.verdict())?;
    if let Some(restored) = restored {
        document["restored"] = json::value(restored)?;
    }
    Ok(document)
}
