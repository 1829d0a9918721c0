//! `pgrig tps`'s arguments, and the request that they make.

use std::io;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use measure::Threshold;
use script::{Definition, OptionError, Source};
use tps::{Connecting, Length, Protocol, Request};

use crate::app::args::{
    EXPLAIN, MOST_TRIALS, SaveArgs, ServerAddress, ServerChoice, connections, rate, up_to,
};
use crate::app::duration::{milliseconds, seconds, seconds_or_none, whole_seconds};
use crate::app::failure::Usage;
use crate::app::input;
use crate::app::part::{self, Numbers, numbers_or_none};
use crate::cmd::tps::matrix::args::MatrixArgs;

/// Duration of a run without -t and -T.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// Limit of `-t`: transactions of each client, as pgbench counts them.
const MOST_TRANSACTIONS: u64 = i32::MAX as u64;
/// Seeds that pgrig chooses are below this, so that they are short enough to type.
const SEEDS: u64 = 1 << 32;

/// Help of --instance.
const INSTANCE: &str = "Use this instance of pgrig's own PostgreSQL, even if PGHOST or another variable names a server; create it if it \
                        does not exist (only with -f: the built-in scripts need pgbench's tables) [default: the instance called \
                        default]";

/// Measure transactions per second and latency of pgbench scripts
///
/// pgrig runs pgbench scripts without pgbench, and accepts most of pgbench's options for scripts and load. Without -T and -t it
/// runs for 10 s (pgbench: 10 transactions). The built-in scripts need pgbench's tables: `pgrig fill --scale 10`
/// creates them. With -R, the latency of a transaction counts from its scheduled start, so it includes the time that
/// the transaction waited for a stalled server.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[command(mut_arg("instance", |instance| instance.help(INSTANCE)), after_help = "Examples:\n  \
        pgrig fill --scale 10 && pgrig tps      # pgbench's TPC-B for 10 s\n  \
        pgrig tps -S -c 8 -T 30 mydb            # one row by key, in database mydb\n  \
        pgrig tps -f new.sql@9 -f old.sql -r    # scripts, 9 to 1; time per command\n  \
        pgrig tps -R 500 -L 20 -T 5min          # 500 per second; 20 ms is late\n  \
        pgrig tps -T 60 --fail-if 'p99>20ms'    # exit status 3 if p99 is above 20 ms\n  \
        pgrig tps -c 4 --matrix durability      # the cost of durability settings\n")]
pub(crate) struct TpsArgs {
    /// Same as -d
    #[arg(value_name = "DBNAME", conflicts_with = "dbname")]
    pub(crate) database: Option<String>,

    /// Run this script, chosen with weight W; - is standard input; may be repeated
    #[arg(short, long = "file", value_name = "FILE[@W]", help_heading = "Scripts")]
    pub(crate) file: Vec<String>,

    /// Run this built-in script, by its name or the beginning of its name; `-b list` lists them; may be repeated
    /// [default: tpcb-like]
    #[arg(short, long = "builtin", value_name = "NAME[@W]", help_heading = "Scripts")]
    pub(crate) builtin: Vec<String>,

    /// Same as -b simple-update
    #[arg(short = 'N', long, help_heading = "Scripts")]
    pub(crate) skip_some_updates: bool,

    /// Same as -b select-only
    #[arg(short = 'S', long, help_heading = "Scripts")]
    pub(crate) select_only: bool,

    /// Set a variable of the scripts; may be repeated
    #[arg(short = 'D', long, value_name = "NAME=VALUE", value_parser = definition, help_heading = "Scripts")]
    pub(crate) define: Vec<Definition>,

