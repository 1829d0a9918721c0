//! `pgrig merge`'s arguments.

use clap::Args;

use crate::app::args::label;
use crate::app::runs::RUN;

/// Combine the parts of a run of tps or fill into one run
///
/// The parts are runs of pgrig tps --part I/N, or of pgrig fill --part I/N, against one server. For tps, merge adds
/// counts and histograms of latencies, second by second on the server's clock, so percentiles are those of all
/// transactions. It uses only the seconds in which all parts ran, and prints how many seconds it leaves out. For fill,
/// merge adds the rows; the rate counts only the time in which all parts loaded rows. merge saves the merged run, so
/// compare, report and runs can read it.
#[derive(Debug, Args)]
#[command(after_help = format!("merge needs no server. It refuses runs that differ in scripts, options, tables, rows, server, version, \
    database or build of pgrig, and names each difference. Runs of tps must also have the same settings, and runs of fill must be \
    parts of the same fill. If a part is missing, the result is partial: a note names the part, the run is not complete, and the \
    exit status is 1.\n\n{RUN}\n\nExamples:\n  \
    for i in 1 2; do pgrig tps -n -T 30 -d mydb --part $i/2 --label a & done; wait\n  \
    pgrig merge a -o merged.json\n  \
    for i in 1 2; do pgrig fill 1GB -d mydb --schema b --part $i/2 \\\n    \
    --label b & done; wait\n  \
    pgrig merge b\n"))]
pub(crate) struct MergeArgs {
    /// The runs of all parts, in any order (see RUN below)
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,

    /// Also write the merged run document (JSON) to FILE; an existing FILE is overwritten. With -, write it to standard output and
    /// the result to standard error
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,

    /// Give the merged run a label, by which compare, report and runs find it
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub(crate) label: Option<String>,
}
