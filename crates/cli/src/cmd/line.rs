//! The command line's shape: a verb with its arguments. Help texts are these doc comments.

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::app::args::{SaveArgs, ServerAction, ServerArgs, ServerChoice};
use crate::app::version::VERSION;
use crate::cmd::ab::args::AbArgs;
use crate::cmd::backup::args::BackupArgs;
use crate::cmd::blockio::args::BlockioArgs;
use crate::cmd::compare::args::CompareArgs;
use crate::cmd::completions::args::CompletionsArgs;
use crate::cmd::ddl::args::DdlArgs;
use crate::cmd::doctor::args::DoctorArgs;
use crate::cmd::fill::args::FillArgs;
use crate::cmd::fill::level::with_level;
use crate::cmd::man::args::ManArgs;
use crate::cmd::merge::args::MergeArgs;
use crate::cmd::micro::args::MicroArgs;
use crate::cmd::mistakes;
use crate::cmd::model::args::ModelArgs;
use crate::cmd::report::args::ReportArgs;
use crate::cmd::runs::args::RunsArgs;
use crate::cmd::size::args::SizeArgs;
use crate::cmd::testdb::args::TestdbArgs;
use crate::cmd::tps::args::TpsArgs;

/// A test rig for PostgreSQL: fills a server with test data as fast as the hardware allows, and measures the server.
///
/// Name a server with -d, -h, -p, -U, or with PGHOST, PGHOSTADDR, PGPORT, PGDATABASE or PGSERVICE, as for psql. Otherwise pgrig starts and uses its own
/// PostgreSQL (see `pgrig server --help`). Commands that fill or measure save their results in a run document (JSON), which
/// compare, merge, report and runs read.
#[derive(Debug, Parser)]
#[command(
    name = "pgrig",
    bin_name = "pgrig",
    version = VERSION,
    disable_help_flag = true,
    disable_version_flag = true,
    propagate_version = true,
    subcommand_help_heading = "Commands (verbs)",
    after_help = "Environment:\n  \
        PGRIG_HOME   directory of pgrig's own PostgreSQL, its data and logs, and of\n               \
        the run documents [default: ~/.local/share/pgrig, for root\n               \
        /var/lib/pgrig]\n  \
        PGRIG_FETCH=never\n               \
        no downloads of PostgreSQL; pgrig server fetch --from installs it\n               \
        from a file\n  \
        PGHOST, PGHOSTADDR, PGPORT, PGDATABASE, PGSERVICE\n               \
        if one of them is set, pgrig connects as psql does, instead of\n               \
        using its own PostgreSQL\n  \
        PGUSER, PGPASSWORD, PGSSLMODE …\n               \
        as for psql; if only these are set, pgrig uses its own PostgreSQL\n\n\
        Exit status:\n  \
        0    done\n  \
        1    no connection (also with a wrong password or an unknown database), the\n       \
        server, the network or the machine failed, the disk lacks room, the\n       \
        command of testdb bench failed, a rehearsed backup cannot be restored\n       \
        or differs, or a part is missing in merge\n  \
        2    the command line or your own SQL is wrong, an --instance does not\n       \
        exist, or the request is impossible\n  \
        3    a condition of --fail-if is true, a judged figure has a verdict of\n       \
        --fail-on, no --way of backup rehearse is certain to restore within\n       \
        --rto, or backup check finds damage or restore errors\n  \
        130  interrupted"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Print only results and errors
    #[arg(short, long, global = true, help_heading = "General")]
    pub(crate) quiet: bool,

    /// Print help (-h is --host)
    #[arg(long, short = '?', global = true, action = clap::ArgAction::HelpLong, help_heading = "General")]
    help: Option<bool>,

    /// Print version
    #[arg(long, short = 'V', global = true, action = clap::ArgAction::Version, help_heading = "General")]
    version: Option<bool>,
}

/// Reads the command line; a level of `fill` stands for its flags.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let cli = parse_as_written(arguments).map_err(|error| mistakes::remedied(arguments, error))?;
    match &cli.verb {
        Verb::Fill(fill) => {
            mistakes::refuse_twice(arguments)?;
            match fill.level {
                Some(level) => parse_as_written(&with_level(arguments, level)),
                None => Ok(cli),
            }
        }
        _ => Ok(cli),
    }
}

