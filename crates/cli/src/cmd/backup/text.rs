//! Plan and results as text.

use std::fmt::Write;

use backup::{BACKUP_RATE, Cpu, Outcome, Plan, RESTORE_RATE, Sizes, Summary, Witness};
use measure::human::{bytes, counted, grouped, time};
use measure::{IntervalKind, Median};
use server::machine::memory;

use crate::app::numbers::clock;
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::backup::{incremental, load};

/// Seconds in which the kernel counts the CPU time of servers.
const TICK: f64 = 0.01;

/// The plan.
pub(super) fn plan(plan: &Plan) -> String {
    let Plan { database, bytes: size, programs, trials, seconds, .. } = plan;
    let ways: Vec<String> = plan.ways.iter().map(ToString::to_string).collect();
    let (data, each) = match &plan.sizes {
        None => (format!("database   {database}, {}; pgrig only reads it", bytes(*size)), ""),
        Some(sizes) => (data(database, sizes), " at each size"),
    };
    let mut text = format!(
        "plan\n  {data}\n  programs   {} in {}\n  ways       {}\n  trials     {trials} of each{each}, in rounds\n  time       about {}, at \
         assumed speeds (backup {:.0} MB/s, restore {:.0} MB/s)",
        programs.version,
        programs.dir.display(),
        ways.join("\n             "),
        roughly(*seconds),
        BACKUP_RATE / 1e6,
        RESTORE_RATE / 1e6
    );
    if let Some(load) = &plan.load {
        let _ = write!(text, "\n  load       {}", load::described(load));
    }
    if plan.load_beside_dumps().is_some() {
        text += "\n  snapshot   runs the load again beside a snapshot like that of a dump";
    }
    text += &network(plan);
    if plan.sizes.is_some() {
        return text + &left_out(plan);
    }
    if plan.ways.iter().any(|way| !way.is_base()) {
        text += "\n  locks      ACCESS SHARE on all tables until the end: they block no reads and writes, but most ALTER TABLE";
    }
    if plan.ways.iter().any(backup::Way::is_base) {
        let _ = write!(
            text,
            "\n  server     a base backup holds all its databases, {}; it begins with a checkpoint",
            bytes(plan.server_bytes)
        );
    }
    text + &left_out(plan)
}

/// A time that is only estimated: in days from two days on.
fn roughly(seconds: f64) -> String {
    let days = seconds / 86_400.0;
    if days < 2.0 { clock(seconds) } else { format!("{days:.0} days") }
}

/// The line about network bytes; empty if they are not counted.
fn network(plan: &Plan) -> String {
    if !plan.network {
        return String::new();
    }
    let recovers = plan.ways.iter().any(backup::Way::recovers);
    let load = if recovers { ", and for recoveries one more load" } else { "" };
    format!("\n  network    counts network bytes: one more backup in each way{load}")
}

fn left_out(plan: &Plan) -> String {
    let mut text = String::new();
    for (ways, why) in plan.left_out_by_reason() {
        let _ = write!(text, "\n  left out   {ways}: {why}");
    }
    text
}

/// The data that pgrig makes.
fn data(origin: &str, sizes: &Sizes) -> String {
    let measured: Vec<String> = sizes.measured.iter().map(|size| bytes(*size)).collect();
    let memory = memory();
    let lack = if sizes.lack_backup_times(memory) {
        "; with this --up-to, pgrig cannot forecast backup and restore times, and perhaps not the disk space of dumps: it will print the \
         --up-to that you need"
    } else if sizes.lack_restore_times(memory) {
        "; with this --up-to, pgrig cannot forecast restore times, and perhaps not the disk space of dumps: it will print the --up-to \
         that you need"
    } else {
        ""
    };
    format!(
        "data       {origin}: {}, each on a server of pgrig's own, PostgreSQL {}\n  forecast   for {} of tables and indexes{lack}",
        measured.join(", "),
        sizes.major,
        bytes(sizes.forecast)
    )
}

