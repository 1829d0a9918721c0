//! Arguments of `pgrig testdb new`, `list`, `keep`, `drop` and `serve`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::app::args::ServerChoice;
use crate::app::duration::Length;

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

/// Lend a fresh database in milliseconds, for eval in a shell
///
/// `eval $(pgrig testdb new --from schema.sql)` sets DATABASE_URL, PGHOST, PGPORT, PGUSER and PGDATABASE. The database
/// is a copy of a template. pgrig makes the template from the file once, and again when the file changes. The database is
/// dropped as soon as the process that called pgrig exits. A background process, the keeper, makes spare copies in
/// advance. It exits when nothing has been lent for ten minutes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    eval $(pgrig testdb new --from schema.sql)\n  \
    DATABASE_URL=$(pgrig testdb new --from app.sql --format url) python3 -m pytest\n  \
    pgrig testdb new --template mydb --for 1h --format json\n  \
    pgrig testdb new --owner $PPID --format url    # owner: a script's caller")]
pub(crate) struct NewArgs {
    /// Make the template from this file: plain SQL, gzip, zstd, or an archive of pg_dump (needs pg_restore)
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// Copy this database of the server; the template is made again when the database changes [default: an empty
    /// database]
    #[arg(long, value_name = "DBNAME", conflicts_with = "from")]
    pub(crate) template: Option<String>,

    /// Make the file's tables unlogged: faster, and empty after a crash of the server
    #[arg(long, requires = "from")]
    pub(crate) unlogged: bool,

    /// Drop the database when this process exits [default: the process that called pgrig; for $(…), the shell
    /// itself]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) owner: Option<u32>,

    /// Drop the database after this time at the latest, for example 1h
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<Length>,

    /// Keep the database until it is dropped by name
    #[arg(long, conflicts_with = "time")]
    pub(crate) keep: bool,

    /// Format of the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LeaseFormat::Shell)]
    pub(crate) format: LeaseFormat,

    #[command(flatten)]
    pub(crate) keeper: KeeperArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// How a keeper works; of no effect on one that runs already.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Keeper (no effect on one that runs already)")]
pub(crate) struct KeeperArgs {
    /// Number of spare databases of each template used in the last ten minutes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) pool: u16,

    /// Drop templates that have not been used for this time
    #[arg(long, value_name = "TIME", default_value = "168h")]
    pub(crate) template_age: Length,
}

/// How a loan is told.
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
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// Keep lent databases until they are dropped by name, for example after a failed test
#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// Name of a lent database
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// Drop databases and templates that pgrig made; never any others
#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    /// Name of a database: lent, kept, spare or template
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "templates", "orphans"])]
    pub(crate) names: Vec<String>,

    /// Drop all of this role, also kept ones and those of other machines and homes; then the keeper exits
    #[arg(long, conflicts_with_all = ["names", "templates", "orphans"])]
    pub(crate) all: bool,

    /// Drop templates and their spares
    #[arg(long, conflicts_with_all = ["names", "orphans"])]
    pub(crate) templates: bool,

    /// Drop databases that keepers of other machines, containers and homes left behind; kept databases stay
    #[arg(long, conflicts_with = "names")]
    pub(crate) orphans: bool,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// Lend databases over HTTP, for suites that run in parallel
///
/// As soon as the server accepts requests, it prints its address, as the first line on standard output. `GET /database`
/// lends a database and returns its connection URI and parameters as JSON; `DELETE /databases/NAME` returns it. Ctrl-C
/// drops all lent databases; templates and kept databases stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig testdb serve --from schema.sql --listen 127.0.0.1:7432\n  \
    curl http://127.0.0.1:7432/database\n  \
    curl -X DELETE http://127.0.0.1:7432/databases/NAME\n\n\
    Requests:\n  \
    GET /database               lend a database, for an hour unless it is renewed\n    \
        ?from=FILE, ?template=DBNAME, &unlogged   source\n    \
        &for=SECONDS, &owner=PID, &keep           duration\n    \
        &format=json, url, env or shell           format of the answer\n  \
    POST /databases             the same, with the parameters as JSON in the body\n  \
    DELETE /databases/NAME      drop it; with ?wait, answer after the drop\n  \
    POST /databases/NAME/renew  {\"for\": SECONDS}: lend for this long from now\n  \
    POST /databases/NAME/keep   keep it until it is dropped by name; not over TCP\n  \
    GET /databases              list all databases\n  \
    GET /status                 show the state of the keeper")]
pub(crate) struct ServeArgs {
    /// Address to listen on: ADDRESS:PORT of this machine (port 0: any free port), or unix:PATH
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,

    /// Write the address to this file once the server answers
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,

    /// Offer copies of a database made from this file; may be repeated. Requests without a source get the first
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Vec<PathBuf>,

    /// Offer copies of this database of the server; may be repeated
    #[arg(long, value_name = "DBNAME")]
    pub(crate) template: Vec<String>,

    /// Make the files' tables unlogged: faster, and empty after a crash of the server
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
