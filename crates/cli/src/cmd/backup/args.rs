//! `pgrig backup`'s arguments, and the request that they make.

use std::path::PathBuf;

use backup::{Format, Request, Tool, Way, check};
use clap::{Args, Subcommand};
use pgserver::{Home, Major};
use server::machine::cores;

use crate::app::args::{EXPLAIN, MOST_TRIALS, SaveArgs, ServerChoice, major, profile_help, up_to};
use crate::app::failure::Usage;
use crate::cmd::backup::sized::args::SizedArgs;
use crate::cmd::backup::tool::ToolArgs;

/// Measure backups and restores of a database; check whether a backup is whole
///
/// rehearse measures size, time, CPU and disk space of backups. It restores each one and compares it with the original, so every
/// result comes from a backup that works. check reads an existing backup; with --restore, it also restores it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig backup rehearse -d shop\n  \
    pgrig backup rehearse -d shop --way custom:gzip,jobs=4 --way base-tar\n  \
    pgrig backup check shop.dump --restore")]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    pub(crate) action: BackupAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupAction {
    Rehearse(Box<RehearseArgs>),
    Check(CheckArgs),
}

/// Back up a database in several ways, restore each backup into a scratch server, and compare
///
/// pgrig only reads the database. Without a forecast (see --size), it takes one snapshot and reads all tables in it; pg_dump dumps the same snapshot. pgrig restores
/// each backup into a scratch server of its own, and compares rows, constraints and indexes with the original. Restore times
/// and forecasts are those of the machine that runs pgrig. A backup that cannot be restored, or that differs, has no result, and the command exits with status 1. At the end, pgrig removes backups and
/// scratch servers. If a way is a dump, pgrig keeps the snapshot open until the end of the last trial. Meanwhile, vacuum cannot remove
/// rows of the database that became dead after the snapshot.
#[derive(Debug, Args)]
#[command(mut_arg("profile", |profile| profile.help(profile_help("the profile of the last `server start`, else bulk. A forecast always uses stock"))),
    after_help = "Ways:\n  \
    plain:gzip=6             pg_dump, SQL; restored with psql\n  \
    custom:zstd=3,jobs=4     pg_dump, one file; restored with pg_restore, 4 jobs\n  \
    directory:lz4,jobs=4     pg_dump and pg_restore with 4 jobs\n  \
    base                     pg_basebackup, files of the whole server\n  \
    base-tar:client-gzip=1   pg_basebackup, tar files that the client compresses\n  \
    base-tar:server-zstd     pg_basebackup, tar files that the server compresses\n  \
    incremental              pg_basebackup, full and then incremental, and\n                           \
    pg_combinebackup (PostgreSQL 17 or later)\n  \
    pitr                     pg_basebackup, pg_receivewal; WAL of a load (--load),\n                           \
    replayed up to a point in time\n\n\
    Compressions: none, gzip, lz4, zstd. Without one: gzip for custom and\n\
    directory, as for pg_dump; none for the others.\n\n\
    Other tools: pgrig runs the commands with sh -c, with libpq's variables\n\
    (PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD) set for the database.\n\
    Each of these becomes one quoted word:\n  \
    {backup}    directory of the backup; empty before the backup\n  \
    {restore}   empty directory; --tool-restore has to restore the data directory\n              \
    into it, and to put the WAL that recovery needs into its pg_wal\n  \
    {url}       URL of the database, without a password\n  \
    {data}      data directory of the server, if it is on this machine\n  \
    {time}      for --tool-restore: the time to which it has to restore. The\n              \
    WAL from the backup to this time has to be in pg_wal, too\n  \
    {tablespaces}\n              \
    for --tool-restore: empty directory, into which it has to restore\n              \
    all tablespaces, each in a directory of its own\n\
    With --tool-backup and without --way, pgrig rehearses only the tools.\n\n\
    Examples:\n  \
    pgrig backup rehearse -d shop\n  \
    pgrig backup rehearse -d shop --way plain:gzip --way directory:zstd=1,jobs=4\n  \
    pgrig backup rehearse -d shop --bin /usr/lib/postgresql/18/bin --trials 6\n  \
    pgrig backup rehearse --model shop.model.toml --size 5TB --rto 4h\n  \
    pgrig backup rehearse --size 100GB --way pitr --load simple-update -R 500\n  \
    pgrig backup rehearse -d shop --way base --tool-name copy \\\n    \
    --tool-backup 'pg_basebackup -D {backup}' \\\n    \
    --tool-restore 'cp -a {backup}/. {restore}'")]
