//! Arguments of `pgrig testdb bench`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pgserver::Profile;
use script::Source;
use server::quote::shell_word;
use testdb::bench::{TestCommand, Variant};
use tps::{Length, Request};

use crate::app::args::{
    MOST_TRIALS, SaveArgs, ServerAddress, ServerChoice, connections, profile_help, share, up_to,
};
use crate::app::duration::seconds;
use crate::app::failure::Usage;
use crate::app::input;
use crate::app::target::{ServerKind, server_kind};
use crate::cmd::testdb::bench::words::behind_script;

/// Environment variables that name a server or a role; `pgrig testdb new` sets some of them.
const SERVER_VARIABLES: [&str; 6] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE"];

/// Help of --instance where it is not the server that other options name.
const INSTANCE: &str = "Use this instance of pgrig's own PostgreSQL, even if PGHOST or another variable names a server; create it \
                        if it does not exist [default: the instance called testdb-bench]";

/// Help of -d.
const DBNAME: &str = "Copy this database, if you do not give --from: name, URI (postgresql://…) or keyword string (host=… dbname=…); with \
                      --instance, the name of a database of that instance [default: PGDATABASE, else as for psql; on pgrig's own \
                      PostgreSQL: none]";

/// Default of --profile.
const PROFILE: &str = "stock; with --instance, the profile of the last `server start`, else bulk";

/// Measure which variant of the database makes your test command faster
///
/// Each round runs COMMAND once for each variant, in random order, each time on a fresh database. COMMAND finds the
/// database in DATABASE_URL and in PGHOST, PGPORT, PGUSER, PGDATABASE and PGPASSWORD. If COMMAND is a single argument with spaces, pgrig runs it with sh -c; otherwise it runs the program itself. With --from, pgrig loads each database from the file. Without --from, each database is a copy of the one that -d, PGDATABASE or another variable names; pgrig does not change the original. If you name neither a file nor a server, each database is empty.
///
/// If you name no server, pgrig uses its instance testdb-bench (profile stock).
#[derive(Debug, Args)]
#[command(mut_arg("dbname", |dbname| dbname.help(DBNAME)), mut_arg("instance", |instance| instance.help(INSTANCE)),
    mut_arg("profile", |profile| profile.help(profile_help(PROFILE))),
    after_help = "Parts of a variant, joined by +:\n  \
    normal      the database unchanged; pgrig compares all variants with it\n  \
    unlogged    unlogged tables: a crash of the server empties them\n  \
    dangerous   fsync, full_page_writes and synchronous_commit off: a crash of\n                \
    the machine may destroy all databases\n  \
    template    a copy of a template database, made with the fastest method\n  \
    tmpfs       another server of pgrig's, with its data in memory (/dev/shm)\n\n\
    Examples:\n  \
    pgrig testdb bench --from schema.sql -- python3 -m pytest\n  \
    pgrig testdb bench --from shop.sql.gz -- 'cd api && sh suite.sh'\n  \
    pgrig testdb bench -d mydb --variants template,unlogged -- sh suite.sh")]
pub(crate) struct BenchArgs {
    /// Your test command, after --; or give --tps
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "tps", conflicts_with = "tps")]
    pub(crate) command: Vec<OsString>,

    /// Load each database from this file: plain SQL, SQL compressed with gzip or zstd, or a
    /// pg_dump archive (needs pg_restore)
    #[arg(long, aliases = ["schema-file", "ddl", "dump"], value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// Compare these variants, separated by commas, with the variant normal (see below). On a server that is not pgrig's own, dangerous needs
    /// --allow-dangerous-settings [default: those of the following that are possible:
    /// unlogged,dangerous,unlogged+dangerous,template,tmpfs,dangerous+template+tmpfs]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) variants: Vec<Variant>,

    /// Measure N rounds, after a warm-up round. A verdict other than inconclusive needs at least 6
    #[arg(long = "rounds", alias = "trials", value_name = "N", default_value_t = 6, value_parser = up_to::<u16>(MOST_TRIALS))]
    pub(crate) trials: u16,

    /// Leave out the warm-up round
    #[arg(long)]
    pub(crate) no_warm_up: bool,

    /// Give the verdict "improved" or "regressed" only if the change is at least PERCENT of normal's time, and "no change" only if
    /// the whole confidence interval of the change lies between -PERCENT and +PERCENT of normal's time
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub(crate) threshold: f64,

    /// Seed of the random order in each round [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Print the output of the command instead of writing it to a log
    #[arg(long)]
    pub(crate) show_output: bool,

    /// Measure a pgbench script instead of a command: a file, or the name of a built-in script
    #[arg(long, value_name = "SCRIPT", help_heading = "Transactions")]
    pub(crate) tps: Option<String>,

    /// With --tps: numbers of connections; pgrig measures each number
    #[arg(
        short,
        long = "clients",
        alias = "client",
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "1,2,3",
        value_parser = connections(),
        conflicts_with = "command",
        help_heading = "Transactions"
    )]
    pub(crate) client: Vec<u32>,

    /// With --tps: measure each variant for this time in each round: 30 (seconds), 90s, 5min
    #[arg(short = 'T', long, value_name = "DURATION", default_value = "10s", value_parser = seconds, conflicts_with = "command",
          help_heading = "Transactions")]
    pub(crate) time: Duration,

    /// Permit pgrig to turn off fsync on a server that is not its own. A crash of the machine during the measurement may destroy every
    /// database of that server
    #[arg(long)]
    pub(crate) allow_dangerous_settings: bool,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

