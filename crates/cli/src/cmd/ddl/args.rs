//! `pgrig ddl`'s arguments, and the request that they make.

use std::path::{Path, PathBuf};

use clap::Args;
use ddl::{
    Amount, Effort, Locale, ProbeScript, Probes, Probing, Request, Schema, Script, ScriptError, TableSize,
};
use fill::RowsRule;
use model::Model;
use pgserver::Profile;
use server::quote::shell_word;

use crate::app::args::{EXPLAIN, EmbeddedArgs, SaveArgs, ServerAddress, ServerChoice, profile_help};
use crate::app::duration::Length;
use crate::app::failure::{Failure, Usage};
use crate::app::input;
use crate::app::size::Size;
use crate::app::target::{self, ServerKind};
use crate::cmd::ddl::gate::Gate;

/// Rows of each table, if nothing else is asked for.
const ROWS: u64 = 100_000;
/// Size that is filled at most, if nothing else is asked for.
const UP_TO: &str = "256MB";

/// Help of --instance where it is not the server that other options name.
const INSTANCE: &str = "Measure on this instance of pgrig's own PostgreSQL; create it if it does not exist [default: the \
                        instance called ddl]";

/// Help of --locale.
const LOCALE: &str = "Locale of the database. It determines the sort order of texts, and whether LIKE can use an ordinary index: en_US.UTF-8, icu:de-AT, builtin:C.UTF-8 \
                      [default: that of the original, which a model has, too; with --schema-file, C, or with --scratch that of the server]";

