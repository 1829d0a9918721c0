//! `pgrig testdb unlog` of a dump.

mod progress;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dump::{DumpError, Options, Sequences, Summary, Survey, Unlogger, Why};
use measure::human::{bytes, counted};
use server::quote::shell_word;
use testdb::sink::{Compression, Sink, SinkError};
use testdb::source::{self, Form, Source};
use tokio::runtime::Runtime;

use crate::app::failure::{Failure, Usage};
use crate::app::interrupt;
use crate::app::output::{Existing, refuse_unwritable};
use crate::app::printer::Printer;
use crate::cmd::testdb::args::{Compress, UnlogArgs};
use crate::cmd::testdb::unlog::dump::progress::Watched;

/// The remedy if neither a dump nor a server is given.
const NOTHING: &str = "give a dump (pgrig testdb unlog dump.sql, or < dump.sql), or a server with the tables \
                       (pgrig testdb unlog -d mydb)";
/// Most tables that are listed by name; of more only the number is shown.
const LISTED: usize = 20;

/// Rewrites a dump. All messages go to standard error, because standard output is for the dump.
pub(crate) fn run(arguments: &UnlogArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(file) = arguments.output.as_ref().filter(|file| *file != Path::new("-")) {
        refuse_unwritable("--output", file, Existing::Replaced)?;
    }
    let source = source(arguments)?;
    let options = options(arguments)?;
    let started = Instant::now();
    let unfinished = Unfinished::default();
    let _until_whole = tidy_up_if_interrupted(Arc::clone(&unfinished))?;
    let opened = source.open_watched()?;
    let mut sink = sink(arguments, opened.form)?;
    *unfinished.lock().unwrap_or_else(PoisonError::into_inner) = sink.unfinished().map(Path::to_owned);
    let is_read_twice = source.can_be_read_again();
    let (unlogger, opened) = if is_read_twice {
        let first = Watched::new("first pass", opened, source.size(), printer);
        let survey = Survey::of(first).map_err(told)?;
        (Unlogger::after(survey, options)?, source.open_watched()?)
    } else {
        (Unlogger::in_one_pass(options), opened)
    };
    let mut input = Watched::new("rewriting", opened, source.size(), printer);
    let summary = unlogger.rewrite(&mut input, &mut sink).map_err(told)?;
    let length = input.length();
    drop(input);
    if length == 0 {
        return Err(Usage(format!(
            "{} is empty: {NOTHING}",
            if arguments.file.is_none() { "standard input" } else { "the dump" }
        ))
        .into());
    }
    sink.finish().map_err(|error| told(DumpError::Write(error)))?;
    warn(&summary, printer);
    let speed = speed(length, started.elapsed(), is_read_twice);
    printer.result(text(&summary, &speed))?;
    Ok(())
}

fn source(arguments: &UnlogArgs) -> Result<Source, Failure> {
    match arguments.file.as_deref() {
        Some(file) if file != Path::new("-") => {
            if let Some(text) = database_instead(file) {
                return Err(Usage(text).into());
            }
            Ok(Source::file(file)?)
        }
        None if io::stdin().is_terminal() => {
            Err(Usage(format!("nothing to make unlogged: {NOTHING}")).into())
        }
        _ => Ok(Source::stdin()),
    }
}

/// The error of a file that does not exist, if its name may be that of a database.
fn database_instead(file: &Path) -> Option<String> {
    let name = file.to_str().filter(|name| !name.contains(['.', '/']))?;
    let is_missing = !file.try_exists().ok()?;
    is_missing.then(|| {
        let name = shell_word(name);
        format!(
            "cannot read {name}: the file does not exist; check the path; to name a database, give -d {name}"
        )
    })
}

fn options(arguments: &UnlogArgs) -> Result<Options, DumpError> {
    let keep = arguments.keep.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let sequences = if arguments.no_sequences { Sequences::Left } else { Sequences::AsDumped };
    Ok(Options { keep, sequences })
}

fn sink(arguments: &UnlogArgs, form: Form) -> Result<Sink, SinkError> {
    let output = arguments.output.as_deref().filter(|output| *output != Path::new("-"));
    let compression = match arguments.compress {
        Some(Compress::None) => Compression::None,
        Some(Compress::Gzip) => Compression::Gzip,
        Some(Compress::Zstd) => Compression::Zstd,
        None => output.and_then(Compression::of_name).unwrap_or(Compression::of_form(form)),
    };
    match output {
        Some(path) => Sink::file(path, compression),
        None => Sink::stdout(compression),
    }
}

/// Path of the incomplete output file; none if there is none.
type Unfinished = Arc<Mutex<Option<PathBuf>>>;

