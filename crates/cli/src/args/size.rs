//! `pgrig size`'s arguments.

use std::num::NonZeroU32;

use clap::{ArgGroup, Args};
use workload::fill::{Amount, InitSteps, Partitions, Request};

use super::fill::{Index, PartitionBy};
use crate::size::Size;

/// Rows, scale and bytes from one another, without a server.
///
/// What `pgrig fill` makes with the same options, to the block: article 000's calculator.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("amount").required(true).args(["size", "scale", "rows"])),
    after_help = "Examples:\n  \
        pgrig size 73GB\n  \
        pgrig size --scale 5000\n  \
        pgrig size 20GiB --data-only --fillfactor 10"
)]
pub(crate) struct SizeArgs {
    /// What tables and indexes take: which rows make it?
    pub(crate) size: Option<Size>,

    /// pgbench's scale: what does it take?
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) scale: Option<u64>,

    /// Rows of pgbench_accounts: what do they take?
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: Option<u64>,

    /// Without vacuum and primary keys
    #[arg(long)]
    pub(crate) data_only: bool,

    /// Percent of each page that is filled
    #[arg(short = 'F', long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u8).range(10..=100))]
    pub(crate) fillfactor: u8,

    /// pgbench_accounts in so many partitions
    #[arg(long, value_name = "N")]
    pub(crate) partitions: Option<NonZeroU32>,

    /// By ranges or by hash
    #[arg(long, value_enum, value_name = "METHOD", default_value = "range", requires = "partitions")]
    pub(crate) partition_method: PartitionBy,

    /// Index on pgbench_accounts
    #[arg(long, value_enum, default_value = "btree")]
    pub(crate) index: Index,

    /// The server's block size, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 8192)]
    pub(crate) block_size: u32,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl SizeArgs {
    /// The fill whose size is wanted.
    pub(crate) fn request(&self) -> Request {
        let amount = match (self.size, self.scale, self.rows) {
            (_, Some(scale), _) => Amount::Scale(scale),
            (_, _, Some(rows)) => Amount::Rows(rows),
            (size, None, None) => Amount::Size(size.map_or(0, |size| size.0)),
        };
        let steps = if self.data_only { InitSteps::data_only() } else { InitSteps::whole() };
        Request {
            fillfactor: self.fillfactor,
            partitions: self
                .partitions
                .map(|count| Partitions { count, method: self.partition_method.into() }),
            index: self.index.into(),
            ..Request::new(amount, steps)
        }
    }
}