/// Measure the effects of a migration on your tables: scans, rewrites, locks, WAL
///
/// pgrig creates your tables in new databases on its own PostgreSQL. At three sizes, it fills the tables that
/// the migration uses, and runs the migration on copies. For each statement it reports the class (catalog
/// only, scan, rewrite …) with the proof, the locks, the seconds and the bytes of WAL. It never runs the
/// migration on the database that -d names.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("instance", |instance| instance.help(INSTANCE)), mut_arg("profile", |profile| profile.help(profile_help("stock"))),
    after_help = "Classes, the lightest first (quote names with blanks: 'class=catalog only'):\n  \
    catalog only            changes catalogs, and reads no whole table\n  \
    wait                    waits for other transactions, and does nothing else\n  \
    scan                    reads a whole table\n  \
    scan of another table   reads a whole table that the statement does not name\n  \
    scan of several tables  reads several whole tables\n  \
    rows                    inserts, updates or deletes rows\n  \
    index build             builds an index of a table with rows\n  \
    copy                    copies files to another tablespace\n  \
    rewrite                 writes a table anew\n\n\
    Examples:\n  \
    pgrig ddl migration.sql -d shop\n  \
    pgrig ddl migration.sql --schema-file app.sql\n  \
    pgrig ddl -c 'ALTER TABLE orders ADD COLUMN note text' -d shop\n  \
    pgrig ddl migration.sql --schema-file app.sql --size orders=500GB --up-to 2GB\n  \
    pgrig ddl migration.sql --schema-file app.sql --probe-read lookups.sql\n  \
    pgrig ddl migration.sql --schema-file app.sql --fail-if class=rewrite")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct DdlArgs {
    /// Migration files, in order; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) files: Vec<PathBuf>,

    /// Statements of the migration, instead of files; may be repeated
    #[arg(short, long, value_name = "SQL", help_heading = "Migration")]
    pub(crate) command: Vec<String>,

    /// Run each file in a transaction of its own, as Rails and Flyway do; with -c, all statements in one transaction
    #[arg(short = '1', long, help_heading = "Migration")]
    pub(crate) single_transaction: bool,

    /// SQL file that creates the tables as they are before the migration, for example the output of pg_dump --schema-only; - is standard input
    #[arg(long, aliases = ["ddl", "from"], value_name = "FILE", conflicts_with = "model", help_heading = "Tables")]
    pub(crate) schema_file: Option<PathBuf>,

    /// Create and fill the tables of this model (see pgrig model)
    #[arg(long, value_name = "FILE", help_heading = "Tables")]
    pub(crate) model: Option<PathBuf>,

    /// Forecast for this number of rows in each table, or in individual tables: --rows orders=1000000,items=3*orders. With -d or
    /// --model, N is an upper limit: a smaller table keeps its number of rows. TABLE=ROWS sets the number of
    /// rows, even if the original has fewer [default: as many as the original; with --schema-file, 100000]
    #[arg(long, value_name = "N|TABLE=ROWS", value_parser = rows, conflicts_with = "size", help_heading = "Tables")]
    pub(crate) rows: Option<RowsArg>,

    /// Forecast for this total SIZE of the tables that the migration uses, with their indexes; or for individual tables:
    /// --size orders=500GB
    #[arg(long, value_name = "SIZE|TABLE=SIZE", value_parser = sizes, help_heading = "Tables")]
    pub(crate) size: Option<Sizes>,

    /// Limit the total size of the filled tables to SIZE
    #[arg(long, value_name = "SIZE", default_value = UP_TO, help_heading = "Tables")]
    pub(crate) up_to: Size,

    /// Measure at one size, once. Without --quick, pgrig measures at three sizes: five times at each of the two smaller ones, three times at the largest
    #[arg(long, help_heading = "Tables")]
    pub(crate) quick: bool,

    /// Set the values of a column, if the migration needs values other than those that pgrig chooses: TABLE.COLUMN=SPEC (see pgrig fill); may be repeated
    #[arg(long, value_name = "TABLE.COLUMN=SPEC", help_heading = "Tables")]
    pub(crate) column: Vec<String>,

    #[arg(long, value_name = "LOCALE", help = LOCALE, help_heading = "Tables")]
    pub(crate) locale: Option<Locale>,

    /// Seed of the random values
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Tables")]
    pub(crate) seed: u64,

    /// Read the definitions of the tables, the statistics and the settings of this database: name, URI (postgresql://…) or keyword string. pgrig reads only
    /// its catalogs, in a read-only transaction
    #[arg(
        short,
        long = "dbname",
        value_name = "DBNAME",
        conflicts_with_all = ["schema_file", "model"],
        help_heading = "Database (pgrig only reads it)"
    )]
    pub(crate) dbname: Option<String>,

    /// Host name, or directory of the Unix socket [default: PGHOST, else the local socket]
    #[arg(
        short = 'h',
        long,
        conflicts_with_all = ["schema_file", "model"],
        help_heading = "Database (pgrig only reads it)"
    )]
    pub(crate) host: Option<String>,

    /// Port [default: PGPORT, else 5432]
    #[arg(
        short,
        long,
        conflicts_with_all = ["schema_file", "model"],
        help_heading = "Database (pgrig only reads it)"
    )]
    pub(crate) port: Option<String>,

    /// Connect as this role [default: PGUSER, else the operating system's user name]
    #[arg(
        short = 'U',
        long = "username",
        value_name = "USERNAME",
        conflicts_with_all = ["schema_file", "model"],
        help_heading = "Database (pgrig only reads it)"
    )]
    pub(crate) username: Option<String>,

    /// Measure on this server (URI or keyword string), instead of pgrig's own; pgrig creates databases there, and drops them
    #[arg(
        long,
        value_name = "URI",
        conflicts_with_all = ["instance", "pg_version", "pg_bin", "profile", "set"],
        help_heading = "Server for the measurement"
    )]
    pub(crate) scratch: Option<String>,

    /// Work of a reader during the migration: an SQL statement, for example 'SELECT * FROM orders WHERE id = 42', or a file with
    /// a pgbench script [default: lookups by key]
    #[arg(long, value_name = "SQL|FILE", help_heading = "Readers and writers during the migration")]
    pub(crate) probe_read: Option<String>,

    /// Work of a writer during the migration: an SQL statement, or a file with a pgbench script [default: updates by key]
    #[arg(long, value_name = "SQL|FILE", help_heading = "Readers and writers during the migration")]
    pub(crate) probe_write: Option<String>,

    /// Run the migration once more while another transaction, which has read the tables, stays open for this time. The migration
    /// waits for that transaction, and readers and writers wait behind the migration
    #[arg(long, value_name = "DURATION", help_heading = "Readers and writers during the migration")]
    pub(crate) blocker: Option<Length>,

    /// Also measure better ways, where pgrig can write them: indexes CONCURRENTLY; constraints NOT VALID,
    /// validated later; for a new column with a volatile default, ADD COLUMN without the default, SET
    /// DEFAULT, then UPDATE in batches. For indexes, keys and foreign keys of a partitioned table, the better
    /// way works on one partition at a time
    #[arg(long, help_heading = "Migration")]
    pub(crate) alternatives: bool,

    /// Exit with status 3 if a statement has this class (class=rewrite; see Classes), takes this lock or a stronger one (lock=SHARE), holds such a lock longer than a limit ('lock=ACCESS EXCLUSIVE>1s'), or makes a reader or writer wait longer than a limit ('stall>500ms'); may be repeated. pgrig compares a limit with the times at the largest measured size (see --up-to), not with the forecast
    #[arg(long, value_name = "CONDITION", help_heading = "Output")]
    pub(crate) fail_if: Vec<Gate>,

    #[arg(long, help = EXPLAIN, visible_alias = "dry-run", help_heading = "Output")]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) embedded: EmbeddedArgs,
}