/// Reads the command line as clap sees it.
fn parse_as_written(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = with_one_name(Cli::command());
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Every verb's `-V` prints pgrig's own name and version, not `pgrig-fill`.
fn with_one_name(command: Command) -> Command {
    command.display_name("pgrig").mut_subcommands(with_one_name)
}

/// Whether a shell evaluates the output: that of `testdb new`, unless `--format` names a format for other programs.
pub(crate) fn is_for_eval(arguments: &[OsString]) -> bool {
    const FOR_PROGRAMS: [&str; 3] = ["json", "url", "env"];
    let arguments: Vec<_> = arguments.iter().skip(1).map(|argument| argument.to_string_lossy()).collect();
    let words = arguments.iter().filter(|argument| !argument.starts_with('-')).take(2);
    let mut formats = arguments.iter().enumerate().filter_map(|(at, argument)| {
        match argument.strip_prefix("--format")? {
            "" => arguments.get(at + 1).map(|value| &**value),
            value => value.strip_prefix('='),
        }
    });
    words.eq(["testdb", "new"].iter()) && !formats.any(|format| FOR_PROGRAMS.contains(&format))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Fill(Box<FillArgs>),
    Model(ModelArgs),
    Size(SizeArgs),
    Blockio(Box<BlockioArgs>),
    Micro(Box<MicroArgs>),
    Tps(Box<TpsArgs>),
    Ddl(Box<DdlArgs>),
    Backup(BackupArgs),
    Testdb(TestdbArgs),
    Compare(CompareArgs),
    Ab(AbArgs),
    Merge(MergeArgs),
    Report(ReportArgs),
    Runs(RunsArgs),
    Server(ServerArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Verb {
    /// Whether it is a process of its own behind another pgrig, whose signals are not meant for it.
    pub(crate) fn is_background(&self) -> bool {
        matches!(self, Self::Testdb(testdb) if testdb.is_background())
    }

    /// Whether standard output is for JSON alone.
    pub(crate) fn json_to_stdout(&self) -> bool {
        match self {
            Self::Fill(fill) => fill.save.is_to_stdout(),
            Self::Blockio(blockio) => blockio.save.is_to_stdout(),
            Self::Micro(micro) => micro.save.is_to_stdout(),
            Self::Tps(tps) => tps.save.is_to_stdout(),
            Self::Ddl(ddl) => ddl.save.is_to_stdout(),
            Self::Backup(backup) => backup.json_to_stdout(),
            Self::Compare(compare) => compare.judge.json.as_deref() == Some("-"),
            Self::Ab(ab) => ab.judge.json.as_deref() == Some("-"),
            Self::Merge(merge) => merge.output.as_deref() == Some("-"),
            Self::Runs(runs) => runs.json_to_stdout(),
            Self::Size(size) => size.json,
            Self::Testdb(testdb) => testdb.json_to_stdout(),
            Self::Server(server) => matches!(&server.action, ServerAction::Status { json: true, .. }),
            Self::Model(model) => model.save().is_some_and(SaveArgs::is_to_stdout),
            Self::Report(_) | Self::Doctor(_) | Self::Completions(_) | Self::Man(_) => false,
        }
    }

    /// Options of the run document, if the verb measures.
    pub(crate) fn save(&self) -> Option<&SaveArgs> {
        match self {
            Self::Fill(fill) => Some(&fill.save),
            Self::Blockio(blockio) => Some(&blockio.save),
            Self::Micro(micro) => Some(&micro.save),
            Self::Tps(tps) => Some(&tps.save),
            Self::Ddl(ddl) => Some(&ddl.save),
            Self::Backup(backup) => backup.save(),
            Self::Testdb(testdb) => testdb.save(),
            Self::Model(model) => model.save(),
            Self::Ab(_)
            | Self::Compare(_)
            | Self::Merge(_)
            | Self::Report(_)
            | Self::Runs(_)
            | Self::Size(_)
            | Self::Server(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }

    /// Whether it only shows a plan.
    pub(crate) fn explains(&self) -> bool {
        match self {
            Self::Fill(fill) => fill.explain,
            Self::Blockio(blockio) => blockio.explain,
            Self::Micro(micro) => micro.explain,
            Self::Tps(tps) => tps.explain || tps.shown().is_some(),
            Self::Ddl(ddl) => ddl.explain,
            Self::Backup(backup) => backup.explains(),
            _ => false,
        }
    }

    /// Whether it needs a server, or looks after pgrig's own. Other verbs leave servers and journals alone.
    pub(crate) fn uses_a_server(&self) -> bool {
        matches!(self, Self::Server(_)) || self.server().is_some()
    }

    /// The server that it works on, if it does.
    pub(crate) fn server(&self) -> Option<ServerChoice> {
        match self {
            Self::Fill(fill) => Some(fill.server.clone()),
            Self::Blockio(blockio) => Some(blockio.server.clone()),
            Self::Micro(micro) => Some(micro.server.clone()),
            Self::Tps(tps) => Some(tps.server()),
            Self::Ddl(ddl) => Some(ddl.server()),
            Self::Backup(backup) => backup.server(),
            Self::Testdb(testdb) => testdb.server(),
            Self::Model(model) => model.server(),
            Self::Ab(_)
            | Self::Compare(_)
            | Self::Merge(_)
            | Self::Report(_)
            | Self::Runs(_)
            | Self::Size(_)
            | Self::Server(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paragraphs wrap at any width; examples and lists do not.
    #[test]
    fn examples_fit_80_columns() {
        fn assert_fits(command: &Command) {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in after.lines().filter(|line| line.starts_with(' ')) {
                assert!(console::measure_text_width(line) <= 80, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(assert_fits);
        }
        assert_fits(&Cli::command());
    }
}
