//! Arguments of `pgrig testdb new`, `list`, `keep`, `drop` and `serve`.

use std::path::PathBuf;

use clap::{Arg, Args, Subcommand, ValueEnum};

use crate::app::args::ServerChoice;
use crate::app::duration::Length;

/// Help of --instance where the instance has to exist.
const INSTANCE: &str = "Use this instance of pgrig's own PostgreSQL, even if PGHOST or another variable names a server \
                        [default: the instance called default]";

/// Help of -d where databases are lent.
const DBNAME: &str = "Name the server: URI (postgresql://…), keyword string (host=…), or a database to connect to. The lent database is \
                      not a copy of this database: for a copy, give --template DBNAME [default: PGDATABASE, else as for psql]";

/// Not in help: options with which an instance is created or started.
fn hidden(argument: Arg) -> Arg {
    argument.hide(true)
}

#[derive(Debug, Subcommand)]
pub(crate) enum LendAction {
    New(Box<NewArgs>),
    List(Box<ListArgs>),
    Keep(Box<KeepArgs>),
    Drop(Box<DropArgs>),
    Serve(Box<ServeArgs>),
}

impl LendAction {
    /// The server on which databases are lent.
    pub(crate) fn server(&self) -> &ServerChoice {
        match self {
            Self::New(new) => &new.server,
            Self::List(list) => &list.server,
            Self::Keep(keep) => &keep.server,
            Self::Drop(drop) => &drop.server,
            Self::Serve(serve) => &serve.server,
        }
    }

    /// Whether this is the background process that lends databases.
    pub(crate) fn is_background(&self) -> bool {
        matches!(self, Self::Serve(serve) if serve.background.is_some())
    }

    /// Whether standard output is only for a program: for JSON, or a shell's eval.
    pub(crate) fn json_to_stdout(&self) -> bool {
        match self {
            Self::New(_) | Self::Serve(_) => true,
            Self::List(list) => list.json,
            Self::Keep(_) | Self::Drop(_) => false,
        }
    }
}

/// Lend a fresh database in milliseconds, and print shell commands that select it
///
/// `eval "$(pgrig testdb new --from schema.sql)"` sets DATABASE_URL, PGHOST, PGPORT, PGUSER, PGDATABASE and, if there
/// is a password, PGPASSWORD. The database is a copy of a template. pgrig makes the template from the file once, and
/// again when the file changes. pgrig drops the database when the owning process exits: by default the shell that
/// called pgrig. The keeper, a process in the background, makes spare copies in advance. It exits when it has had no
/// request for ten minutes and no database is lent. If it is already running, --pool and --template-age have no effect. If
/// the keeper has started pgrig's own PostgreSQL, other commands cannot use that instance until the keeper exits: to use
/// both, run `pgrig server start` first. The role needs CREATEDB.
#[derive(Debug, Args)]
#[command(mut_arg("dbname", |dbname| dbname.help(DBNAME)), after_help = "Examples:\n  \
    eval \"$(pgrig testdb new --from schema.sql)\"    # dropped when the shell exits\n  \
    DATABASE_URL=$(pgrig testdb new --format url --for 1h) python3 -m pytest\n  \
    pgrig testdb new --template mydb --for 1h --format json\n  \
    pgrig testdb new --owner $PPID --format url    # owner: a script's caller")]
pub(crate) struct NewArgs {
    /// Make the template from this file: plain SQL, SQL compressed with gzip or zstd, or a pg_dump archive (needs
    /// pg_restore)
    #[arg(long, aliases = ["schema-file", "ddl"], value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// Make the template from this database of the server, and again when that database changes. With neither --from nor --template, the lent database is empty
    #[arg(long, value_name = "DBNAME", conflicts_with = "from")]
    pub(crate) template: Option<String>,

    /// Make the tables of --from unlogged: the server writes no WAL for them, and empties them after a crash. Not possible
    /// with --template: first make the tables of that database unlogged, with pgrig testdb unlog -d DBNAME
    #[arg(long, requires = "from")]
    pub(crate) unlogged: bool,

    /// Drop the database when this process exits [default: the process that called pgrig; for $(…), the shell that
    /// evaluates it]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) owner: Option<u32>,

    /// Drop the database after this time, even if the owning process still runs, for example 1h [default: no limit]
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) time: Option<Length>,

    /// Keep the database when the owning process exits. Only `pgrig testdb drop NAME`, `pgrig testdb drop --all` and, if serve listens on unix:PATH, `DELETE /databases/NAME` drop it. Cannot be combined with --for
    #[arg(long, conflicts_with = "time")]
    pub(crate) keep: bool,

    /// Print the address of the database in this format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LeaseFormat::Shell)]
    pub(crate) format: LeaseFormat,

    #[command(flatten)]
    pub(crate) keeper: KeeperArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// How a keeper works.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Keeper")]
pub(crate) struct KeeperArgs {
    /// Make N spare copies of each template that was used in the last ten minutes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) pool: u16,

    /// Drop a template that was not used for this long
    #[arg(long, value_name = "DURATION", default_value = "168h")]
    pub(crate) template_age: Length,
}

