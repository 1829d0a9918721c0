//! Plan and results of a `blockio` for people.

use std::fmt::Write;

use blockio::{
    Baseline, Eviction, Mode, Plan, Rates, Reference, Request, Step, TOTAL, client_config, references,
};
use measure::human::{bytes, grouped, latency};
use measure::{Run, Sample, Trial};
use server::Survey;

use crate::app::disk::free_space;
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::blockio::args::BlockioArgs;

/// Most clients with a column each. If there are more, the fastest, the middle and the slowest are
/// shown.
const MOST_CLIENTS: usize = 6;

/// The plan: the steps and the space that they need.
pub(crate) fn plan(plan: &Plan, survey: &Survey) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    let release = survey.environment.server.release();
    line("server", format!("{release}, {}", survey.environment.transport));
    line("database", format!("{}, as role {}", survey.environment.database, survey.environment.role));
    let new = if plan.create_schema { ", a new schema" } else { "" };
    let rows = match plan.request.mode {
        Mode::Own => "rows of the same width on every server",
        Mode::Compat => "the rows of pg_settings, repeated",
    };
    let tables = match plan.request.clients {
        1 => "a table".to_owned(),
        clients => format!("{clients} tables, each"),
    };
    line("tables", format!("{tables} of {} rows in schema {}{new}", grouped(plan.rows), plan.schema));
    line("", rows.to_owned());
    let about = if plan.request.mode == Mode::Compat { "about " } else { "" };
    let (heap, index) = (plan.data(), plan.predicted.index * u64::from(plan.request.clients));
    line("size", format!("{about}{} and an index of about {}", bytes(heap), bytes(index)));
    for relation in relations(plan) {
        line("", relation);
    }
    line(
        "evicts",
        match &plan.eviction {
            Eviction::Extension { schema } => {
                format!("the table from shared_buffers, with pg_buffercache in schema {schema}")
            }
            Eviction::CreateExtension => {
                "the table from shared_buffers, with pg_buffercache, created for this run".to_owned()
            }
            Eviction::None { because } => format!("nothing: {because}"),
        },
    );
    line("disk", format!("up to {} at once; {}", bytes(plan.needed.total()), free_space(survey)));
    line("trials", plan.request.trials.to_string());
    let kept = if plan.request.keep { "kept until the next run" } else { "dropped at the end" };
    line("afterwards", format!("the tables are {kept}"));
    format!("plan\n{}", text.trim_end())
}

/// Ratio of the data to shared_buffers and memory.
fn relations(plan: &Plan) -> Vec<String> {
    let times = |whole: u64| plan.data() as f64 / whole.max(1) as f64;
    let buffers = format!(
        "{} times shared_buffers ({})",
        digits(times(plan.shared_buffers)),
        bytes(plan.shared_buffers)
    );
    let memory = match plan.memory {
        Some(memory) if times(memory) >= 2.0 => {
            format!("{} times the memory ({}): reads come from storage", digits(times(memory)), bytes(memory))
        }
        Some(memory) => format!(
            "{} times the memory ({}): the operating system may cache it",
            digits(times(memory)),
            bytes(memory)
        ),
        None => "pgrig does not know the server's memory, so it never marks data as cold: give --memory SIZE"
            .to_owned(),
    };
    vec![buffers, memory]
}

/// The results as tables.
pub(crate) fn results(plan: &Plan, run: &Run) -> String {
    let mut parts = Vec::new();
    if plan.request.mode == Mode::Compat {
        parts.push(collector(run));
    }
    parts.push(steps(plan, run));
    parts.extend(clients(plan, run));
    parts.extend(server_view(plan, run));
    parts.push(beside(plan, run));
    parts.extend(vacuum_rates(run));
    parts.join("\n\n")
}

/// Values of an observation in all trials, for all clients together.
fn sample(run: &Run, name: &str) -> Option<Sample> {
    of_config(run, TOTAL, name)
}

fn of_config(run: &Run, config: &str, name: &str) -> Option<Sample> {
    let of_config = run.trials.iter().filter(|trial| trial.config == config);
    Sample::new(of_config.filter_map(|trial| trial.value(name)).collect())
}

fn median(run: &Run, step: &Step, what: &str) -> Option<f64> {
    sample(run, &format!("{}-{what}", step.name)).map(|sample| sample.median())
}