/// Rows of the tables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowsArg {
    /// Of each table.
    Each(u64),
    /// Of single tables.
    Rules(Vec<RowsRule>),
}

fn rows(text: &str) -> Result<RowsArg, String> {
    if text.contains('=') {
        return text.split(',').map(str::parse).collect::<Result<_, _>>().map(RowsArg::Rules);
    }
    match text.parse() {
        Ok(rows) if rows > 0 => Ok(RowsArg::Each(rows)),
        _ => Err("give a number of rows, 1 or more, or TABLE=ROWS, for example orders=1000000".to_owned()),
    }
}

/// Sizes of the tables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sizes {
    /// Of all tables.
    All(u64),
    /// Of single tables.
    Single(Vec<TableSize>),
}

fn sizes(text: &str) -> Result<Sizes, String> {
    if !text.contains('=') {
        return text.parse().map(|size: Size| Sizes::All(size.0));
    }
    let single = |text: &str| {
        let (table, size) = text.split_once('=').ok_or_else(|| format!("\"{text}\" is not TABLE=SIZE"))?;
        Ok(TableSize { table: table.trim().to_owned(), bytes: size.parse::<Size>()?.0 })
    };
    text.split(',').map(single).collect::<Result<_, String>>().map(Sizes::Single)
}

/// The work of a reader or writer: the text of a file, or the value itself as SQL.
fn probing(option: &str, value: &str) -> Result<Probing, Usage> {
    let path = Path::new(value);
    if !path.is_file() && !is_path(value) {
        return Ok(Probing::Statement(value.to_owned()));
    }
    let text = input::file(path).map_err(|error| Usage(format!("cannot read {option} {value}: {error}")))?;
    let script = ProbeScript::read(value, &text).map_err(|error| Usage(format!("{option}: {error}")))?;
    Ok(Probing::Script(script))
}

/// A migration that cannot be read: it may be SQL.
fn unread(name: &str, error: &str) -> Usage {
    let is_there = Path::new(name).exists();
    let is_sql = name.contains(char::is_whitespace) && !is_there;
    Usage(if name.parse::<Size>().is_ok() && !is_there {
        format!(
            "unexpected argument {name}: to name the size of the tables, give --size {}",
            shell_word(name)
        )
    } else if is_sql {
        format!(
            "there is no file of the name {name}: to give SQL, write -c before it: -c {}",
            shell_word(name)
        )
    } else {
        format!("cannot read {name}: {error}")
    })
}

/// Whether a text is meant as a path: SQL has blanks, or parentheses.
fn is_path(text: &str) -> bool {
    text.contains(['/', '.']) && !text.contains(|c: char| c.is_whitespace() || "()*\"';".contains(c))
}

/// The origin of the tables.
pub(crate) enum Origin {
    /// A file was read.
    Read(Box<Schema>),
    /// A database whose catalogs are to be read.
    Database(ServerChoice),
}

impl DdlArgs {
    /// The instance on which is measured, where no other is named.
    pub(crate) const INSTANCE: &str = crate::app::instance::OF_DDL;

    /// The migration.
    pub(crate) fn script(&self) -> Result<Script, Failure> {
        let inputs = self.files.iter().chain(&self.schema_file).chain(&self.model);
        if inputs.filter(|path| input::is_stdin(path)).count() > 1 {
            return Err(Usage("standard input can be read only once: give - once".to_owned()).into());
        }
        let mut scripts = Vec::new();
        for path in &self.files {
            let name = input::shown(path);
            let text = input::file_or_stdin(path).map_err(|error| unread(&name, &error))?;
            let read = Script::read(&text, Some(&name)).and_then(|script| self.in_transactions(script));
            scripts.push(read.map_err(|error| Usage(format!("{name}, {error}")))?);
        }
        if let Some(file) = self.command.iter().find(|text| Path::new(text).is_file()) {
            let text =
                format!("-c takes SQL, and {0} is a file: to run it, write {0} without -c", shell_word(file));
            return Err(Usage(text).into());
        }
        if !self.command.is_empty() {
            let texts: Vec<_> =
                self.command.iter().map(|text| Script::read(text, None)).collect::<Result<_, _>>()?;
            scripts.push(self.in_transactions(Script::of(texts)?)?);
        }
        Ok(Script::of(scripts)?)
    }

    fn in_transactions(&self, script: Script) -> Result<Script, ScriptError> {
        if self.single_transaction { script.in_one_transaction() } else { Ok(script) }
    }