    /// Set the variable :scale of your own scripts; this creates no data [default: 1]. Built-in scripts always use the number of
    /// rows of pgbench_branches
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..), help_heading = "Scripts")]
    pub(crate) scale: Option<i64>,

    /// Seed of the random values: a number, `time` or `rand`
    #[arg(long, value_name = "SEED", default_value = "rand", help_heading = "Scripts")]
    pub(crate) random_seed: Seed,

    /// Print a built-in script and stop
    #[arg(long, value_name = "NAME", help_heading = "Scripts")]
    pub(crate) show_script: Option<String>,

    /// Number of connections that run transactions [default: 1]
    #[arg(short, long = "clients", alias = "client", value_name = "N", value_parser = connections(), help_heading = "Load")]
    pub(crate) client: Option<u32>,

    /// Number of threads of pgrig that serve these connections
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = connections(), help_heading = "Load")]
    pub(crate) jobs: u32,

    /// Measure for this time: 30 (seconds), 90s, 5min [default: 10s]
    #[arg(short = 'T', long, value_name = "DURATION", value_parser = seconds, help_heading = "Load")]
    pub(crate) time: Option<Duration>,

    /// Instead of -T: number of transactions per client
    #[arg(short, long, value_name = "N", conflicts_with = "time", value_parser = up_to::<u64>(MOST_TRANSACTIONS),
          help_heading = "Load")]
    pub(crate) transactions: Option<u64>,

    /// Start this many transactions per second, all clients together, at random times (a Poisson process) [default: no
    /// limit]
    #[arg(short = 'R', long, value_name = "TPS", value_parser = rate, help_heading = "Load")]
    pub(crate) rate: Option<f64>,

    /// Count a transaction as late if it takes longer than DURATION. With -R, also skip a transaction that would start more than DURATION after its scheduled start. A number without a unit is in milliseconds
    #[arg(short = 'L', long, value_name = "DURATION", value_parser = milliseconds, help_heading = "Load")]
    pub(crate) latency_limit: Option<Duration>,

    /// Send statements with this protocol: simple (as text), extended (parsed each time) or prepared (parsed once in each session) [default: simple]
    #[arg(short = 'M', long, value_enum, ignore_case = true, help_heading = "Load")]
    pub(crate) protocol: Option<Sent>,

    /// Open a new connection for each transaction
    #[arg(short = 'C', long, help_heading = "Load")]
    pub(crate) connect: bool,

    /// If a transaction fails with a serialization error or a deadlock, repeat it, with at most N tries in all; 0: no limit
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Load")]
    pub(crate) max_tries: u32,

    /// Number of trials; with --matrix, of each cell [default: 1; 3 with --matrix]
    #[arg(long, value_name = "N", value_parser = up_to::<u16>(MOST_TRIALS), help_heading = "Load")]
    pub(crate) trials: Option<u16>,

    /// Run for this time before the measurement begins
    #[arg(long = "warm-up", alias = "warmup", value_name = "DURATION", default_value = "0", value_parser = seconds_or_none, help_heading = "Load")]
    pub(crate) warmup: Duration,

    /// Before the warm-up, start the clients one after the other over this time
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = seconds_or_none, help_heading = "Load")]
    pub(crate) ramp: Duration,

    /// Do not vacuum or empty pgbench's tables first. By default, if they exist, pgrig first vacuums pgbench_branches and
    /// pgbench_tellers, and TRUNCATEs pgbench_history
    #[arg(short, long, help_heading = "Load")]
    pub(crate) no_vacuum: bool,

    /// Print the latency of each command of the scripts
    #[arg(short, long, help_heading = "Results")]
    pub(crate) report_per_command: bool,

    /// Print failures by kind
    #[arg(long, help_heading = "Results")]
    pub(crate) failures_detailed: bool,

    /// Exit with status 3 if the condition is true, for example p99>20ms, tps<500 or failed>1%; may be repeated. Figures: tps; mean, max and percentiles (p95, p99.9) of the latency, and of the delay of starts (lag-p99); failed, skipped, late and retried transactions (number or percent). Transactions that pgrig skips because of -R and -L count as slower than -L. pgrig judges all trials together
    #[arg(long, value_name = "CONDITION", help_heading = "Results")]
    pub(crate) fail_if: Vec<Threshold>,

    /// Print a line of progress every SECONDS [default: a live chart on a terminal, otherwise a line every 5 s]
    #[arg(short = 'P', long, value_name = "SECONDS", value_parser = whole_seconds, help_heading = "Results")]
    pub(crate) progress: Option<u64>,

    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,

    /// Run as part I of N: 3/8. Start N processes with the same options and different numbers, on one machine or
    /// several. They wait for each other, and put load on the server at the same time; pgrig merge combines their runs.
    /// Clients are numbered across all parts, so no two of them have the same random numbers. A part needs -n.
    /// Without --part, the run is a part, too, if Slurm's variables, JOB_COMPLETION_INDEX with PGRIG_PARTS, or PGRIG_PART give I/N; for a
    /// run of its own, unset them
    #[arg(long, value_name = "I/N", value_parser = numbers_or_none, conflicts_with = "matrix", help_heading = "Parts")]
    pub(crate) part: Option<Numbers>,

    /// Stop if parts are missing after this time
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = seconds, help_heading = "Parts")]
    pub(crate) parts_timeout: Duration,

    /// Give this option to all parts. At the end, part 1 combines the parts into one run (as pgrig merge does), saves this run,
    /// and writes its document to FILE (- is standard output). The other parts send their documents through the server
    #[arg(long, value_name = "FILE", conflicts_with = "matrix", help_heading = "Parts")]
    pub(crate) merge: Option<String>,

    /// ID of the run to which this part belongs, for several runs that use one database at the same time. Give all parts of a run
    /// the same ID, and each run another one [default: PGRIG_RUN_ID, else Slurm's job ID if Slurm numbers the parts]
    #[arg(long, value_name = "ID", conflicts_with = "matrix", help_heading = "Parts")]
    pub(crate) run_id: Option<String>,

    #[arg(long, visible_alias = "dry-run", help = EXPLAIN, help_heading = "Output")]
    pub(crate) explain: bool,

    #[command(flatten, next_help_heading = "Results")]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) server: TpsServer,
}