/// The results table: a line for each step.
fn steps(plan: &Plan, run: &Run) -> String {
    let mut table = new_table(&["step", "median", "best", "worst", "MB/s", "hits", "I/O wait", "data"]);
    let none = || "-".to_owned();
    for step in plan.script() {
        let Some(seconds) = sample(run, step.name) else {
            let mut cells = vec![step.title.to_owned(), "left out".to_owned()];
            cells.resize_with(8, none);
            table.add_row(cells);
            continue;
        };
        let moved =
            median(run, step, "must-read").unwrap_or(0.0) + median(run, step, "must-write").unwrap_or(0.0);
        let touched = median(run, step, "hits").zip(median(run, step, "reads"));
        let reads_table = median(run, step, "must-read").is_some_and(|bytes| bytes > 0.0);
        let hits = touched.filter(|(hits, reads)| reads_table && hits + reads > 0.0);
        let waited = median(run, step, "read-time").zip(median(run, step, "write-time"));
        table.add_row([
            step.title.to_owned(),
            latency(seconds.median()),
            latency(seconds.lowest()),
            latency(seconds.highest()),
            if moved > 0.0 { rate(moved / seconds.median()) } else { none() },
            hits.map_or_else(none, |(hits, reads)| percent(hits / (hits + reads))),
            waited.map_or_else(none, |(read, write)| latency(read + write)),
            states(run, step).unwrap_or_else(none),
        ]);
    }
    align_right(&mut table, 1..7);
    let release = run.environment.server.release();
    let trials = match plan.request.trials {
        1 => "one trial".to_owned(),
        trials => format!("medians of {trials} trials"),
    };
    let heap = sample(run, "heap").map_or(0.0, |sample| sample.median());
    let index = sample(run, "index").map_or(0.0, |sample| sample.median());
    format!(
        "{}\n\n{release}; {trials}; table {}, index {}\nMB/s: bytes that a step must read and write; hits: blocks \
         found in shared_buffers;\nI/O wait: sum over all processes",
        trimmed(&table),
        whole_bytes(heap),
        whole_bytes(index)
    )
}