impl BenchArgs {
    /// The instance that is used where no server is named.
    pub(crate) const INSTANCE: &str = crate::app::instance::OF_TESTDB_BENCH;

    /// The command, whose program must exist; none with --tps.
    ///
    /// # Errors
    /// If there is no such program.
    pub(crate) fn test_command(&self) -> Result<Option<TestCommand>, Usage> {
        if self.tps.is_some() {
            return Ok(None);
        }
        TestCommand::new(&self.command).map(Some).map_err(|error| Usage(self.of_script().unwrap_or(error)))
    }

    /// The error of a command in one word that other words follow; none if it is not one.
    fn of_script(&self) -> Option<String> {
        let [script, _, ..] = self.command.as_slice() else { return None };
        let text = script.to_string_lossy();
        let is_script = text.contains(char::is_whitespace) && !Path::new(script).exists();
        is_script.then(|| {
            let words: Vec<String> =
                std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            format!("there is no program of the name {}: {}", shell_word(&text), behind_script(&words, &text))
        })
    }

    /// The request for the script of --tps; none without that option.
    ///
    /// # Errors
    /// If there is no such script.
    pub(crate) fn transactions(&self) -> Result<Option<Request>, Usage> {
        let Some(script) = &self.tps else { return Ok(None) };
        let source = match input::file(Path::new(script)) {
            Ok(text) => Source::file(script, text, 1),
            // A name that is no file is one of pgbench's.
            Err(unread) => Source::builtin(script).map_err(|_| {
                Usage(format!(
                    "--tps {script} is not a built-in script, and cannot be read as a file: {unread}"
                ))
            })?,
        };
        Ok(Some(Request {
            jobs: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            seed: self.seed(),
            ..Request::of(source, Length::Time(self.time))
        }))
    }

    /// The script that creates the databases' contents.
    pub(crate) fn script(&self) -> Option<&PathBuf> {
        self.from.as_ref()
    }

    /// The seed; always the same by default, because results do not depend on it.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// The change of the command line that makes it use pgrig's own server.
    pub(crate) fn how_to_have_own(&self) -> String {
        let ServerChoice { dbname, address: ServerAddress { host, port, username, .. }, .. } = &self.server;
        if [dbname, host, port, username].into_iter().any(Option::is_some) {
            return "no -d, -h, -p, -U".to_owned();
        }
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let set: Vec<&str> = SERVER_VARIABLES.into_iter().filter(is_set).collect();
        format!("unset {}, or give --instance NAME", set.join(" "))
    }

    /// The server. By default it is an instance for benches only, with PostgreSQL's default
    /// settings.
    pub(crate) fn server(&self) -> ServerChoice {
        let mut server = self.server.clone();
        let is_own = matches!(server_kind(&server), Ok(ServerKind::Own));
        let embedded = &mut server.address.embedded;
        if is_own && embedded.instance.is_none() {
            embedded.instance = Some(Self::INSTANCE.to_owned());
            if embedded.profile.is_none() {
                embedded.profile = Some(Profile::Stock);
                embedded.defaults.push("profile");
            }
        }
        server
    }
}
