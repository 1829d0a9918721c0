//! `pgrig ab`'s arguments.

use clap::{Args, value_parser};

use crate::cmd::compare::args::JudgeArgs;

/// Most rounds: a comparison of n rounds computes n² pairs of values.
const MOST_ROUNDS: i64 = 1000;

/// Run pgrig commands in turn and judge whether they differ
///
/// Each round runs every COMMAND once, in balanced random order, so that a machine that is slow for a while slows all
/// of them. An exact paired test judges the rounds. The commands may differ in anything: server, version, settings,
/// script. The first command is the baseline.
#[derive(Debug, Args)]
#[command(
    after_help = "Quote each COMMAND as one word of the shell: pgrig fill, blockio, micro, tps or testdb bench with options. A \
    server that a command started is stopped at its end; to keep one running between rounds, use pgrig server start. \
    A command with --set must start the server itself. The first round warms up and does not count.\n\n\
    Examples:\n  \
    pgrig ab 'pgrig tps -T 10' 'pgrig tps -T 10 -M prepared'\n  \
    pgrig ab 'pgrig fill 1GB --drop --instance pg17 --pg-version 17' \\\n           \
    'pgrig fill 1GB --drop'\n  \
    pgrig ab --rounds 20 'pgrig tps -S -T 2' 'pgrig tps -S -T 2 -c 4'\n"
)]
pub(crate) struct AbArgs {
    /// Two or more pgrig command lines
    #[arg(value_name = "COMMAND", required = true, num_args = 2..)]
    pub(crate) commands: Vec<String>,

    /// Number of rounds that count
    #[arg(long, value_name = "N", default_value = "10", value_parser = value_parser!(u16).range(1..=MOST_ROUNDS))]
    pub(crate) rounds: u16,

    /// Stop after this round if all judged figures differ by then; may be repeated. With more
    /// looks, each test is stricter
    #[arg(long, value_name = "ROUND", value_delimiter = ',', value_parser = value_parser!(u16).range(1..=MOST_ROUNDS))]
    pub(crate) look: Vec<u16>,

    /// Leave out the warm-up: the first round counts
    #[arg(long)]
    pub(crate) no_warm_up: bool,

    /// Seed for the order of the commands [default: random]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Label of the runs; pgrig appends -a, -b … for the commands [default: the comparison's id]
    #[arg(long, value_name = "NAME", value_parser = crate::app::args::label)]
    pub(crate) label: Option<String>,

    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
}