/// The results: two tables, and the verified properties.
pub(super) fn results(outcome: &Outcome, plan: &Plan) -> Vec<String> {
    let all = outcome.summaries(&plan.ways);
    if all.is_empty() {
        return Vec::new();
    }
    let mut texts = vec![costs(&all, plan.trials), further(&all, plan)];
    texts.extend(incremental::parts(outcome));
    texts.push(verified(&all));
    texts.extend(super::beside::text(&all));
    texts
}

/// Size and times of each way, of which so many trials were planned.
fn costs(all: &[Summary], planned: u32) -> String {
    let mut table = new_table(&["", "way", "size", "backup", "", "restore", ""]);
    for one in all {
        table.add_row([
            if one.is_front { "*" } else { "" }.to_owned(),
            one.way.to_string(),
            bytes(whole(one.size.median)),
            time(one.backup.median),
            range(&one.backup),
            time(one.restore.median),
            range(&one.restore),
        ]);
    }
    align_right(&mut table, 2..4);
    align_right(&mut table, 5..6);
    let mut text = trimmed(&table)
        + &format!(
            "\n\n{}\n* no other way is better in size, backup or restore without being worse in another of them",
            spread(all)
        );
    for one in all.iter().filter(|one| one.backup.trials < planned as usize) {
        let _ = write!(text, "\n  {}: only {} of {planned} trials", one.way, one.backup.trials);
    }
    text
}

/// The meaning of the ranges. A way that was cut short has fewer trials than others.
fn spread(all: &[Summary]) -> &'static str {
    let is_confident = |one: &&Summary| matches!(one.backup.interval.kind, IntervalKind::Confidence { .. });
    let confident = all.iter().filter(is_confident).count();
    if all.iter().all(|one| one.backup.trials == 1) {
        "one trial each"
    } else if confident == all.len() {
        "medians; each interval contains the true median in 95 of 100 cases"
    } else if confident == 0 {
        "medians, with the least and the greatest value (six trials give 95 % intervals)"
    } else {
        "medians, from six trials on with an interval that contains the true median in 95 of 100 cases, otherwise with the least and the greatest value"
    }
}

/// CPU time and disk space of each way; the bytes between server and client programs, if they were counted.
pub(super) fn further(all: &[Summary], plan: &Plan) -> String {
    let mut header = vec!["way", "CPU of backup", "CPU of restore", "peak of disk"];
    header.extend(plan.network.then_some("network"));
    let mut table = new_table(&header);
    for one in all {
        let disk = bytes(whole(one.peak_disk.median));
        let mut row = vec![one.way.to_string(), cpu(&one.backup_cpu), cpu(&one.restore_cpu), disk];
        row.extend(plan.network.then(|| counted_bytes(one)));
        table.add_row(row);
    }
    align_right(&mut table, 1..header.len());
    let mut text = format!("\n{}\nCPU: client programs + server", trimmed(&table));
    if all.iter().any(|one| one.backup_cpu.server.is_none()) {
        text += " (–: not known, because pgrig cannot see the processes of this server)";
    }
    if plan.sizes.is_none() && all.iter().any(|one| one.backup_cpu.server.is_some()) {
        text += "; for the backup, the server's CPU time includes all its processes, also those of other sessions";
    }
    if plan.network {
        text += "\nnetwork: bytes from the server and to the server, in one more backup, which was not timed";
    }
    if all.iter().any(|one| one.network.is_some_and(|network| network.is_partial)) {
        text += "\nother path: most of the backup came by another path than the connections that the tool got from pgrig, for example from the \
                 server's files; in parentheses, the bytes of these connections";
    }
    text
}

/// The CPU time of a step: that of the client programs, and that of the server, which is counted in ticks.
fn cpu(of_step: &Cpu) -> String {
    let server = match &of_step.server {
        None => "–".to_owned(),
        Some(server) if server.median < TICK => format!("<{}", time(TICK)),
        Some(server) => time(server.median),
    };
    format!("{} + {server}", time(of_step.programs.median))
}