/// While the returned value lives, an interruption removes the incomplete file and ends pg_restore.
fn tidy_up_if_interrupted(unfinished: Unfinished) -> io::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let interrupted = {
        let _within = runtime.enter();
        interrupt::interrupted_telling(|_| {})
    };
    runtime.spawn(async move {
        interrupted.await;
        let file = unfinished.lock().unwrap_or_else(PoisonError::into_inner).take();
        let told: &[u8] = match file {
            Some(file) => {
                // It goes with whatever was to become of it.
                let _ = std::fs::remove_file(file);
                b"interrupted: pgrig wrote nothing\n"
            }
            None => b"interrupted: the written dump is not complete\n",
        };
        let _ = io::Write::write_all(&mut io::stderr(), told);
        source::end_pg_restores();
        #[expect(clippy::exit, reason = "the input may never end")]
        std::process::exit(130);
    });
    Ok(runtime)
}

/// The failure for an error; a closed output is an I/O error, as in every verb.
fn told(error: DumpError) -> Failure {
    match error {
        DumpError::Write(error) => {
            io::Error::new(error.kind(), format!("cannot write the dump: {error}")).into()
        }
        error => error.into(),
    }
}

fn warn(summary: &Summary, printer: &Printer) {
    for left in &summary.left {
        if let Why::Published { publication } = &left.why {
            printer.warn(format!(
                "{} stays logged, because publication {publication} contains it: make the dump with pg_dump --no-publications",
                left.table
            ));
        }
    }
    for publication in &summary.publications_of_all {
        printer.warn(format!(
            "publication {publication} is FOR ALL TABLES and will not contain the unlogged tables"
        ));
    }
    for (sequence, table) in &summary.lone_sequences {
        printer.warn(format!(
            "sequence {sequence} is unlogged and restarts after a crash, but its table {table} stays logged: give \
             the dump as a file, which pgrig can read twice, or give --no-sequences"
        ));
    }
    if summary.is_cut_off {
        printer.warn("the dump lacks the last line of pg_dump: it may be truncated");
    }
    if summary.tables == 0 && summary.unlogged_tables == 0 && summary.left.is_empty() {
        printer.warn("this dump creates no table");
    }
}

fn text(summary: &Summary, speed: &str) -> String {
    let partitioned = summary.left.iter().filter(|left| left.why == Why::Partitioned).count() as u64;
    let mut lines = vec![made_unlogged(summary)];
    if partitioned > 0 {
        lines.push(format!(
            "{} unchanged: their partitions hold the rows",
            counted(partitioned, "partitioned table")
        ));
    }
    if summary.undecided_sequences > 0 {
        lines.push(format!(
            "{} unchanged: by its header, the dump is not from PostgreSQL 15 or later, which has unlogged sequences",
            counted(summary.undecided_sequences, "sequence")
        ));
    }
    let logged = summary.left.iter().filter(|left| left.why != Why::Partitioned).collect::<Vec<_>>();
    lines.extend(
        logged.iter().take(LISTED).map(|left| format!("still logged: {} ({})", left.table, left.why)),
    );
    if logged.len() > LISTED {
        lines.push(format!("still logged: {} more", logged.len() - LISTED));
    }
    lines.push(speed.to_owned());
    if summary.tables > 0 {
        lines.push(
            "unlogged tables are empty after a crash of the server: only for data that you can create again"
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// The number of tables and sequences that were made unlogged, and of those that were so before.
fn made_unlogged(summary: &Summary) -> String {
    let Summary { tables, unlogged_tables, sequences, left, .. } = summary;
    if *tables == 0 && *sequences == 0 && *unlogged_tables > 0 && left.is_empty() {
        return match unlogged_tables {
            1 => "the only table of this dump is unlogged already".to_owned(),
            all => format!("all {all} tables of this dump are unlogged already"),
        };
    }
    let made = format!("{} and {} made unlogged", counted(*tables, "table"), counted(*sequences, "sequence"));
    match unlogged_tables {
        0 => made,
        before => format!("{made}\n{} unchanged: unlogged already", counted(*before, "table")),
    }
}

fn speed(length: u64, elapsed: Duration, is_read_twice: bool) -> String {
    let seconds = elapsed.as_secs_f64();
    let twice = if is_read_twice { ", read twice" } else { "" };
    format!(
        "{} of SQL in {seconds:.2} s, {:.0} MB/s{twice}",
        bytes(length),
        length as f64 / 1e6 / seconds.max(1e-9)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_are_unlogged_already_are_counted() {
        for (tables, unlogged_tables, told) in [
            (0, 2, "all 2 tables of this dump are unlogged already"),
            (0, 1, "the only table of this dump is unlogged already"),
            (3, 0, "3 tables and 0 sequences made unlogged"),
            (1, 1, "1 table and 0 sequences made unlogged\n1 table unchanged: unlogged already"),
        ] {
            let summary = Summary { tables, unlogged_tables, ..Summary::default() };
            assert_eq!(made_unlogged(&summary), told);
        }
    }
}
