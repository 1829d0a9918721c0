//! `pgrig fill`'s arguments, and the request that they make.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use fill::{IndexKind, Letters, PartitionMethod, Partitions, ProbeKind, RowsRule, Triggers};

use crate::app::args::{MOST_PARTITIONS, MOST_STREAMS, MOST_TRIALS, SaveArgs, ServerChoice, up_to};
use crate::app::duration::Length;
use crate::app::failure::Usage;
use crate::app::size::Size;
use crate::cmd::fill::level::Level;
use crate::cmd::fill::mark::Marks;

/// Fill a server with test data of an exact size
///
/// Without --table, --ddl, --model or --all-tables, pgrig creates the four tables of `pgbench -i`, with the same values,
/// primary keys and statistics. SIZE is the size of finished tables and indexes (pg_total_relation_size); from 50 MB on,
/// the result is within 1 % of it. To complete an interrupted fill, run the same command again.
#[derive(Clone, Debug, Args)]
#[command(
    args_override_self = true,
    after_help = "Examples:\n  \
        pgrig fill 1GB                        # pgrig's own PostgreSQL\n  \
        pgrig fill 73GB --unlogged -d mydb    # the server that psql -d mydb reaches\n  \
        pgrig fill --scale 100 --drop         # as pgbench -i -s 100\n  \
        pgrig fill 5GB --append               # 5 GB more\n  \
        pgrig fill 10GB --ddl shop.sql        # your own schema\n"
)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(crate) struct FillArgs {
    /// Size of the finished tables and indexes: 500MB, 1.5GB, 20GiB …
    #[arg(conflicts_with = "scale")]
    pub(crate) size: Option<Size>,

    /// In place of SIZE: pgbench's scale (100,000 accounts each); for a schema or a model, a factor for all rows
    #[arg(short, long, help_heading = "How much")]
    pub(crate) scale: Option<Factor>,

    /// In place of SIZE: rows of the table, of each table of a schema, or of named tables:
    /// orders=5*customers,products=10000
    #[arg(long, value_name = "ROWS", help_heading = "How much")]
    pub(crate) rows: Option<Rows>,

    /// Add this much to the existing tables; ids continue
    #[arg(long, help_heading = "How much")]
    pub(crate) append: bool,

    /// Fill until the data volume is full, except for the space that the server needs
    #[arg(long, help_heading = "Limits", conflicts_with = "until_free")]
    pub(crate) brim: bool,

    /// With --brim: keep this much free [default: the need of WAL and checkpoints]
    #[arg(long, value_name = "SIZE", requires = "brim", help_heading = "Limits")]
    pub(crate) reserve: Option<Size>,

    /// Fill until only this much is free
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) until_free: Option<Size>,

    /// Fill for this long: 90s, 10min, 2h
    #[arg(long = "for", value_name = "DURATION", help_heading = "Limits")]
    pub(crate) duration: Option<Length>,

    /// Report when the volume passes a level: 80%,90% used, or 10GB free
    #[arg(long, value_name = "MARKS", help_heading = "Limits")]
    pub(crate) mark: Option<Marks>,

    /// When space is short, wait this long for more, then continue
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "10min",
          require_equals = true, help_heading = "Limits")]
    pub(crate) wait_for_space: Option<Length>,

    /// Query to time as the table grows: lookup, batch, scan, or SQL ($1: a random key, $2: the number of rows)
    #[arg(long, value_name = "PROBE", help_heading = "Limits")]
    pub(crate) probe: Option<ProbeKind>,

    /// Options of a level of the article "Generating lots of test data with Postgres, fast and faster";
    /// options given here override them
    #[arg(long, value_name = "LEVEL", help_heading = "Presets")]
    pub(crate) level: Option<Level>,

    /// Fill this size at every level, compare the levels, and drop the tables after each
    #[arg(long, value_name = "SIZE", help_heading = "Presets",
          conflicts_with_all = ["size", "scale", "rows", "append", "level", "drop", "explain", "all_tables"])]
    pub(crate) ladder: Option<Size>,

    /// Trials per level of the ladder [default: 3]
    #[arg(long, value_name = "N", value_parser = up_to::<u16>(MOST_TRIALS), help_heading = "Presets")]
    pub(crate) trials: Option<u16>,

    /// Schema of the tables, created if it does not exist [default: the session's current schema]
    #[arg(long, help_heading = "Tables")]
    pub(crate) schema: Option<String>,

    /// Unlogged tables: no WAL, and emptied if the server crashes
    #[arg(long, overrides_with = "logged", help_heading = "Tables")]
    pub(crate) unlogged: bool,

    /// Logged, crash-safe tables (the default)
    #[arg(long, overrides_with = "unlogged", help_heading = "Tables")]
    pub(crate) logged: bool,

    /// Percentage of each page to fill
    #[arg(short = 'F', long, value_name = "PERCENT", default_value_t = 100, help_heading = "Tables",
          value_parser = clap::value_parser!(u8).range(10..=100))]
    pub(crate) fillfactor: u8,

    /// Number of partitions of pgbench_accounts; each is loaded directly
    #[arg(long, value_name = "N", value_parser = up_to::<u32>(MOST_PARTITIONS), help_heading = "Tables")]
    pub(crate) partitions: Option<u32>,

    /// Partition by ranges of aid or by its hash [default: range; hash where only a limit ends the fill]
    #[arg(long, value_enum, value_name = "METHOD", requires = "partitions", help_heading = "Tables")]
    pub(crate) partition_method: Option<PartitionBy>,

    /// Index on pgbench_accounts: a primary key, a tiny BRIN index, or none
    #[arg(long, value_enum, default_value = "btree", help_heading = "Tables")]
    pub(crate) index: Index,

    /// Add pgbench's foreign keys
    #[arg(long, help_heading = "Tables")]
    pub(crate) foreign_keys: bool,

    /// Tablespace of tables
    #[arg(long, value_name = "NAME", help_heading = "Tables")]
    pub(crate) tablespace: Option<String>,

    /// Tablespace of indexes
    #[arg(long, value_name = "NAME", help_heading = "Tables")]
    pub(crate) index_tablespace: Option<String>,

    /// Turn off autovacuum for these tables
    #[arg(long, help_heading = "Tables")]
    pub(crate) no_autovacuum: bool,

    /// Content of the filler column: the more random, the less the data compress
    #[arg(long, value_enum, default_value = "blank", help_heading = "Tables")]
    pub(crate) payload: Filler,

    /// Fill this table: NAME or schema.NAME; rows satisfy its constraints
    #[arg(long, value_name = "NAME", help_heading = "Your own tables", conflicts_with = "series")]
    pub(crate) table: Option<String>,

    /// File of SQL that creates the tables; without --table, all of them are filled
    #[arg(long, value_name = "FILE", help_heading = "Your own tables", conflicts_with = "series")]
    pub(crate) ddl: Option<PathBuf>,

    /// Fill the tables of a model with near-real data (`pgrig model capture`): SIZE, --scale, or as many rows as the
    /// original; with --all-tables, fill the tables that are there
    #[arg(long, value_name = "FILE", help_heading = "Your own tables", conflicts_with_all = ["series", "table", "ddl"])]
    pub(crate) model: Option<PathBuf>,

    /// Create the missing roles that --ddl names; without it, OWNER TO, GRANT and POLICY for them are skipped
    #[arg(long, help_heading = "Your own tables", requires = "ddl")]
    pub(crate) create_roles: bool,

    /// Fill all tables of the database, or of --schema
    #[arg(long, help_heading = "Your own tables", conflicts_with_all = ["series", "table", "ddl"])]
    pub(crate) all_tables: bool,

    /// Skip this table of --all-tables, --ddl or --model; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Your own tables", conflicts_with = "table")]
    pub(crate) exclude_table: Vec<String>,

    /// Values of a column, e.g. 'price=uniform(1,999.99)'; may be repeated. With several tables give
    /// 'products.price=…'
    ///
    /// SPEC is one of any, unique, serial(start,step), timeseries(start,step), shuffle(low,high),
    /// uniform(low,high), normal(mean,sd), exponential(mean), zipf(n,s), list(a,b*3,c), cycle(a,b),
    /// constant(value), null, nulls(fraction,SPEC), text(n), random(n), blank(n),
    /// reference(table.column), default; or a word for the look of the values: email, user-name, first-name, last-name,
    /// full-name, company, city, country, country-code, street, postcode, phone, url, domain, ip, currency, sku,
    /// title, sentence, latitude, longitude, price, percent, age, year. email(unique) makes all values differ.
    /// pgrig model writes statistics, repeated, letters, keys, greater, above and lesser.
    #[arg(long, value_name = "COLUMN=SPEC", help_heading = "Your own tables")]
    pub(crate) column: Vec<String>,

    /// Seed for random values
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Your own tables")]
    pub(crate) seed: u64,

    /// Ignore column names when choosing values: no e-mail addresses, names, cities …
    #[arg(long, help_heading = "Your own tables")]
    pub(crate) plain: bool,

    /// Run the tables' triggers on INSERT for each row, or skip them. --method direct skips them, so it needs off if a
    /// table has one. Foreign keys are always checked
    #[arg(long, value_enum, default_value = "on", value_name = "STATE", help_heading = "Your own tables")]
    pub(crate) triggers: Triggering,

    /// Fill one table of one integer column by CREATE TABLE AS (level 0)
    #[arg(long, help_heading = "Tables")]
    pub(crate) series: bool,

    /// Rows only: no vacuum, statistics or primary keys (-I tg)
    #[arg(long, overrides_with = "init_steps", help_heading = "Steps")]
    pub(crate) data_only: bool,

    /// Steps, by pgbench's letters: d drop, t create, g generate (G in the server), v vacuum, p primary keys,
    /// f foreign keys [default: tgvp]
    #[arg(short = 'I', long, value_name = "STEPS", overrides_with = "data_only", help_heading = "Steps")]
    pub(crate) init_steps: Option<Letters>,

    /// Drop existing pgbench tables first (-I d…); they are lost even if the fill fails
    #[arg(long, help_heading = "Steps")]
    pub(crate) drop: bool,

    /// Start again from zero in place of completing an interrupted fill
    #[arg(long, help_heading = "Steps")]
    pub(crate) no_resume: bool,

    /// How to load rows: copy (COPY), server (INSERT … SELECT), reinsert (seed rows inserted again into each
    /// partition), explode (dense COPY, spread out by VACUUM FULL), direct (finished pages written to the
    /// tables' files on the server's machine; the default on pgrig's own server)
    #[arg(long, value_enum, default_value = "auto", help_heading = "Method")]
    pub(crate) method: Method,

    /// Same as --method server, for slow networks
    #[arg(long, conflicts_with = "method", help_heading = "Method")]
    pub(crate) server_side: bool,

    /// Number of loading connections, or of writing threads [default: chosen from cores and server]
    #[arg(long, value_name = "N", value_parser = up_to::<u16>(MOST_STREAMS), help_heading = "Method")]
    pub(crate) streams: Option<u16>,

    /// Format of COPY [default: binary; over a network, text]
    #[arg(long, value_enum, help_heading = "Method")]
    pub(crate) format: Option<Format>,

    /// Path of the server's data directory on this machine, if it differs from the server's (a container's
    /// volume, for example)
    #[arg(long, value_name = "DIR", help_heading = "Method")]
    pub(crate) data_directory: Option<PathBuf>,

    /// Commit after this many bytes of heap; committed rows survive an interruption [default: chosen by pgrig]
    #[arg(long, value_name = "SIZE", help_heading = "Method")]
    pub(crate) chunk: Option<Size>,

    /// Print the plan and stop: nothing is changed
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// Most rows: ids are bigint at most.
pub(crate) const MOST_ROWS: u64 = i64::MAX as u64;
/// Largest scale: it has 100,000 times as many accounts.
pub(crate) const MOST_SCALE: u64 = MOST_ROWS / 100_000;