/// The bytes between server and client programs, in both directions together.
fn counted_bytes(one: &Summary) -> String {
    match one.network {
        None => "not counted".to_owned(),
        Some(network) if network.is_partial => format!("other path ({})", bytes(network.total())),
        Some(network) => bytes(network.total()),
    }
}

/// One sentence for each kind of proof.
pub(super) fn verified(all: &[Summary]) -> String {
    let mut text = "\nrestored and verified".to_owned();
    for (witness, how) in [
        (Witness::SameSnapshot, "each table has the same hash as in the dumped snapshot"),
        (
            Witness::Unchanged,
            "pg_verifybackup; each logged table has the same hash as in the original, in which no transaction ran meanwhile",
        ),
        (
            Witness::PointInTime,
            "pg_verifybackup; each logged table has the hash of the target time; all rows committed before that time are present, and \
             none committed after it",
        ),
        (
            Witness::Changed,
            "pg_verifybackup; transactions ran in the original meanwhile, so no rows were compared",
        ),
    ] {
        let (others, own): (Vec<&Summary>, Vec<&Summary>) =
            all.iter().filter(|one| one.verified.witness == witness).partition(|one| one.way.tool.is_some());
        for ways in [own, others] {
            text += &proof(&ways, how);
        }
    }
    text + &others(all)
}

/// The line about the other databases of base backups; empty without any.
fn others(all: &[Summary]) -> String {
    let read = |one: &Summary| one.verified.other_databases.len() as u64;
    let ways = all.iter().filter(|one| read(one) > 0).map(|one| one.way.to_string());
    let ways = ways.collect::<Vec<_>>().join(", ");
    let were = |number: u64| if number == 1 { "was" } else { "were" };
    match all.iter().map(read).max() {
        None | Some(0) => String::new(),
        Some(number) => format!(
            "\n  {ways}: {} {} read in the restored server, and not compared with the original",
            counted(number, "other database"),
            were(number)
        ),
    }
}

/// The sentence of ways with the same kind of proof; empty without ways. pg_verifybackup does not check what other tools restore.
fn proof(ways: &[&Summary], how: &str) -> String {
    let Some(first) = ways.first() else { return String::new() };
    let how = match (&first.way.tool, how.split_once("pg_verifybackup; ")) {
        (Some(_), Some((_, how))) => how,
        _ => how,
    };
    let names: Vec<String> = ways.iter().map(|one| one.way.to_string()).collect();
    let found = &first.verified;
    let (how, hidden) = if found.hidden > 0 && found.witness != Witness::Changed {
        let of_role = how.replacen("each logged table", "each logged table that the role may read", 1);
        (of_role, format!(" ({} not compared)", grouped(found.hidden)))
    } else {
        (how.to_owned(), String::new())
    };
    let indexes = found
        .indexes
        .map_or("no amcheck".to_owned(), |indexes| format!("amcheck of {} B-tree indexes", grouped(indexes)));
    let left_out = match found.other_order {
        0 => String::new(),
        count => {
            format!(", {} not checked: this machine has their collation in another version", grouped(count))
        }
    };
    let mut beside = String::new();
    for part in found.beside_tables() {
        let _ = write!(beside, ", {part}");
    }
    format!(
        "\n  {}: {how}; {} of {}{hidden}{beside}, {}, {indexes}{left_out}",
        names.join(", "),
        counted(found.rows, "row"),
        counted(found.tables, "table"),
        counted(found.constraints, "constraint")
    )
}

pub(super) fn range(median: &Median) -> String {
    if median.trials < 2 {
        return String::new();
    }
    format!("({}–{})", time(median.interval.low), time(median.interval.high))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "observed bytes")]
pub(super) fn whole(bytes: f64) -> u64 {
    bytes.max(0.0).round() as u64
}