/// The form in which a lease is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LeaseFormat {
    /// Shell commands: export NAME=VALUE
    Shell,
    /// JSON object
    Json,
    /// Connection URI
    Url,
    /// Lines of NAME=VALUE
    Env,
}

/// List lent and kept databases, spares and templates
#[derive(Debug, Args)]
#[command(mut_arg("instance", |instance| instance.help(INSTANCE)), mut_arg("pg_version", hidden), mut_arg("pg_bin", hidden), mut_arg("profile", hidden), mut_arg("set", hidden))]
pub(crate) struct ListArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// Keep lent databases, for example that of a failed test, until you drop them
#[derive(Debug, Args)]
#[command(mut_arg("instance", |instance| instance.help(INSTANCE)), mut_arg("pg_version", hidden), mut_arg("pg_bin", hidden), mut_arg("profile", hidden), mut_arg("set", hidden))]
pub(crate) struct KeepArgs {
    /// Name of a lent database
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// Drop databases and templates that pgrig made; never any others
///
/// Give NAME, --all, --templates or --orphans.
#[derive(Debug, Args)]
#[command(mut_arg("instance", |instance| instance.help(INSTANCE)), mut_arg("pg_version", hidden), mut_arg("pg_bin", hidden), mut_arg("profile", hidden), mut_arg("set", hidden), after_help = "Examples:\n  \
    pgrig testdb drop --templates    # templates and their spares\n  \
    pgrig testdb drop --all          # every database that testdb made")]
pub(crate) struct DropArgs {
    /// Name of a database: lent, kept, spare or template
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "templates", "orphans"])]
    pub(crate) names: Vec<String>,

    /// Drop every database that testdb made on this server as this role: also kept databases, and those of a
    /// pgrig on another machine or with another PGRIG_HOME. Then the keeper exits
    #[arg(long, conflicts_with_all = ["names", "templates", "orphans"])]
    pub(crate) all: bool,

    /// Drop all templates of the keeper (the process that makes spares in the background), and their spares
    #[arg(long, conflicts_with_all = ["names", "orphans"])]
    pub(crate) templates: bool,

    /// Drop the databases and templates that keepers on other machines or with another PGRIG_HOME left behind, if those keepers are no longer running; kept databases stay
    #[arg(long, conflicts_with = "names")]
    pub(crate) orphans: bool,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// Lend databases over HTTP, for suites that run in parallel
///
/// When the service is ready, it prints its address as the first line on standard output. `GET /database` lends a
/// database, and answers with its connection URI and parameters as JSON. `DELETE /databases/NAME` drops it. Ctrl-C
/// ends the service and drops all lent databases; templates and kept databases stay. The service is also the keeper of
/// testdb new: it makes spare copies in advance, and takes over from a keeper that runs in the background. The role needs CREATEDB.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig testdb serve --from schema.sql --listen 127.0.0.1:7432\n  \
    curl http://127.0.0.1:7432/database\n  \
    curl -X DELETE http://127.0.0.1:7432/databases/NAME\n\n\
    Requests:\n  \
    GET /database               lend a database for an hour\n    \
        ?from=FILE, ?template=DBNAME, &unlogged   source; over TCP, only one that\n                                              \
        --from or --template names\n    \
        &for=SECONDS, &owner=PID                  end of the lease: time, process\n    \
        &keep                                     no end; only over unix:PATH\n    \
        &format=json, url, env or shell           format of the answer\n  \
    POST /databases             the same, with the parameters as JSON in the body\n  \
    DELETE /databases/NAME      drop it; with ?wait, answer after the drop; a kept\n                              \
    one only over unix:PATH\n  \
    POST /databases/NAME/renew  {\"for\": SECONDS}: lend it this long from now\n  \
    POST /databases/NAME/keep   keep it until you drop it; only over unix:PATH\n  \
    GET /databases              list the databases that pgrig made\n  \
    GET /status                 show the state of the keeper")]
pub(crate) struct ServeArgs {
    /// Listen on IP:PORT of this machine (with port 0, on a free port) or on unix:PATH
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,

    /// Write the address to this file when the service is ready; an existing file is overwritten
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,

    /// Make a template from this file, as testdb new does; may be repeated. A request without a source gets a copy of the
    /// first --from, otherwise of the first --template, otherwise an empty database
    #[arg(long, aliases = ["schema-file", "ddl"], value_name = "FILE")]
    pub(crate) from: Vec<PathBuf>,

    /// Make a template from this database of the server; may be repeated
    #[arg(long, value_name = "DBNAME")]
    pub(crate) template: Vec<String>,

    /// Make the tables of --from unlogged: the server writes no WAL for them, and empties them after a crash. This option does not
    /// change copies of --template: to make the tables of that database unlogged, run pgrig testdb unlog -d DBNAME
    #[arg(long, requires = "from")]
    pub(crate) unlogged: bool,

    #[command(flatten)]
    pub(crate) keeper: KeeperArgs,

    /// Work for `new`, `list` and `drop`, and end after this time without work
    #[arg(long, value_name = "TIME", hide = true)]
    pub(crate) background: Option<Length>,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}