/// The partitions in the form of the request.
pub(crate) fn partitions(count: Option<u32>, method: PartitionMethod) -> Option<Partitions> {
    let count = count.and_then(NonZeroU32::new)?;
    Some(Partitions { count, method })
}

/// A factor above 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor(pub(crate) f64);

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0 && *factor <= MOST_SCALE as f64);
        factor.map(Self).ok_or_else(|| format!("give a number above 0, at most {MOST_SCALE}"))
    }
}

impl Factor {
    /// The factor as pgbench's scale: a whole number.
    pub(crate) fn whole(self) -> Result<u64, Usage> {
        if self.0.fract() > 0.0 {
            let text =
                format!("--scale {}: pgbench's scale is a whole number; give a SIZE, or --rows", self.0);
            return Err(Usage(text));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked where it is read"
        )]
        Ok(self.0 as u64)
    }
}

/// Rows, of each table or of single ones.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    /// Rows of the only table, or of each table.
    Each(u64),
    /// Of single tables.
    Rules(Vec<RowsRule>),
}

impl FromStr for Rows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('=') {
            return text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self::Rules);
        }
        let rows: u64 = text.parse().map_err(|_| format!("\"{text}\" is neither a number nor TABLE=ROWS"))?;
        if (1..=MOST_ROWS).contains(&rows) {
            Ok(Self::Each(rows))
        } else {
            Err(format!("give 1 to {MOST_ROWS}"))
        }
    }
}