/// Options that choose the servers.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct TpsServer {
    /// Database name, URI (postgresql://…) or keyword string (host=… dbname=…); with --instance, the name of a database of that instance. Repeat -d to divide the clients among several targets, such as standbys or shards; a client that loses its session moves to the next target. Several targets need -n [default: PGDATABASE, else as for psql; on pgrig's own PostgreSQL: postgres]
    #[arg(short, long = "dbname", value_name = "DBNAME")]
    pub(crate) dbname: Vec<String>,

    #[command(flatten)]
    pub(crate) address: ServerAddress,
}

impl TpsServer {
    /// The server with this database or connection string.
    fn choice(&self, dbname: Option<&String>) -> ServerChoice {
        ServerChoice {
            dbname: dbname.cloned(),
            address: self.address.clone(),
            may_change_sessions: true,
            only_plans: false,
        }
    }
}

/// `-M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sent {
    Simple,
    Extended,
    Prepared,
}

impl From<Sent> for Protocol {
    fn from(sent: Sent) -> Self {
        match sent {
            Sent::Simple => Self::Simple,
            Sent::Extended => Self::Extended,
            Sent::Prepared => Self::Prepared,
        }
    }
}

/// `--random-seed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed {
    /// The seed, drawn if the user chose none.
    pub(crate) value: u64,
    /// Whether the user chose it.
    pub(crate) is_chosen: bool,
}

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "rand" => Ok(Self { value: fastrand::u64(..SEEDS), is_chosen: false }),
            "time" => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Ok(Self { value: u64::try_from(now.as_micros()).unwrap_or_default(), is_chosen: false })
            }
            number => number
                .parse()
                .map(|value| Self { value, is_chosen: true })
                .map_err(|_| format!("give a whole number from 0 to {}, time, or rand", u64::MAX)),
        }
    }
}

fn definition(text: &str) -> Result<Definition, String> {
    Definition::parse(text).map_err(|error| format!("{error}; give NAME=VALUE, for example limit=100"))
}

impl TpsArgs {
    /// The databases, as the command line names them.
    pub(crate) fn dbnames(&self) -> Vec<&str> {
        self.server.dbname.iter().chain(&self.database).map(String::as_str).collect()
    }