    /// Files of Flyway's that are not in the order of their versions, as a warning: a shell sorts V10 before V2.
    pub(crate) fn disorder(&self) -> Option<String> {
        let version = |path: &PathBuf| -> Option<(Vec<u64>, String)> {
            let name = path.file_name()?.to_str()?;
            let (version, _) = name.strip_prefix('V')?.split_once("__")?;
            let parts = version.split(['.', '_']).map(str::parse).collect::<Result<_, _>>().ok()?;
            Some((parts, name.to_owned()))
        };
        let versions: Vec<_> = self.files.iter().filter_map(version).collect();
        let [(_, before), (_, after)] = versions.windows(2).find(|pair| pair[0].0 > pair[1].0)? else {
            return None;
        };
        Some(format!(
            "{after} runs after {before}, which has a later version: give the files in the order of their versions"
        ))
    }

    /// The origin of the tables.
    pub(crate) fn origin(&self) -> Result<Origin, Failure> {
        let read = |option: &str, path: &PathBuf| {
            let name = input::shown(path);
            input::file_or_stdin(path)
                .map_err(|error| {
                    let error = if option == "--model" {
                        input::for_model(error)
                    } else {
                        input::for_schema(error, path)
                    };
                    Usage(format!("cannot read {option} {name}: {error}"))
                })
                .map(|text| (text, name))
        };
        if let Some(path) = &self.schema_file {
            let (text, name) = read("--schema-file", path)?;
            return Ok(Origin::Read(Box::new(Schema::of_script(&text, &name)?)));
        }
        if let Some(path) = &self.model {
            let (text, name) = read("--model", path)?;
            let model = Model::read(&text).map_err(|error| Usage(format!("--model {name}: {error}")))?;
            return Ok(Origin::Read(Box::new(Schema::of_model(&model, &name)?)));
        }
        let choice = ServerChoice {
            dbname: self.dbname.clone(),
            address: ServerAddress {
                host: self.host.clone(),
                port: self.port.clone(),
                username: self.username.clone(),
                ..ServerAddress::default()
            },
            ..ServerChoice::default()
        };
        if target::server_kind(&choice)? == ServerKind::Own {
            let text = "no tables are given: give --schema-file FILE, -d DBNAME (pgrig reads only its catalogs) or --model FILE";
            return Err(Usage(text.to_owned()).into());
        }
        Ok(Origin::Database(choice))
    }

    /// The readers and writers.
    pub(crate) fn probes(&self) -> Result<Probes, Usage> {
        let read = |option: &str, value: &Option<String>| {
            value.as_ref().map(|value| probing(option, value)).transpose()
        };
        Ok(Probes {
            read: read("--probe-read", &self.probe_read)?,
            write: read("--probe-write", &self.probe_write)?,
            blocker: self.blocker.map(|blocker| blocker.0),
        })
    }

    /// The request for these tables.
    pub(crate) fn request(&self, mut schema: Schema, script: Script, probes: Probes) -> Request {
        let amount = match (&self.size, &self.rows) {
            (Some(Sizes::All(size)), _) => Amount::Size(*size),
            (Some(Sizes::Single(sizes)), _) => Amount::Sizes(sizes.clone()),
            (None, Some(RowsArg::Each(rows))) => Amount::Rows(*rows),
            (None, Some(RowsArg::Rules(rules))) => Amount::Rules(rules.clone()),
            (None, None) if schema.rows.is_empty() => Amount::Rows(ROWS),
            (None, None) => Amount::AsOriginal,
        };
        let effort = if self.quick { Effort::Quick } else { Effort::Full };
        let columns = self.column.clone();
        schema.asked_locale.clone_from(&self.locale);
        // Those of the user come first.
        let set = &self.embedded.set;
        schema.settings.retain(|name, _| !set.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)));
        Request {
            schema,
            script,
            amount,
            up_to: self.up_to.0,
            effort,
            probes: Some(probes),
            alternatives: self.alternatives,
            columns,
            seed: self.seed,
        }
    }

    /// The server on which is measured: by default an instance for migrations only, with PostgreSQL's default settings.
    pub(crate) fn server(&self) -> ServerChoice {
        if let Some(scratch) = &self.scratch {
            return ServerChoice { dbname: Some(scratch.clone()), ..ServerChoice::default() };
        }
        let mut embedded = self.embedded.clone();
        embedded.instance.get_or_insert_with(|| Self::INSTANCE.to_owned());
        if embedded.profile.is_none() {
            embedded.profile = Some(Profile::Stock);
            embedded.defaults.push("profile");
        }
        let mut set = |name: &'static str, value: &str| {
            if !embedded.set.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
                embedded.set.push((name.to_owned(), value.to_owned()));
                embedded.defaults.push(name);
            }
        };
        // Under minimal, rewrites and new indexes write no WAL. Autovacuum would write its own.
        set("wal_level", "replica");
        set("autovacuum", "off");
        ServerChoice {
            address: ServerAddress { embedded, ..ServerAddress::default() },
            ..ServerChoice::default()
        }
    }
}
