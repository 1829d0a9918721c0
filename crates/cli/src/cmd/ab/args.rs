//! `pgrig ab`'s arguments.

use clap::{Args, value_parser};

use crate::cmd::compare::args::JudgeArgs;

/// Most rounds: a comparison of n rounds computes n² pairs of values.
const MOST_ROUNDS: i64 = 1000;

/// Help of --figures.
const FIGURES: &str = "Judge these figures, separated by commas: tps,p99,wal. More figures need more rounds for a verdict \
                       [default: the list in pgrig compare --help]";

/// Run pgrig commands in turn, round by round, and judge whether their results differ
///
/// Each round runs each COMMAND once, in random order. A slow phase of the machine then affects all commands alike. The first
/// command is the baseline. pgrig compares every other command with the baseline, round by round, with an exact test. All COMMANDs
/// must have the same verb (fill, blockio, micro, tps or testdb bench); their options may differ: server, version, settings,
/// script.
#[derive(Debug, Args)]
#[command(mut_arg("figures", |figures| figures.help(FIGURES)), after_help = "A COMMAND that \
    starts a server also stops it. To keep a server running between the rounds, run pgrig server start first. Do not do \
    this if a COMMAND has --set or --profile: such a COMMAND must start its server itself. `pgrig fill` needs --drop, because each round fills the tables again. The results of the warm-up round do not count.\n\n\
    Examples:\n  \
    pgrig ab 'pgrig tps -T 10' 'pgrig tps -T 10 -M prepared'\n  \
    pgrig ab 'pgrig fill 1GB --drop --instance pg17 --pg-version 17' \\\n           \
    'pgrig fill 1GB --drop'\n  \
    pgrig ab --rounds 20 'pgrig tps -S -T 2' 'pgrig tps -S -T 2 -c 4'\n")]
pub(crate) struct AbArgs {
    /// Two or more pgrig command lines, each in quotes: 'pgrig tps -T 10'
    #[arg(value_name = "COMMAND", required = true, num_args = 2..)]
    pub(crate) commands: Vec<String>,

    /// Measure N rounds, after a warm-up round. The number of comparisons is the number of judged figures times the number of commands after
    /// the first. A verdict other than inconclusive needs 6 rounds for 1 comparison, 7 for 2 or 3, and 8 for 4 to 6
    #[arg(long, value_name = "N", default_value = "10", value_parser = value_parser!(u16).range(1..=MOST_ROUNDS))]
    pub(crate) rounds: u16,

    /// Give the runs of the first command the label LABEL-a, those of the second LABEL-b … [default: LABEL is the
    /// id of the comparison]
    #[arg(long, value_name = "LABEL", value_parser = crate::app::args::label)]
    pub(crate) label: Option<String>,

    #[command(flatten)]
    pub(crate) judge: JudgeArgs,

    /// Test after this round, too, and stop if all judged figures differ; separate several rounds with commas. Each
    /// additional test requires more evidence for a verdict
    #[arg(long, value_name = "ROUND", value_delimiter = ',', value_parser = value_parser!(u16).range(1..=MOST_ROUNDS))]
    pub(crate) look: Vec<u16>,

    /// Leave out the warm-up round
    #[arg(long)]
    pub(crate) no_warm_up: bool,

    /// Seed of the random order in each round [default: random]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