/// Source of the data, if it was the same in all trials; otherwise all sources.
fn states(run: &Run, step: &Step) -> Option<String> {
    let told = |trial: &Trial| {
        let of_step = trial
            .events
            .iter()
            .find(|event| event.what["event"] == "state" && event.what["step"] == step.name)?;
        let state = of_step.what["state"].as_str()?;
        Some(if state == "os-warm" { "OS-warm".to_owned() } else { state.to_owned() })
    };
    let mut all: Vec<String> = run.trials.iter().filter_map(told).collect();
    all.sort();
    all.dedup();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Each client's own time.
fn clients(plan: &Plan, run: &Run) -> Option<String> {
    let count = usize::from(plan.request.clients);
    if count < 2 {
        return None;
    }
    let mut header = vec!["step".to_owned()];
    if count <= MOST_CLIENTS {
        header.extend((1..=count).map(client_config));
    } else {
        header.extend(["fastest", "middle", "slowest"].map(str::to_owned));
    }
    let columns = header.len();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = new_table(&header);
    for step in plan.script() {
        let seconds: Vec<f64> = (1..=count)
            .filter_map(|client| Some(of_config(run, &client_config(client), step.name)?.median()))
            .collect();
        if seconds.len() < count {
            continue;
        }
        let mut cells = vec![step.title.to_owned()];
        if count <= MOST_CLIENTS {
            cells.extend(seconds.into_iter().map(latency));
        } else if let Some(all) = Sample::new(seconds) {
            cells.extend([all.lowest(), all.median(), all.highest()].map(latency));
        }
        table.add_row(cells);
    }
    align_right(&mut table, 1..columns);
    Some(format!("each client's own time, medians\n\n{}", trimmed(&table)))
}

/// Counters of the whole server: WAL, and pg_stat_io where it exists.
fn server_view(plan: &Plan, run: &Run) -> Option<String> {
    let has_io = plan.script().iter().any(|step| median(run, step, "io-reads").is_some());
    let mut header = vec!["server-wide", "WAL"];
    if has_io {
        header.extend(["read", "written", "extended", "fsyncs"]);
    }
    let mut table = new_table(&header);
    let shown = |bytes: Option<f64>| bytes.map_or_else(|| "-".to_owned(), whole_bytes);
    for step in plan.script() {
        let number = |what| median(run, step, what);
        let mut cells = vec![step.title.to_owned(), shown(number("wal"))];
        if has_io {
            cells.extend(["io-reads", "io-writes", "io-extends"].map(|what| shown(number(what))));
            cells.push(number("io-fsyncs").map_or_else(|| "-".to_owned(), |fsyncs| format!("{fsyncs:.0}")));
        }
        table.add_row(cells);
    }
    align_right(&mut table, 1..header.len());
    let is_told = plan.script().iter().any(|step| median(run, step, "wal").is_some());
    (is_told || has_io).then(|| trimmed(&table))
}

/// Comparison of this server with published machines.
fn beside(plan: &Plan, run: &Run) -> String {
    let references = references();
    let timed: Vec<&Reference> = references.iter().filter(|machine| machine.heap.is_some()).collect();
    let names: Vec<String> = timed.iter().map(|machine| named(machine)).collect();
    let mut header = vec!["speed, % of"];
    header.extend(names.iter().map(String::as_str));
    let mut table = new_table(&header);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes that were observed")]
    let heap = sample(run, "heap").map_or(0, |sample| sample.median() as u64);
    for step in plan.script() {
        let (Some(key), Some(seconds)) = (step.key, sample(run, step.name)) else { continue };
        let mut cells = vec![step.title.to_owned()];
        cells.extend(timed.iter().map(|machine| {
            machine.share(key, seconds.median(), heap).map_or_else(|| "-".to_owned(), percent)
        }));
        table.add_row(cells);
    }
    align_right(&mut table, 1..header.len());
    trimmed(&table)
}

/// Rates of VACUUM, as this server and published ones report them.
fn vacuum_rates(run: &Run) -> Option<String> {
    let own = rates(run)?;
    let mut table = new_table(&["VACUUM's own MB/s", "read", "write"]);
    table.add_row(["this server".to_owned(), rate(own.read), rate(own.write)]);
    for machine in references() {
        if let Some(printed) = machine.vacuum {
            table.add_row([named(&machine), rate(printed.read * MEBIBYTE), rate(printed.write * MEBIBYTE)]);
        }
    }
    align_right(&mut table, 1..3);
    Some(trimmed(&table))
}

/// Bytes of PostgreSQL's MB.
const MEBIBYTE: f64 = 1_048_576.0;

fn named(machine: &Reference) -> String {
    machine.size.as_ref().map_or(machine.name.clone(), |size| format!("{} ({size})", machine.name))
}

/// The server's own rates of its VACUUM: medians, bytes per second.
fn rates(run: &Run) -> Option<Rates> {
    let of = |field: &str| {
        let told = run.trials.iter().flat_map(|trial| &trial.events);
        let told = told.filter(|event| event.what["event"] == "server-rates");
        Sample::new(told.filter_map(|event| event.what[field].as_f64()).collect())
    };
    Some(Rates { read: of("read")?.median(), write: of("write")?.median() })
}

/// The output of the published check's collector: its keys, times in milliseconds, sizes in bytes, rates as
/// PostgreSQL prints them.
fn collector(run: &Run) -> String {
    let none = || "-".to_owned();
    let mut lines = vec![("SERVER", server_name(&run.environment.transport))];
    for step in blockio::steps(Mode::Compat) {
        let seconds = sample(run, step.name).map(|sample| sample.median());
        lines.push((step.name, seconds.map_or_else(none, |seconds| format!("{:.3}", seconds * 1e3))));
    }
    for (key, name) in [("SIZE_T", "heap-after"), ("SIZE_I", "index-after")] {
        let size = sample(run, name).map(|sample| sample.median());
        lines.push((key, size.map_or_else(none, |size| format!("{size:.0}"))));
    }
    let rates = rates(run);
    lines.push(("READ_RATE", rates.map_or_else(none, |rates| Rates::as_printed(rates.read))));
    lines.push(("WRITE_RATE", rates.map_or_else(none, |rates| Rates::as_printed(rates.write))));
    lines.iter().map(|(key, value)| format!("{key:<13} {value}")).collect::<Vec<_>>().join("\n")
}

/// The connected host.
fn server_name(transport: &str) -> String {
    match transport.strip_prefix("tcp ").and_then(|rest| rest.split([' ', ',']).next()) {
        Some(host) => host.to_owned(),
        None => "localhost".to_owned(),
    }
}

/// Each step beside the baseline's. It has no verdict, because two runs do not show whether a step
/// changed.
pub(crate) fn comparison(baseline: &Baseline, request: &Request, run: &Run) -> String {
    let mut table = new_table(&["step", "baseline", "now", "change"]);
    let compared = baseline.compare(request, &run.trials);
    for found in &compared {
        let (then, now) = (found.baseline.median(), found.candidate.median());
        table.add_row([
            found.step.title.to_owned(),
            latency(then),
            latency(now),
            format!("{:+.1} %", (found.ratio() - 1.0) * 100.0),
        ]);
    }
    align_right(&mut table, 1..4);
    let mut text = format!("\nbeside the baseline of {}\n\n{}", baseline.started_at(), trimmed(&table));
    if let Some([then, now]) = baseline.tables(&run.trials).map(|both| both.map(whole_bytes))
        && then != now
    {
        let _ = write!(text, "\nnow: scaled to the baseline's table of {then} (this one has {now})");
    }
    text += "\n\none run on each side gives no verdict: run both sides in turn with pgrig ab";
    let release = |version: &str| version.split(" on ").next().unwrap_or_default().to_owned();
    let (then, now) = (release(baseline.server()), release(&run.environment.server.version));
    if then != now {
        let _ = write!(text, "\nthe server was {then}, now it is {now}");
    }
    for difference in baseline.differing_settings(&run.environment.server.settings) {
        let _ = write!(text, "\n{difference}");
    }
    text
}

/// Commands to run next, ready to paste.
pub(crate) fn hints(arguments: &BlockioArgs, plan: &Plan, run: &Run) -> Vec<String> {
    let mut hints = Vec::new();
    let is_cold =
        run.trials.iter().flat_map(|trial| &trial.events).any(|event| event.what["state"] == "cold");
    if let Some(memory) = plan.memory.filter(|_| !is_cold) {
        let enough = (memory * 2).div_ceil(1_000_000_000 * u64::from(plan.request.clients));
        let again = again(arguments, &format!("{enough}GB"), arguments.compat);
        hints.push(format!("to read from storage (twice the memory): {again}"));
    }
    if !arguments.compat {
        let gigabytes = plan.request.size as f64 / 1e9;
        let again = again(arguments, &format!("{gigabytes}GB"), true);
        hints.push(format!("to run the published statements: {again}"));
    }
    if plan.request.keep {
        hints.push(format!("kept: schema {}; the next pgrig blockio in this schema drops it", plan.schema));
    }
    hints
}

/// A command for the same server, quoted for a shell. A password in the connection string is left out.
fn again(arguments: &BlockioArgs, size: &str, compat: bool) -> String {
    let server = &arguments.server;
    let mut command = format!("pgrig blockio {size}");
    if compat {
        command += " --compat";
    }
    let dbname = server.dbname.as_deref().map(|name| match connect::split_password(name) {
        Ok(Some((told, _))) => told,
        _ => name.to_owned(),
    });
    for (option, value) in [
        ("-d", dbname.as_deref()),
        ("-h", server.address.host.as_deref()),
        ("-p", server.address.port.as_deref()),
        ("-U", server.address.username.as_deref()),
        ("--instance", server.address.embedded.instance.as_deref()),
        ("--schema", arguments.schema.as_deref()),
    ] {
        if let Some(value) = value {
            let quoted = shlex::try_quote(value).unwrap_or_default();
            let _ = write!(command, " {option} {quoted}");
        }
    }
    command
}

/// A number of bytes as text.
fn whole_bytes(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes that were observed")]
    bytes(number.max(0.0).round() as u64)
}

/// Bytes per second as MB/s.
fn rate(bytes_per_second: f64) -> String {
    let megabytes = bytes_per_second / 1e6;
    if megabytes < 9.95 { format!("{megabytes:.1}") } else { format!("{megabytes:.0}") }
}

/// A percentage with at least two digits: `100 %`, `12 %`, `2.1 %`, `0.034 %`.
fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

fn digits(number: f64) -> String {
    match number {
        9.95.. => format!("{number:.0}"),
        0.995.. => format!("{number:.1}"),
        0.0995.. => format!("{number:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{number:.3}"),
    }
}
