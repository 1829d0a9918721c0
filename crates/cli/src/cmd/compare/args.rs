//! `pgrig compare`'s arguments.

use clap::{Args, ValueEnum};
use measure::Verdict;
use measure::compare::Options;

use crate::app::runs::RUN;

/// Help of --figures where the list follows.
const FIGURES: &str = "Judge these figures, separated by commas: tps,p99,wal. More figures need more runs for a verdict [default: the list below]";

/// Compare saved runs: improved, regressed, no change or inconclusive
///
/// A verdict other than inconclusive needs enough runs. If both sides have the same number of runs, each side needs four runs for
/// one judged figure (tps, a latency, a time …), five for two to six figures, and more for more figures. With --paired, each side
/// needs six runs for one figure, and seven for two or three (see pgrig ab --help). With fewer runs, compare prints the differences, and the verdict is inconclusive. Trials of one
/// run do not count, because they share the state of the machine.
#[derive(Debug, Args)]
#[command(
    mut_arg("figures", |figures| figures.help(FIGURES)),
    override_usage = "pgrig compare [OPTIONS] <BASELINE> <CANDIDATE>\n       \
        pgrig compare [OPTIONS] --baseline <RUN>... --candidate <RUN>...",
    after_help = format!("compare needs no server. It judges these figures, and prints all others without a verdict:\n  \
        fill           total time\n  \
        blockio        total, create, scan-first, cluster\n  \
        micro          ratio of each expression to the first one\n  \
        tps            tps, p95 of latency\n  \
        testdb bench   total time\n  \
        ddl            time, class and strongest lock of each statement\n  \
        backup         size, backup time and restore time of each --way\n\n\
        compare never uses incomplete runs of a label. Without --anyway, it refuses an incomplete run that you name by id, file or latest, and \
        runs that differ in server version, settings, machine, transport (Unix socket, TCP or TLS), or an option that affects the measurement; \
        the error lists the differences. With --anyway, it compares these runs, and lists the differences in notes. A machine that becomes slower between two series of runs looks like a change; pgrig ab avoids \
        this, since it runs both sides in turn.\n\n{RUN}\n\n\
        Examples:\n  \
        pgrig tps -T 30 --label before           # five times, before the change\n  \
        pgrig tps -T 30 --label after            # five times, after it\n  \
        pgrig compare before after --fail-on regressed\n  \
        pgrig compare latest:tps~1 latest:tps    # same options; inconclusive\n")
)]
pub(crate) struct CompareArgs {
    /// Runs to compare with (see RUN below)
    #[arg(value_name = "BASELINE", required_unless_present = "baselines", conflicts_with = "baselines")]
    pub(crate) baseline: Option<String>,

    /// Runs to judge (see RUN below)
    #[arg(value_name = "CANDIDATE", required_unless_present = "candidates", conflicts_with = "candidates")]
    pub(crate) candidate: Option<String>,

    /// Runs to compare with; may be repeated
    #[arg(long = "baseline", value_name = "RUN", num_args = 1..)]
    pub(crate) baselines: Vec<String>,

    /// Runs to judge; may be repeated
    #[arg(long = "candidate", value_name = "RUN", num_args = 1..)]
    pub(crate) candidates: Vec<String>,

    #[command(flatten)]
    pub(crate) judge: JudgeArgs,

    /// Compare in pairs, in the order of their start: the first baseline with the first candidate, and so on. The runs must
    /// have been measured in turn, as by pgrig ab
    #[arg(long)]
    pub(crate) paired: bool,

    /// Compare runs even if they differ in options, server version, settings, machine or transport, or if a run that you name by id, file or
    /// latest is not complete
    #[arg(long)]
    pub(crate) anyway: bool,
}

/// How sides are judged.
#[derive(Clone, Debug, Args)]
pub(crate) struct JudgeArgs {
    /// Give the verdict "improved" or "regressed" only if the change is at least PERCENT of the baseline, and "no change" only if
    /// the whole confidence interval of the change lies between -PERCENT and +PERCENT of the baseline
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = crate::app::args::share)]
    pub(crate) threshold: f64,

    /// Judge these figures, separated by commas: tps,p99,wal. More figures need more runs for a verdict [default: the list in pgrig compare --help]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) figures: Vec<String>,

    /// Exit with status 3 if a judged figure has this verdict; separate several with commas
    #[arg(long, value_enum, value_name = "VERDICT", value_delimiter = ',')]
    pub(crate) fail_on: Vec<FailOn>,

    /// Print the result in this format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,

    /// Also write the comparison (JSON) to FILE; an existing FILE is overwritten. With -, write it to standard output and the result to
    /// standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
}

impl JudgeArgs {
    /// The options of the comparison.
    pub(crate) fn options(&self) -> Options {
        Options { threshold: self.threshold, figures: self.figures.clone(), ..Options::default() }
    }

    /// Whether --fail-on names the verdict.
    pub(crate) fn fails_on(&self, verdict: Verdict) -> bool {
        self.fail_on.iter().any(|fail_on| fail_on.verdict() == verdict)
    }
}

/// Formats of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a terminal
    Text,
    /// Markdown, for a pull request
    Md,
    /// Annotations of GitHub Actions on standard output, and Markdown appended to $GITHUB_STEP_SUMMARY
    Github,
}

/// Verdicts that may fail a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// A figure became worse
    Regressed,
    /// The runs do not show whether a figure changed
    Inconclusive,
}

impl FailOn {
    fn verdict(self) -> Verdict {
        match self {
            Self::Regressed => Verdict::Regressed,
            Self::Inconclusive => Verdict::Inconclusive,
        }
    }
}
