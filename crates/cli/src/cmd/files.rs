//! The files that each verb reads and writes, as its command line names them.

use std::path::PathBuf;

use script::Source;

use crate::app::args::SaveArgs;
use crate::app::overlap::Files;
use crate::app::runs;
use crate::cmd::backup::args::{BackupAction, RehearseArgs};
use crate::cmd::line::Verb;
use crate::cmd::model::args::{CheckArgs, ModelAction};
use crate::cmd::runs::args::RunsAction;

impl Verb {
    /// The files of the command line.
    pub(crate) fn files(&self) -> Files {
        let files = self.save().map(saved).unwrap_or_default();
        match self {
            Self::Fill(fill) => files.reads("--ddl", &fill.ddl).reads("--model", &fill.model),
            Self::Micro(micro) => {
                let is_shipped = |name: &&String| micro::shipped().iter().any(|(known, _)| known == name);
                files.reads("--suite", micro.suite.as_ref().filter(|name| !is_shipped(name)))
            }
            Self::Tps(tps) => files.reads("-f", scripts(&tps.file)).writes("--merge", &tps.merge),
            Self::Ddl(ddl) => files
                .reads("", &ddl.files)
                .reads("--schema-file", &ddl.schema_file)
                .reads("--model", &ddl.model)
                .reads("--probe-read", &ddl.probe_read)
                .reads("--probe-write", &ddl.probe_write),
            Self::Backup(backup) => match &backup.action {
                BackupAction::Rehearse(rehearse) => of_rehearsal(files, rehearse),
                BackupAction::Check(check) => files
                    .reads("", [&check.path])
                    .reads_within("", [&check.path])
                    .reads_within("--wal-directory", &check.wal_directory)
                    .writes("--json", &check.json),
            },
            Self::Testdb(testdb) => testdb.files(files),
            Self::Model(model) => match &model.action {
                ModelAction::Check(check) => of_check(files, check),
                ModelAction::Capture(_) | ModelAction::Show(_) => files,
            },
            Self::Compare(compare) => {
                let words = compare.baseline.iter().chain(&compare.candidate);
                let words = words.chain(&compare.baselines).chain(&compare.candidates);
                files.reads("", runs_in_files(words)).writes("--json", &compare.judge.json)
            }
            Self::Merge(merge) => files.reads("", runs_in_files(&merge.runs)).writes("-o", &merge.output),
            Self::Report(report) => files.reads("", runs_in_files(&report.runs)).writes("-o", &report.output),
            Self::Runs(runs) => match &runs.action {
                RunsAction::Export(export) => {
                    files.reads("", runs_in_files(&export.runs)).writes("-o", [&export.output])
                }
                RunsAction::List(_)
                | RunsAction::Show(_)
                | RunsAction::Rm(_)
                | RunsAction::Prune(_)
                | RunsAction::Import(_) => files,
            },
            Self::Blockio(_)
            | Self::Ab(_)
            | Self::Size(_)
            | Self::Server(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Man(_) => files,
        }
    }
}

/// The files of a run that is saved.
fn saved(save: &SaveArgs) -> Files {
    Files::default().writes("--json", &save.json).writes("--report", &save.report)
}

/// The files of -f, without their weights.
fn scripts(options: &[String]) -> impl Iterator<Item = &str> {
    options.iter().filter_map(|option| Source::weighted_file(option).ok()).map(|(file, _)| file)
}

/// The words that name files of runs, not saved ones.
fn runs_in_files<'w>(words: impl IntoIterator<Item = &'w String>) -> impl Iterator<Item = &'w String> {
    words.into_iter().filter(|word| runs::is_file(word))
}

fn of_rehearsal(files: Files, rehearse: &RehearseArgs) -> Files {
    let is_builtin = |name: &&String| Source::builtins().any(|(builtin, _)| builtin == name.as_str());
    files
        .reads("--schema-file", &rehearse.sized.schema_file)
        .reads("--model", &rehearse.sized.model)
        .reads("--load", rehearse.sized.load.load.as_ref().filter(|name| !is_builtin(name)))
}

fn of_check(files: Files, check: &CheckArgs) -> Files {
    let entries = check.queries.as_ref().and_then(|directory| directory.read_dir().ok());
    let queries = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_query = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sql");
    files.reads("", [&check.original]).reads("--queries", queries.filter(is_query))
}
