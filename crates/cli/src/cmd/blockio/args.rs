//! `pgrig blockio`'s arguments, and the request that they make.

use blockio::{Mode, Request};
use clap::Args;

use crate::app::args::{EXPLAIN, MOST_STREAMS, MOST_TRIALS, SaveArgs, ServerChoice, up_to};
use crate::app::failure::Usage;
use crate::app::size::Size;

/// Measure how fast the database reads and writes its storage, with SQL alone
///
/// pgrig creates a table, vacuums, scans, indexes and clusters it, and drops it. For each step it prints time, MB/s,
/// buffers, WAL, and the source of the blocks: cached (shared_buffers), OS-warm (possibly the operating system's cache)
/// or cold (storage). blockio needs no superuser and no extension: pgrig skips the steps that the role may not run, and
/// lists them. The method is that of the article "Benchmarking PostgreSQL block I/O with SQL".
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
        pgrig blockio 1GB             # pgrig's own PostgreSQL, unless PGHOST is set\n  \
        pgrig blockio 64GiB --memory 32GiB -d mydb    # twice the memory\n  \
        pgrig blockio 1GB --baseline latest:blockio    # the change of each step\n")]
pub(crate) struct BlockioArgs {
    /// Size of the table. To read from storage and not from caches, give twice the memory of the server
    #[arg(default_value = "1GB")]
    pub(crate) size: Size,

    /// Number of trials; pgrig prints their medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = up_to::<u16>(MOST_TRIALS),
          help_heading = "Measurement")]
    pub(crate) trials: u16,

    /// Number of concurrent connections, each with a table of SIZE
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to::<u16>(MOST_STREAMS),
          help_heading = "Measurement")]
    pub(crate) clients: u16,

    /// Run the statements of the published script "Complete Block Check" unchanged, to compare with published results. This includes its "1 %"
    /// query, which scans the whole table. The table then contains 12,500 copies of all rows of pg_settings for each GB of SIZE
    #[arg(long, help_heading = "Measurement")]
    pub(crate) compat: bool,

    /// Show the saved run RUN (a file, latest:blockio, an id or a label) beside the new one, with the change of each
    /// step. SIZE, --clients and --compat must be the same
    #[arg(long, value_name = "RUN", help_heading = "Measurement")]
    pub(crate) baseline: Option<String>,

    /// Memory of the server's machine; give it if pgrig runs on another machine. Reads count as cold only if the tables are at least twice this size
    #[arg(long, value_name = "SIZE", help_heading = "Measurement")]
    pub(crate) memory: Option<Size>,

    /// Create the tables in this existing schema [default: pgrig_blockio, which pgrig creates, and drops at the end]
    #[arg(long, value_name = "SCHEMA", help_heading = "Tables")]
    pub(crate) schema: Option<String>,

    /// Do not drop the tables of the last trial; the next run drops them
    #[arg(long, help_heading = "Tables")]
    pub(crate) keep: bool,

    #[arg(long, visible_alias = "dry-run", help = EXPLAIN, help_heading = "Output")]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

impl BlockioArgs {
    /// The benchmark's request, from the options.
    ///
    /// # Errors
    /// If the memory is nothing.
    pub(crate) fn request(&self) -> Result<Request, Usage> {
        if self.memory.is_some_and(|memory| memory.0 == 0) {
            return Err(Usage(
                "--memory 0 B is too small: give the memory of the server's machine".to_owned(),
            ));
        }
        Ok(Request {
            mode: if self.compat { Mode::Compat } else { Mode::Own },
            size: self.size.0,
            trials: self.trials,
            clients: self.clients,
            schema: self.schema.clone(),
            keep: self.keep,
            memory: self.memory.map(|memory| memory.0),
        })
    }
}
