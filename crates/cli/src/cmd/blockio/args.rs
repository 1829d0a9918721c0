//! `pgrig blockio`'s arguments, and the request that they make.

use std::path::PathBuf;

use blockio::{Mode, Request};
use clap::Args;

use crate::app::args::{MOST_STREAMS, MOST_TRIALS, SaveArgs, ServerChoice, up_to};
use crate::app::size::Size;

/// How fast storage is through the database, with SQL alone
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Makes a table, vacuums, scans, indexes and clusters it, and drops it again: time, MB/s, buffers and\n\
        WAL of each step, and whether what was read came from shared_buffers (cached), perhaps from the\n\
        operating system's cache (OS-warm) or from storage (cold). Needs no superuser and no extension:\n\
        what a role may not do is left out, and said. After \"Benchmarking PostgreSQL block I/O with SQL\".\n\n\
        Examples:\n  \
        pgrig blockio 1GB                       pgrig's own PostgreSQL\n  \
        pgrig blockio 50GB -d mydb              the server that psql -d mydb reaches\n  \
        pgrig blockio 1GB --compat              the published statements, beside published figures\n  \
        pgrig blockio 1GB --json before.json\n  \
        pgrig blockio 1GB --baseline before.json\n"
)]
pub(crate) struct BlockioArgs {
    /// What the table shall take; twice the server's memory to read from storage
    #[arg(default_value = "1GB")]
    pub(crate) size: Size,

    /// How often all is done: results are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = up_to::<u16>(MOST_TRIALS),
          help_heading = "What is measured")]
    pub(crate) trials: u16,

    /// So many connections at once, each with its own table of SIZE
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to::<u16>(MOST_STREAMS),
          help_heading = "What is measured")]
    pub(crate) clients: u16,

    /// The statements of the published Complete Block Check exactly, its "1 %" query with its flaw; rows are
    /// the server's settings, SIZE the article's
    #[arg(long, help_heading = "What is measured")]
    pub(crate) compat: bool,

    /// A saved run to show beside this one: the change of each step
    #[arg(long, value_name = "FILE", help_heading = "What is measured")]
    pub(crate) baseline: Option<PathBuf>,

    /// Memory of the server's machine, where pgrig cannot see it: decides what counts as cold
    #[arg(long, value_name = "SIZE", help_heading = "What is measured")]
    pub(crate) memory: Option<Size>,

    /// Make the tables in this schema, for roles that may not create one [default: pgrig_blockio]
    #[arg(long, value_name = "NAME", help_heading = "Tables")]
    pub(crate) schema: Option<String>,

    /// Keep the last trial's tables until the next run
    #[arg(long, help_heading = "Tables")]
    pub(crate) keep: bool,

    /// Print the plan and stop: nothing is changed
    #[arg(long)]
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
