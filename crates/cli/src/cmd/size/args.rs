//! `pgrig size`'s arguments.

use clap::{ArgGroup, Args};
use fill::{Amount, InitSteps, Request};

use crate::app::args::{MOST_PARTITIONS, up_to};
use crate::app::size::{Size, without_database};
use crate::cmd::fill::values::{Index, MOST_ROWS, MOST_SCALE, PartitionBy, partitions};

/// Calculate the size, rows and scale of pgbench's tables from one of the three, without a server
///
/// Give SIZE, --scale or --rows; pgrig calculates the other two. The sizes are those that `pgrig fill` predicts with the same options.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("amount").required(true).args(["size", "scale", "rows"])),
    after_help = "Examples:\n  \
        pgrig size 73GB\n  \
        pgrig size --scale 5000\n  \
        pgrig size 20GiB --data-only --fillfactor 10"
)]
pub(crate) struct SizeArgs {
    /// Size of pgbench's tables and indexes, for example 73GB
    #[arg(value_parser = without_database)]
    pub(crate) size: Option<Size>,

    /// Instead of SIZE: pgbench's scale
    #[arg(short, long, value_parser = up_to::<u64>(MOST_SCALE))]
    pub(crate) scale: Option<u64>,

    /// Instead of SIZE: rows of pgbench_accounts
    #[arg(long, value_parser = up_to::<u64>(MOST_ROWS))]
    pub(crate) rows: Option<u64>,

    /// Leave out the primary keys
    #[arg(long)]
    pub(crate) data_only: bool,

    /// Percentage of each page to fill
    #[arg(short = 'F', long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u8).range(10..=100))]
    pub(crate) fillfactor: u8,

    /// Divide pgbench_accounts into N partitions
    #[arg(long, value_name = "N", value_parser = up_to::<u32>(MOST_PARTITIONS))]
    pub(crate) partitions: Option<u32>,

    /// Partition by ranges of aid or by its hash
    #[arg(long, value_enum, value_name = "METHOD", default_value = "range", requires = "partitions")]
    pub(crate) partition_method: PartitionBy,

    /// Index of pgbench_accounts: btree (its primary key), brin (a small BRIN index, no primary key), or none
    #[arg(long, value_enum, default_value = "btree")]
    pub(crate) index: Index,

    /// Block size of the server, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 8192, value_parser = block_size)]
    pub(crate) block_size: u32,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a block size that `configure --with-blocksize` accepts.
fn block_size(text: &str) -> Result<u32, String> {
    let size =
        text.parse().ok().filter(|size: &u32| size.is_power_of_two() && (1024..=32_768).contains(size));
    size.ok_or_else(|| "give 1024, 2048, 4096, 8192, 16384 or 32768".to_owned())
}

impl SizeArgs {
    /// The request for a fill whose size is computed.
    pub(crate) fn request(&self) -> Request {
        let amount = match (self.size, self.scale, self.rows) {
            (_, Some(scale), _) => Amount::Scale(scale),
            (_, _, Some(rows)) => Amount::Rows(rows),
            (size, None, None) => Amount::Size(size.map_or(0, |size| size.0)),
        };
        let steps = if self.data_only { InitSteps::data_only() } else { InitSteps::whole() };
        Request {
            fillfactor: self.fillfactor,
            partitions: partitions(self.partitions, self.partition_method.into()),
            index: self.index.into(),
            ..Request::new(amount, steps)
        }
    }
}