pub(crate) struct RehearseArgs {
    /// Back up in this way (see Ways); may be repeated [default: five ways, which --explain prints]
    #[arg(long, value_name = "WAY", help_heading = "Backups")]
    pub(crate) way: Vec<Way>,

    /// Run N trials (backup and restore) of each way, in rounds
    #[arg(long, value_name = "N", default_value = "3", value_parser = up_to::<u32>(MOST_TRIALS), help_heading = "Backups")]
    pub(crate) trials: u32,

    /// Use pg_dump and the other client programs in DIR; if DIR also has postgres of the server's major version, the scratch servers
    /// run it [default: those in PATH, if they are not older than the server, else those in /usr/lib/postgresql or /usr/pgsql-*]
    #[arg(long, value_name = "DIR", help_heading = "Backups")]
    pub(crate) bin: Option<PathBuf>,

    /// Do not look up rows by their primary keys while backups run. By default, pgrig looks up 50 rows each second in one
    /// session, and prints the latencies
    #[arg(long, help_heading = "Backups")]
    pub(crate) no_probe: bool,

    /// Count the bytes between the server and the programs that back up. For this, pgrig makes one more backup in each way, through
    /// a relay, and does not time it. For pitr and tools with {time}, it also runs the load once more, to count the WAL
    #[arg(long, help_heading = "Backups")]
    pub(crate) network: bool,

    #[command(flatten)]
    pub(crate) tools: ToolArgs,

    #[command(flatten)]
    pub(crate) sized: SizedArgs,

    #[arg(long, help = EXPLAIN, visible_alias = "dry-run", help_heading = "Output")]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// Check whether a backup is whole: read all of it, and compare each checksum
///
/// pgrig reads dumps that pg_dump (plain, custom, directory, tar) and pg_dumpall wrote, also compressed with gzip, zstd or lz4, and base backups
/// of pg_basebackup (plain files and tar). Without --restore, it needs no server and no client programs, and writes nothing.
///
/// The verdict is "whole", "no damage found" or "damaged" (see below).
///
/// With --restore, pgrig then restores an undamaged backup into a scratch server of its own, and reads all its data. A backup can
/// contain any SQL, which runs as a superuser of that server: restore only backups that you trust.
#[derive(Debug, Args)]
#[command(after_help = "Verdicts:\n  \
    whole            all that a restore needs has checksums, and each is right\n  \
    no damage found  all data can be read; pgrig lists unverified parts\n  \
    damaged          pgrig lists each damage; the exit status is 3\n\n\
    Examples:\n  \
    pgrig backup check shop.dump\n  \
    pgrig backup check shop.dump --restore\n  \
    pgrig backup check /backups/base --wal-directory /backups/wal\n  \
    pg_dump shop | zstd | pgrig backup check -")]
pub(crate) struct CheckArgs {
    /// File or directory of the backup; - for standard input
    #[arg(value_name = "FILE|DIR")]
    pub(crate) path: PathBuf,

    /// Look in DIR, too, for WAL that a base backup needs (for backups with pg_basebackup --wal-method=none)
    #[arg(long, value_name = "DIR", help_heading = "Check")]
    pub(crate) wal_directory: Option<PathBuf>,

    /// Unless the backup is damaged, also restore it into a scratch server, read all rows, and check constraints and indexes. If the
    /// restore has errors, or the restored data are damaged, exit with status 3
    #[arg(long, help_heading = "Restore")]
    pub(crate) restore: bool,

    /// Use pg_restore and psql in DIR; if DIR also has postgres of the backup's major version, the scratch server runs it [default:
    /// those in PATH, if they are not older than the backup's server, else those in /usr/lib/postgresql or
    /// /usr/pgsql-*]
    #[arg(long, value_name = "DIR", help_heading = "Restore")]
    pub(crate) bin: Option<PathBuf>,

    /// Restore a dump into this major version of PostgreSQL, 13 to 18 [default: that of the dump]
    #[arg(long, value_name = "VERSION", value_parser = major, help_heading = "Restore")]
    pub(crate) pg_version: Option<Major>,