    /// Refuses thresholds of figures that need an option that is not given: they would be missed after the whole run.
    fn refuse_unmeasured(&self) -> Result<(), Usage> {
        let needs = |name: &str| match name {
            "late" if self.latency_limit.is_none() => Some("a limit (-L)"),
            name if (name == "skipped" || name.starts_with("lag")) && self.rate.is_none() => {
                Some("a rate (-R)")
            }
            _ => None,
        };
        for threshold in self.fail_if.iter().map(ToString::to_string) {
            let name = threshold.split(['<', '>']).next().unwrap_or_default().trim();
            if let Some(options) = needs(name) {
                return Err(Usage(format!("--fail-if '{threshold}': {name} needs {options}")));
            }
        }
        Ok(())
    }

    /// The request. Reads the scripts.
    pub(crate) fn request(&self) -> Result<Request, Usage> {
        self.refuse_unmeasured()?;
        Ok(Request {
            sources: self.sources()?,
            definitions: self.define.clone(),
            clients: self.client.map_or(1, |clients| clients as usize),
            jobs: self.jobs as usize,
            length: match self.transactions {
                Some(transactions) => Length::Transactions(transactions),
                None => Length::Time(self.time.unwrap_or(DEFAULT_TIME)),
            },
            rate: self.rate,
            latency_limit: self.latency_limit,
            protocol: self.protocol.unwrap_or(Sent::Simple).into(),
            connecting: if self.connect { Connecting::EachTransaction } else { Connecting::Once },
            vacuum: !self.no_vacuum,
            max_tries: self.max_tries,
            warmup: self.warmup,
            ramp: self.ramp,
            seed: self.random_seed.value,
            scale: self.scale,
            statements: self.report_per_command,
            targets: Vec::new(),
            part: self.part()?,
        })
    }

    /// The part that this process is. A matrix has none.
    fn part(&self) -> Result<Option<tps::Part>, Usage> {
        if self.matrix.is_asked() {
            return Ok(None);
        }
        let variable = |name: &str| std::env::var(name).ok();
        let part = part::part(self.part, self.run_id.as_deref(), &variable)?;
        if let Some(part::Part { number, of, .. }) =
            part.as_ref().filter(|_| self.part.is_none() && !self.no_vacuum)
        {
            return Err(Usage(format!(
                "environment variables make this run part {number} of {of}, and a part cannot prepare the tables, because another part may \
                 already run: give -n; for a run of its own, unset {}",
                part::numbering(&variable).join(" and ")
            )));
        }
        let patience = self.parts_timeout;
        Ok(part.map(|part::Part { number, of, run }| tps::Part { number, of, run, trial: 1, patience }))
    }

    /// Whether an option sets the scripts or the load, and not only the server.
    pub(crate) fn sets_a_load(&self) -> bool {
        let has_script = self.select_only || self.skip_some_updates || !self.builtin.is_empty();
        let has_length = self.time.is_some() || self.transactions.is_some();
        let has_pace = self.rate.is_some() || self.latency_limit.is_some() || self.protocol.is_some();
        has_script || has_length || has_pace || self.connect || self.client.is_some() || self.jobs != 1
    }

    /// Trials of a run without a matrix.
    pub(crate) fn trials(&self) -> usize {
        self.trials.map_or(1, usize::from)
    }

    /// Whether neither -t nor -T is given, so that the default time must be shown.
    pub(crate) fn is_time_chosen(&self) -> bool {
        self.time.is_none() && self.transactions.is_none()
    }

    /// The scripts: built-in ones first, then files.
    fn sources(&self) -> Result<Vec<Source>, Usage> {
        let short = [(self.skip_some_updates, "simple-update"), (self.select_only, "select-only")];
        let short = short.into_iter().filter(|(given, _)| *given).map(|(_, name)| name);
        let builtin = self.builtin.iter().map(String::as_str).chain(short);
        let builtin =
            builtin.map(|option| Source::builtin(option).map_err(|error| wrong("-b", option, &error)));
        let mut sources = builtin.collect::<Result<Vec<_>, _>>()?;
        if self.file.iter().filter(|option| is_stdin(option)).count() > 1 {
            return Err(Usage("standard input can be read only once: give -f - once".to_owned()));
        }
        for option in &self.file {
            sources.push(read(option)?);
        }
        if sources.is_empty() {
            sources.push(Source::builtin("tpcb-like").map_err(|error| wrong("-b", "tpcb-like", &error))?);
        }
        Ok(sources)
    }

