//! Dumps: pg_dump, and pg_restore or psql.

use std::path::Path;
use std::process::Command;

use connect::Target;

use crate::programs::Programs;
use crate::run::step::{client, patience};
use crate::way::{Compression, Format, Method, Way};

/// Level of gzip where none is given, as of zlib.
const GZIP_LEVEL: u8 = 6;
/// Time that pg_dump waits for the lock of a table that somebody else has locked.
const LOCK_TIMEOUT: &str = "60s";

/// The command that dumps the snapshot.
pub(super) fn back_up(
    way: &Way,
    programs: &Programs,
    target: &Target,
    snapshot: &str,
    file: &Path,
) -> Command {
    let mut command = client(&programs.program("pg_dump"), target);
    command.arg(format!("--format={}", way.format.name())).arg("--file").arg(file);
    command.arg(format!("--snapshot={snapshot}")).arg(format!("--lock-wait-timeout={LOCK_TIMEOUT}"));
    command.arg(format!("--compress={}", compression(way.compression, programs.major)));
    // A database with a subscription cannot be dropped.
    command.arg("--no-subscriptions");
    if way.format == Format::Plain {
        command.arg("--no-tablespaces");
    }
    if way.format == Format::Directory {
        command.arg(format!("--jobs={}", way.jobs));
    }
    command.arg(patience(target));
    command
}

/// The value of pg_dump's --compress: until version 15 only a level.
fn compression(Compression { method, level, .. }: Compression, major: u16) -> String {
    match (method, level) {
        (Method::None, _) => "0".to_owned(),
        (Method::Gzip, level) if major < 16 => level.unwrap_or(GZIP_LEVEL).to_string(),
        (method, Some(level)) => format!("{}:{level}", method.name()),
        (method, None) => method.name().to_owned(),
    }
}

/// How a restore reacts to an error of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterError {
    Stop,
    /// It goes on: the server does not know [`LATER_SETTING`], which the programs set.
    GoOn,
}

/// The error of a server before version 17 at `SET transaction_timeout = 0`, which pg_dump and pg_restore write from version 17 on for every
/// server (pg_backup_archiver.c: `_doSetFixedOutputState`).
pub(crate) const LATER_SETTING: &str = "unrecognized configuration parameter \"transaction_timeout\"";
/// The first version with this setting.
const LATER: u16 = 17;

impl AfterError {
    pub(super) fn of(programs: &Programs, server: u16) -> Self {
        if programs.major >= LATER && server < LATER { Self::GoOn } else { Self::Stop }
    }
}

/// The commands, joined by pipes, that restore the file into an empty database.
pub(super) fn restore(
    way: &Way,
    programs: &Programs,
    target: &Target,
    file: &Path,
    after_error: AfterError,
) -> Vec<Command> {
    if way.format == Format::Plain {
        return restore_plain(way, programs, target, file, after_error);
    }
    let mut command = client(&programs.program("pg_restore"), target);
    command.arg("--no-tablespaces").arg(format!("--jobs={}", way.jobs));
    if after_error == AfterError::Stop {
        command.arg("--exit-on-error");
    }
    command.arg(format!("--dbname={}", target.dbname())).arg(file);
    vec![command]
}

fn restore_plain(
    way: &Way,
    programs: &Programs,
    target: &Target,
    file: &Path,
    after_error: AfterError,
) -> Vec<Command> {
    let mut psql = client(&programs.program("psql"), target);
    psql.args(["--no-psqlrc", "--quiet"]);
    if after_error == AfterError::Stop {
        psql.arg("--set=ON_ERROR_STOP=1");
    }
    match unpacker(way.compression.method) {
        None => {
            psql.arg("--file").arg(file);
            vec![psql]
        }
        Some(mut unpack) => {
            unpack.arg(file);
            psql.arg("--file=-");
            vec![unpack, psql]
        }
    }
}

/// The program that decompresses a file to its standard output.
pub(crate) fn unpacker(method: Method) -> Option<Command> {
    let program = match method {
        Method::None => return None,
        Method::Gzip => "gzip",
        Method::Lz4 => "lz4",
        Method::Zstd => "zstd",
    };
    let mut command = Command::new(program);
    command.args(["-d", "-c", "-q"]);
    Some(command)
}
