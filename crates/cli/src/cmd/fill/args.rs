//! `pgrig fill`'s arguments. Types of their values: `values.rs`; the request that they make: `request.rs`.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use fill::{Letters, ProbeKind};

use crate::app::args::{EXPLAIN, MOST_PARTITIONS, MOST_STREAMS, MOST_TRIALS, SaveArgs, ServerChoice, up_to};
use crate::app::duration::Length;
use crate::app::part::PartArg;
use crate::app::size::Size;
use crate::cmd::fill::level::Level;
use crate::cmd::fill::mark::Marks;
use crate::cmd::fill::values::{
    Bloat, Factor, Filler, Format, Index, Method, PartitionBy, RowsArg, Triggering, one_table, table,
};

/// Help of --scale.
const SCALE: &str = "Instead of SIZE:\n\
    - pgbench's tables: pgbench's scale; scale 1 is 100,000 rows of pgbench_accounts\n\
    - --model: SCALE times the original's rows of each table, for example 0.1\n\
    - --ddl or --all-tables, without --rows: a table without foreign keys gets 10,000*SCALE rows, any other table 3 times as many rows as the largest table that it references\n\
    - --ddl or --all-tables, with --rows N: each table gets N*SCALE rows; SCALE does not change numbers of --rows TABLE=N";