/// COPY's formats.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// How rows are divided into partitions.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PartitionBy {
    Range,
    Hash,
}

/// The bulk table's index.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Index {
    Btree,
    Brin,
    None,
}

impl From<PartitionBy> for PartitionMethod {
    fn from(method: PartitionBy) -> Self {
        match method {
            PartitionBy::Range => Self::Range,
            PartitionBy::Hash => Self::Hash,
        }
    }
}

impl From<Index> for IndexKind {
    fn from(index: Index) -> Self {
        match index {
            Index::Btree => Self::Btree,
            Index::Brin => Self::Brin,
            Index::None => Self::None,
        }
    }
}

/// Whether triggers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Triggering {
    On,
    Off,
}

impl From<Triggering> for Triggers {
    fn from(triggering: Triggering) -> Self {
        match triggering {
            Triggering::On => Self::On,
            Triggering::Off => Self::Off,
        }
    }
}

/// Content of a filler column.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Filler {
    /// Blanks, as pgbench's
    Blank,
    /// English-like words
    Text,
    /// Random characters
    Random,
}

/// How rows are made and loaded.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Method {
    Auto,
    Copy,
    Server,
    Reinsert,
    Explode,
    Direct,
}

/// Only the flags, to parse those of a level.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    fill: FillArgs,
}

impl FillArgs {
    /// Parses flags such as those of a level.
    pub(crate) fn of_flags(flags: &str) -> Result<Self, clap::Error> {
        let mut matches = Flags::command().try_get_matches_from(flags.split_whitespace())?;
        Ok(Flags::from_arg_matches_mut(&mut matches)?.fill)
    }
}