    /// The text to print instead of a run: the list of built-in scripts, or one of them.
    pub(crate) fn shown(&self) -> Option<Result<String, Usage>> {
        if let Some(name) = &self.show_script {
            let source = Source::builtin(name).map_err(|error| wrong("--show-script", name, &error));
            return Some(source.map(|source| format!("-- {}\n{}", source.name(), source.text().trim_end())));
        }
        let wants_list = self.builtin.iter().any(|name| name == "list");
        wants_list.then(|| {
            let lines = Source::builtins().map(|(name, description)| format!("{name:<14} {description}"));
            Ok(lines.collect::<Vec<_>>().join("\n"))
        })
    }

    /// The server; the database may be named without -d.
    pub(crate) fn server(&self) -> ServerChoice {
        self.server.choice(self.server.dbname.first().or(self.database.as_ref()))
    }

    /// The server by its options alone, without the database that is named without -d.
    pub(crate) fn server_without_word(&self) -> ServerChoice {
        self.server.choice(self.server.dbname.first())
    }

    /// The targets after the first.
    pub(crate) fn others(&self) -> impl Iterator<Item = ServerChoice> {
        self.server.dbname.iter().skip(1).map(|dbname| self.server.choice(Some(dbname)))
    }
}

fn is_stdin(option: &str) -> bool {
    Source::weighted_file(option).is_ok_and(|(file, _)| file == "-")
}

/// Reads the script of `-f`.
fn read(option: &str) -> Result<Source, Usage> {
    let (file, weight) = Source::weighted_file(option).map_err(|error| wrong("-f", option, &error))?;
    if file == "-" {
        let text = input::text(io::stdin())
            .map_err(|error| Usage(format!("cannot read a script from standard input: {error}")))?;
        return Ok(Source::file("-", text, weight));
    }
    let text = input::file(Path::new(file))
        .map_err(|error| Usage(format!("cannot read the script -f {file}: {error}")))?;
    Ok(Source::file(file, text, weight))
}

fn wrong(option: &str, value: &str, error: &OptionError) -> Usage {
    Usage(format!("{option} {value}: {error}"))
}

/// Options of pgbench for which pgrig has another name or another way.
const ELSEWHERE: [(&[&str], &str); 13] = [
    (&["-i", "--init", "--initialize"], "pgrig fill --scale N makes pgbench's tables"),
    (
        &[
            "-I",
            "--init-steps",
            "-F",
            "--fillfactor",
            "--foreign-keys",
            "--tablespace",
            "--index-tablespace",
            "--drop",
        ],
        "pgrig fill has this option",
    ),
    (&["--duration", "--seconds"], "-T N sets the duration in seconds, for example -T 60"),
    (
        &["--partitions", "--partition-method", "--unlogged-tables"],
        "pgrig fill has --partitions N and --unlogged",
    ),
    (
        &["-l", "--log", "--log-prefix", "--sampling-rate"],
        "--json FILE has all latencies as histograms, and every second's tps and percentiles",
    ),
    (&["--aggregate-interval"], "--json FILE has every second's tps and percentiles"),
    (
        &["-v", "--vacuum-all"],
        "run VACUUM ANALYZE first: on pgrig's own server, pgrig server psql -- -c 'VACUUM ANALYZE'; on another one, psql -c 'VACUUM ANALYZE' \
         (pgrig vacuums pgbench's small tables itself, unless you give -n)",
    ),
    (&["--progress-timestamp"], "--json FILE has the time at which the run began, and seconds since"),
    (
        &["--verbose-errors"],
        "--failures-detailed counts failures by kind, -r by command; the server's log has their texts",
    ),
    (&["--exit-on-abort"], "pgrig always exits with an error if a client fails"),
    (
        &["--continue-on-error"],
        "--max-tries N repeats transactions after serialization failures and deadlocks; any other SQL error ends the client",
    ),
    (&["--report-latencies"], "its new name is -r, --report-per-command"),
    (&["--debug"], "--explain shows the plan"),
];

/// The replacement for an option of pgbench that `pgrig tps` does not have.
pub(crate) fn instead_of(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option);
    ELSEWHERE.iter().find(|(names, _)| names.contains(&name)).map(|(_, instead)| *instead)
}