/// Fill a server with test data of a given size
///
/// By default, pgrig creates the four tables of `pgbench -i`, with the same values, primary keys and statistics. To fill
/// tables of your own, give --ddl, --table, --all-tables or --model. To complete an interrupted fill, run the same
/// command again.
///
/// SIZE is the size of the finished tables and indexes (pg_total_relation_size). The result differs from SIZE by at most
/// 1 % for pgbench's tables (50 MB or more), 2 % for one table of your own (60 MB or more; 5 % with GIN, GiST or hash
/// indexes), and 2 % for a whole schema (100 MB or more; 5 % with partitions).
#[derive(Clone, Debug, Args)]
#[command(
    args_override_self = true,
    after_help = concat!(
        "Values of --column:\n  \
        any, unique              random values of the type; values that all differ\n  \
        serial(100,2)            100, 102, 104 …; serial alone: 1, 2, 3 …\n  \
        timeseries(2024-01-01,1s) \n                           \
        times from 2024-01-01, one second apart\n  \
        shuffle(1,1000)          each of 1 to 1000 once, in random order\n  \
        uniform(1,9.99)          1 to 9.99, all equally often\n  \
        normal(170,10)           normal distribution: mean, standard deviation\n  \
        exponential(30)          exponential distribution: mean\n  \
        zipf(1000,1.2)           1 to 1000; the frequency of k falls as 1/k^1.2\n  \
        list(new,paid*3)         one of these at random; paid 3 times as often\n  \
        cycle(a,b), constant(x)  these in turn; the same in each row\n  \
        null, nulls(0.1,SPEC)    NULL; NULL in a tenth of the rows, else SPEC\n  \
        text(80), text(5,90)     80 characters of words; 5 to 90 characters\n  \
        random(80), blank(80)    random characters; spaces\n  \
        reference(t.c)           values of column c of table t\n  \
        default                  the column's default, identity or expression\n\
        Or a kind of value: email, user-name, first-name, last-name, full-name,\n\
        company, city, country, country-code, street, postcode, phone, url, domain,\n\
        ip, currency, sku, title, sentence, latitude, longitude, price, percent, age,\n\
        year. email(unique): all differ. Model files contain further specifications;\n\
        docs/src/verbs/fill.md in pgrig's source explains them all.\n\n",
        "Examples:\n  \
        pgrig fill 1GB                        # pgrig's own, unless PGHOST is set\n  \
        pgrig fill 73GB --unlogged -d mydb    # the server that psql -d mydb reaches\n  \
        pgrig fill 5GB --append               # 5 GB more\n  \
        pgrig fill 10GB --ddl schema.sql      # your own schema, from a file\n  \
        pgrig fill 10GB --all-tables --append -d shop    # more rows in each table\n"
    )
)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(crate) struct FillArgs {
    /// Size of the finished tables and indexes: 500MB, 1.5GB (powers of 1000), 20GiB (powers of 1024)
    #[arg(conflicts_with = "scale")]
    pub(crate) size: Option<Size>,

    #[arg(short, long, help = SCALE, help_heading = "How much")]
    pub(crate) scale: Option<Factor>,

    /// Instead of SIZE: the number of rows of pgbench_accounts. With tables of your own: N rows for each table, or TABLE=N
    /// and TABLE=N*OTHER for individual tables: orders=5*customers,products=10000
    #[arg(long, value_name = "ROWS", help_heading = "How much")]
    pub(crate) rows: Option<RowsArg>,

    /// Add SIZE (or --rows, --scale) to the existing tables; ids continue
    #[arg(long, help_heading = "How much")]
    pub(crate) append: bool,

    /// Fill this one table: TABLE or SCHEMA.TABLE. It must exist, or --ddl must create it. The rows satisfy its constraints
    #[arg(long, value_name = "TABLE", value_parser = one_table, help_heading = "Your own tables", conflicts_with = "series")]
    pub(crate) table: Option<String>,

    /// Run this SQL file (- is standard input) to create the tables, then fill all of them, or only the one that --table names
    #[arg(
        long,
        aliases = ["schema-file", "from"],
        value_name = "FILE",
        help_heading = "Your own tables",
        conflicts_with = "series"
    )]
    pub(crate) ddl: Option<PathBuf>,

    /// Fill all existing tables of the database, or of --schema. A table with rows is an error without --append
    #[arg(long, help_heading = "Your own tables", conflicts_with_all = ["series", "table", "ddl"])]
    pub(crate) all_tables: bool,

    /// Create the tables of this model (see `pgrig model capture`), and fill them with data like the original's. Without
    /// SIZE, --scale and --rows, they get the original's number of rows. With --all-tables, pgrig fills the existing
    /// tables and creates none
    #[arg(long, value_name = "FILE", help_heading = "Your own tables", conflicts_with_all = ["series", "table", "ddl"])]
    pub(crate) model: Option<PathBuf>,

    /// keep: with --model, put as many rows into each page as the original has. The tables then have the original's size, with the
    /// free space that updates and deletes left. Without --bloat, pages are full
    #[arg(long, value_enum, value_name = "HOW", requires = "model", help_heading = "Your own tables")]
    pub(crate) bloat: Option<Bloat>,

    /// With --all-tables, --ddl or --model: do not fill this table; may be repeated
    #[arg(long, value_name = "TABLE", value_parser = table, help_heading = "Your own tables", conflicts_with = "table")]
    pub(crate) exclude_table: Vec<String>,

    /// Set the values of a column: 'price=uniform(1,999.99)'. With several tables, put the table's name first:
    /// 'products.price=…'. May be repeated. See "Values of --column" below
    #[arg(long, value_name = "COLUMN=SPEC", help_heading = "Your own tables")]
    pub(crate) column: Vec<String>,

    /// Seed of the random values
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Your own tables")]
    pub(crate) seed: u64,

    /// Do not choose values by the names of columns. (By default, a column called email gets e-mail addresses.)
    #[arg(long, help_heading = "Your own tables")]
    pub(crate) plain: bool,

    /// on: run the row-level INSERT triggers. off: skip them. --method direct cannot run triggers: if a table has
    /// one, direct needs --triggers off. The rows satisfy foreign keys in any case
    #[arg(long, value_enum, default_value = "on", value_name = "STATE", help_heading = "Your own tables")]
    pub(crate) triggers: Triggering,

    /// Create the roles that --ddl names and the server lacks. Without this option, pgrig skips OWNER TO, GRANT and CREATE
    /// POLICY for them
    #[arg(long, help_heading = "Your own tables", requires = "ddl")]
    pub(crate) create_roles: bool,

    /// Create the tables in this schema, and create the schema if it does not exist [default: the first of search_path].
    /// With --all-tables: fill only the tables of this schema [default: all schemas]
    #[arg(long, help_heading = "Tables")]
    pub(crate) schema: Option<String>,

    /// Make the tables unlogged: the server writes no WAL for them, and empties them after a crash
    #[arg(long, conflicts_with = "logged", help_heading = "Tables")]
    pub(crate) unlogged: bool,

    /// Make the tables logged: they survive a crash. Without --level, this is the default; with --level, --logged overrides the level
    #[arg(long, help_heading = "Tables")]
    pub(crate) logged: bool,

    /// Drop the existing pgbench_accounts, pgbench_branches, pgbench_history and pgbench_tellers first (same as --init-steps with d);
    /// they are lost even if the fill fails. pgrig never drops tables of your own
    #[arg(long, help_heading = "pgbench's tables")]
    pub(crate) drop: bool,

    /// Percentage of each page to fill
    #[arg(short = 'F', long, value_name = "PERCENT", default_value_t = 100, help_heading = "pgbench's tables",
          value_parser = clap::value_parser!(u8).range(10..=100))]
    pub(crate) fillfactor: u8,

    /// Divide pgbench_accounts into N partitions [default: none]
    #[arg(long, value_name = "N", value_parser = up_to::<u32>(MOST_PARTITIONS), help_heading = "pgbench's tables")]
    pub(crate) partitions: Option<u32>,

    /// Partition by ranges of aid or by its hash [default: range; hash if you give a limit such as --brim, and no SIZE, --scale or --rows]
    #[arg(
        long,
        value_enum,
        value_name = "METHOD",
        requires = "partitions",
        help_heading = "pgbench's tables"
    )]
    pub(crate) partition_method: Option<PartitionBy>,

    /// Index of pgbench_accounts: btree (its primary key), brin (a small BRIN index, no primary key), or none
    #[arg(long, value_enum, default_value = "btree", help_heading = "pgbench's tables")]
    pub(crate) index: Index,

    /// Add pgbench's foreign keys
    #[arg(long, help_heading = "pgbench's tables")]
    pub(crate) foreign_keys: bool,

    /// Content of pgbench's column "filler"; random content compresses less
    #[arg(long, value_enum, default_value = "blank", help_heading = "pgbench's tables")]
    pub(crate) payload: Filler,

    /// Create the tables in this tablespace
    #[arg(long, value_name = "NAME", help_heading = "pgbench's tables")]
    pub(crate) tablespace: Option<String>,

    /// Create the indexes in this tablespace
    #[arg(long, value_name = "NAME", help_heading = "pgbench's tables")]
    pub(crate) index_tablespace: Option<String>,

    /// Create the tables with autovacuum_enabled=off, which stays after the fill
    #[arg(long, help_heading = "pgbench's tables")]
    pub(crate) no_autovacuum: bool,

    /// Fill one table of one integer column with CREATE TABLE AS (level 0)
    #[arg(long, help_heading = "pgbench's tables")]
    pub(crate) series: bool,

    /// Use the options of this level of the article "Generating lots of test data with Postgres, fast and faster". Other
    /// options of the command line override them; --explain shows the result
    #[arg(long, value_name = "LEVEL", help_heading = "pgbench's tables")]
    pub(crate) level: Option<Level>,

    /// Fill new tables of SIZE at each level in a schema of pgrig's own (or in that of --schema), drop them, and compare the times of the
    /// levels. Other tables stay. Do not give another SIZE
    #[arg(long, value_name = "SIZE", help_heading = "pgbench's tables",
          conflicts_with_all = ["size", "scale", "rows", "append", "level", "drop", "explain", "all_tables"])]
    pub(crate) ladder: Option<Size>,

    /// With --ladder: number of trials of each level [default: 3]
    #[arg(long, value_name = "N", value_parser = up_to::<u16>(MOST_TRIALS), help_heading = "pgbench's tables")]
    pub(crate) trials: Option<u16>,

    /// Fill the data volume, except for the space that the server needs for WAL and checkpoints. To leave more space free, give
    /// --reserve. pgrig sees the free space only if it runs on the server's machine as root or as the server's user, and connects as a
    /// superuser or a member of pg_read_all_settings. Otherwise it prints a warning, and fills until the server reports a full disk. With
    /// tables of your own, --brim, --until-free and --probe need --table
    #[arg(long, help_heading = "Limits", conflicts_with = "until_free")]
    pub(crate) brim: bool,

    /// With --brim: leave at least SIZE free, or the space that WAL and checkpoints need, if that is more. pgrig must see the
    /// free space (see --brim)
    #[arg(long, value_name = "SIZE", requires = "brim", help_heading = "Limits")]
    pub(crate) reserve: Option<Size>,

    /// Stop when only SIZE remains free on the data volume. pgrig must see the free space (see --brim)
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) until_free: Option<Size>,

    /// Stop after this time, even if SIZE is not reached: 90s, 10min, 2h
    #[arg(long = "for", value_name = "DURATION", help_heading = "Limits")]
    pub(crate) duration: Option<Length>,

    /// Print a line when the data volume is this full, or has only this much free: 80%,90%,10GB. pgrig must see the free space
    /// (see --brim)
    #[arg(long, value_name = "MARKS", help_heading = "While it fills")]
    pub(crate) mark: Option<Marks>,

    /// Each time the volume is full, wait up to DURATION for more free space, then continue. If no space becomes free
    /// in that time, stop; the rows loaded so far stay [default without a value: 10min]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "10min",
          require_equals = true, help_heading = "While it fills")]
    pub(crate) wait_for_space: Option<Length>,

    /// Time a query as the table grows: lookup (one row by key), batch (a hundred rows), scan (4 MB), or SQL with $1 for
    /// a random key and $2 for the number of rows in the table
    #[arg(long, value_name = "PROBE", help_heading = "While it fills")]
    pub(crate) probe: Option<ProbeKind>,

    /// Only create the tables and load the rows (same as --init-steps tg): no vacuum, statistics or primary keys
    #[arg(long, overrides_with = "init_steps", help_heading = "Steps")]
    pub(crate) data_only: bool,

    /// Run these steps; each letter is a step, as for pgbench: d drop the tables, t create them, g generate the rows (G: in the
    /// server), v vacuum, p add primary keys, f add foreign keys [default: tgvp]
    #[arg(short = 'I', long, value_name = "STEPS", overrides_with = "data_only", help_heading = "Steps")]
    pub(crate) init_steps: Option<Letters>,

    /// Start an interrupted fill from the beginning instead of completing it. For pgbench's tables, give --no-resume --drop. Otherwise, first
    /// drop the tables that --ddl or --model created, or run TRUNCATE on your existing tables; then give --no-resume
    #[arg(long, help_heading = "Steps")]
    pub(crate) no_resume: bool,

    /// Load rows in this way
    #[arg(long, value_enum, default_value = "auto", help_heading = "Method")]
    pub(crate) method: Method,

    /// Same as --method server, for slow networks
    #[arg(long, conflicts_with = "method", help_heading = "Method")]
    pub(crate) server_side: bool,

    /// Number of connections that load rows. With --method direct: number of pairs of threads; in each pair,
    /// one thread builds pages and the other writes them [default: depends on cores and server]
    #[arg(long, value_name = "N", value_parser = up_to::<u16>(MOST_STREAMS), help_heading = "Method")]
    pub(crate) streams: Option<u16>,

    /// Use this format of COPY [default: binary; over a network, text]
    #[arg(long, value_enum, help_heading = "Method")]
    pub(crate) format: Option<Format>,

    /// With --method direct: path of the data directory on this machine, if the server knows it by another path (for
    /// example in a container)
    #[arg(long, value_name = "DIR", help_heading = "Method")]
    pub(crate) data_directory: Option<PathBuf>,

    /// Commit each time SIZE of table data is loaded; an interruption loses only the rows since the last commit
    /// [default: pgrig chooses]
    #[arg(long, value_name = "SIZE", help_heading = "Method")]
    pub(crate) chunk: Option<Size>,

    /// Fill as part I of N: 2/4. Start N processes with the same options and different numbers, on one machine or
    /// several. Each loads its share of the rows by COPY, as soon as one process has created the tables. The last
    /// process to finish runs vacuum and creates the keys. With --part auto, pgrig takes I/N from Slurm's variables, from
    /// JOB_COMPLETION_INDEX with PGRIG_PARTS, or from PGRIG_PART
    #[arg(long, value_name = "I/N", help_heading = "Parts")]
    pub(crate) part: Option<PartArg>,

    #[arg(long, visible_alias = "dry-run", help = EXPLAIN, help_heading = "Output")]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
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
