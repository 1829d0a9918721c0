//! `pgrig blockio`'s arguments, and the request that they make.

use blockio::{Mode, Request};
use clap::Args;

use crate::app::args::{MOST_STREAMS, MOST_TRIALS, SaveArgs, ServerChoice, up_to};
use crate::app::size::Size;

/// How fast storage is through the database, with SQL alone
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "pgrig creates, vacuums, scans, indexes and clusters a table, then drops it. It reports time, MB/s, buffers \
        and WAL of each step, and the source of the data: shared_buffers (cached), perhaps the operating system's \
        cache (OS-warm), or storage (cold). No superuser and no extension are needed: pgrig skips the steps that the \
        role may not run, and lists them. The method is that of the article \"Benchmarking PostgreSQL block I/O with \
        SQL\".\n\n\
        Examples:\n  \
        pgrig blockio 1GB             # pgrig's own PostgreSQL\n  \
        pgrig blockio 50GB -d mydb    # the server that psql -d mydb reaches\n  \
        pgrig blockio 1GB --baseline latest:blockio    # the change of each step\n"
)]
pub(crate) struct BlockioArgs {
    /// Size of the table; to read from storage, twice the server's memory
    #[arg(default_value = "1GB")]
    pub(crate) size: Size,

    /// Number of trials; results are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = up_to::<u16>(MOST_TRIALS),
          help_heading = "Measurement")]
    pub(crate) trials: u16,

    /// Number of concurrent connections, each with a table of SIZE
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to::<u16>(MOST_STREAMS),
          help_heading = "Measurement")]
    pub(crate) clients: u16,

    /// Run the statements of the published Complete Block Check unchanged, including the flaw of its "1 %"
    /// query; the rows are copies of the server's settings, and SIZE is in the article's GB
    #[arg(long, help_heading = "Measurement")]
    pub(crate) compat: bool,

    /// Saved run to show beside this one, with the change of each step: a file, latest:blockio, an id, or a label
    #[arg(long, value_name = "RUN", help_heading = "Measurement")]
    pub(crate) baseline: Option<String>,

    /// Memory of the server's machine, if pgrig cannot see it; it decides which reads count as cold
    #[arg(long, value_name = "SIZE", help_heading = "Measurement")]
    pub(crate) memory: Option<Size>,

    /// Schema for the tables, for roles that may not create one [default: pgrig_blockio]
    #[arg(long, value_name = "NAME", help_heading = "Tables")]
    pub(crate) schema: Option<String>,

    /// Keep the last trial's tables until the next run
    #[arg(long, help_heading = "Tables")]
    pub(crate) keep: bool,

    /// Print the plan and stop: nothing is changed
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

impl BlockioArgs {
    /// What is asked for.
    pub(crate) fn request(&self) -> Request {
        Request {
            mode: if self.compat { Mode::Compat } else { Mode::Own },
            size: self.size.0,
            trials: self.trials,
            clients: self.clients,
            schema: self.schema.clone(),
            keep: self.keep,
            memory: self.memory.map(|memory| memory.0),
        }
    }
}