    /// Connect to a restored base backup as this role, a superuser of the server that was backed up [default: postgres]
    #[arg(long, value_name = "ROLE", help_heading = "Restore")]
    pub(crate) superuser: Option<String>,

    /// Also write verdict and findings as JSON to FILE; an existing FILE is overwritten. With -, write them to standard output and the
    /// results to standard error
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) json: Option<String>,
}

/// The role as which a restored base backup is read by default.
const SUPERUSER: &str = "postgres";

impl CheckArgs {
    /// Refuses options of a restore where none is asked for.
    pub(crate) fn refuse_restores(&self) -> Result<(), Usage> {
        let option = match (&self.bin, self.pg_version, &self.superuser) {
            _ if self.restore => return Ok(()),
            (Some(_), ..) => "--bin",
            (_, Some(_), _) => "--pg-version",
            (.., Some(_)) => "--superuser",
            _ => return Ok(()),
        };
        Err(Usage(format!("{option} is for a restore: give --restore, too")))
    }

    /// The request.
    pub(crate) fn request(&self) -> check::Request {
        check::Request { path: self.path.clone(), wal: self.wal_directory.clone() }
    }

    /// The request of a restore below this home.
    pub(crate) fn restore_request<'a>(&self, home: &'a Home) -> check::restore::Request<'a> {
        check::restore::Request {
            home,
            bin: self.bin.clone(),
            version: self.pg_version.map(Major::number),
            superuser: self.superuser.clone().unwrap_or_else(|| SUPERUSER.to_owned()),
            cores: u16::try_from(cores()).unwrap_or(u16::MAX),
        }
    }
}

impl BackupArgs {
    /// How the run is saved, if there is one.
    pub(crate) fn save(&self) -> Option<&SaveArgs> {
        match &self.action {
            BackupAction::Rehearse(rehearse) => Some(&rehearse.save),
            BackupAction::Check(_) => None,
        }
    }

    /// Whether standard output is for JSON alone.
    pub(crate) fn json_to_stdout(&self) -> bool {
        match &self.action {
            BackupAction::Rehearse(rehearse) => rehearse.save.is_to_stdout(),
            BackupAction::Check(check) => check.json.as_deref() == Some("-"),
        }
    }

    /// Whether it only shows a plan.
    pub(crate) fn explains(&self) -> bool {
        match &self.action {
            BackupAction::Rehearse(rehearse) => rehearse.explain,
            BackupAction::Check(_) => false,
        }
    }

    /// The server that is read, if there is one.
    pub(crate) fn server(&self) -> Option<ServerChoice> {
        match &self.action {
            BackupAction::Rehearse(rehearse) => Some(rehearse.server.clone()),
            BackupAction::Check(_) => None,
        }
    }
}

impl RehearseArgs {
    /// Refuses options of a forecast where none is asked for.
    pub(crate) fn refuse_forecasts(&self) -> Result<(), Usage> {
        let restores_to_a_time = || self.tools.tool_restore.iter().any(|command| Tool::is_to_a_time(command));
        let text = if self.sized.price_per_gb_month.is_some() {
            "--price-per-gb-month is for a forecast: give the size, too, for example --size 5TB"
        } else if self.sized.changes.is_some() {
            "--changes is for databases that pgrig fills: give the size, too, for example --size 5TB"
        } else if self.sized.load.load.is_some() {
            "--load is for databases that pgrig fills, because it changes them: give the size, too, for example --size 5TB"
        } else if self.way.iter().any(|way| way.format == Format::Pitr) {
            "--way pitr changes the database, so it is for databases that pgrig fills: give the size and a load, too, for example --size 5TB \
             --load simple-update -R 500"
        } else if restores_to_a_time() {
            "a --tool-restore with {time} needs the WAL of a load. A load changes the database, so this is possible only for databases that pgrig fills: give \
             the size and a load, too, for example --size 5TB --load simple-update -R 500"
        } else {
            return Ok(());
        };
        Err(Usage(text.to_owned()))
    }

    /// The request. Refuses commands of tools that cannot work.
    pub(crate) fn request(&self) -> Result<Request, Usage> {
        let mut ways = self.way.clone();
        ways.extend(self.tools.ways()?);
        let (trials, bin) = (self.trials, self.bin.clone());
        Ok(Request { ways, trials, bin, probe: !self.no_probe, network: self.network })
    }
}
