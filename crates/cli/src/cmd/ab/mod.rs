//! `pgrig ab`: runs command lines in turn, and makes verdicts from the rounds.

pub(crate) mod args;
mod expressions;
mod text;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use measure::compare::{Comparison, Look, Looks, Options, Sides, fewest_rounds};
use measure::paired::Orders;
use measure::{Run, Verdict};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::runtime::Builder;

use crate::app::command_line::{self, without_passwords};
use crate::app::failure::{BadResult, Context, Failure, MachineFailure, Usage};
use crate::app::interrupt::{self, interrupted};
use crate::app::output::{Existing, refuse_unwritable};
use crate::app::passwords::{self, Words};
use crate::app::printer::Printer;
use crate::app::runs::{Labelled, Selection, identify};
use crate::cmd::ab::args::AbArgs;
use crate::cmd::ab::expressions::Candidates;
use crate::cmd::compare;
use crate::cmd::line::{self, Verb};

/// Time for an interrupted command to restore settings and stop its server.
const PATIENCE: Duration = Duration::from_mins(1);
/// Exit status of a command whose thresholds were missed, although it has measured completely.
const MISSED: i32 = 3;

/// One of the commands.
#[derive(Debug)]
pub(crate) struct Arm {
    /// As the user wrote it, without passwords.
    pub(crate) shown: String,
    /// Its letter: a, b, …
    pub(crate) letter: char,
    program: PathBuf,
    /// The verb, with its subcommand if it has one.
    verb: Vec<OsString>,
    /// All words after the verb.
    rest: Vec<OsString>,
    /// The password of its connection string.
    password: Option<OsString>,
    label: String,
}

/// Runs the commands and prints the result; fails if a verdict of --fail-on occurs.
pub(crate) fn run(arguments: &AbArgs, printer: &Printer) -> Result<(), Failure> {
    let (id, _) = identify("ab");
    let arms = arms(arguments, arguments.label.as_deref().unwrap_or(&id))?;
    let selection = Selection::new(Labelled::All, printer)?;
    for arm in &arms {
        if arguments.label.is_some() && selection.has_label(&arm.label)? {
            return Err(Usage(format!(
                "saved runs have the label {} already: give another --label",
                arm.label
            ))
            .into());
        }
    }
    let rounds = usize::from(arguments.rounds);
    let early: Vec<usize> = arguments.look.iter().map(|look| usize::from(*look)).collect();
    if let Some(late) = early.iter().find(|look| **look >= rounds) {
        return Err(Usage(format!(
            "--look {late} comes too late: give a round before the last one, {rounds}"
        ))
        .into());
    }
    let work = Work {
        arguments,
        looks: Looks::new(&early, rounds),
        seed: arguments.seed.unwrap_or_else(|| fastrand::u64(..)),
        place: tempfile::tempdir().context("cannot create a directory for the output of the commands")?,
        arms,
        printer,
    };
    if let Some(name) = arguments.judge.json.as_deref().filter(|name| *name != "-") {
        refuse_unwritable("--json", Path::new(name), Existing::Replaced)?;
        File::create(name).map_err(|error| Usage(format!("cannot write --json {name}: {error}")))?;
    }
    printer.say(text::plan(&work.arms, arguments, &work.looks));
    let runtime = Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let rounds = interrupt::block_on(runtime, printer, work.rounds())?;
    work.end(rounds)
}

/// The remedy for a command that does not begin with pgrig: one that begins with a variable, for example.
fn without_pgrig(words: &[String]) -> String {
    const OPTIONS: [(&str, &str); 4] =
        [("PGHOST", "-h"), ("PGPORT", "-p"), ("PGUSER", "-U"), ("PGDATABASE", "-d")];
    let begin = "begin the command with pgrig";
    let Some((name, value)) = words.first().and_then(|word| word.split_once('=')) else {
        return begin.to_owned();
    };
    match OPTIONS.iter().find(|(variable, _)| *variable == name) {
        Some((_, option)) => {
            let option = command_line::shown(&[(*option).to_owned(), value.to_owned()]);
            format!("{begin}, and give {option} in it instead of {name}")
        }
        None => format!("{begin}: to set {name} for all commands, write it before pgrig ab"),
    }
}

/// The commands, checked before anything runs.
fn arms(arguments: &AbArgs, label: &str) -> Result<Vec<Arm>, Failure> {
    let own = std::env::current_exe().context("cannot find pgrig's own program")?;
    let mut verb = None;
    let mut candidates = Vec::new();
    let arms = arguments.commands.iter().zip('a'..='z').map(|(shown, letter)| {
        let hidden = without_passwords(shown);
        let refused = |why: String| Usage(format!("command {letter} ({hidden}): {why}"));
        let words = shlex::split(shown)
            .ok_or_else(|| refused("the command has an unclosed quote: close it".to_owned()))?;
        let is_pgrig =
            words.first().is_some_and(|word| Path::new(word).file_name() == Some("pgrig".as_ref()));
        if !is_pgrig {
            return Err(refused(without_pgrig(&words)));
        }
        if words.len() == 1 {
            return Err(refused("no command follows pgrig: put each command line in quotes".to_owned()));
        }
        let of_shell =
            |word: &&String| ["|", "||", "&&", "&", ";", ">", ">>", "<", "2>"].contains(&word.as_str());
        let until_command = words.iter().take_while(|word| *word != "--");
        if let Some(word) = until_command.into_iter().find(of_shell) {
            return Err(refused(format!(
                "pgrig runs the command without a shell: leave out {word} and the words after it"
            )));
        }
        let parsed = line::parse(&words.iter().map(OsString::from).collect::<Vec<_>>()).map_err(|error| {
            let text = error.to_string();
            let text = text.split("\n\nFor more information").next().unwrap_or_default();
            refused(text.trim_start_matches("error: ").trim_end().to_owned())
        })?;
        let mut dbnames: Vec<String> =
            parsed.verb.server().and_then(|server| server.dbname).into_iter().collect();
        if let Verb::Tps(arguments) = &parsed.verb {
            dbnames.extend(arguments.dbnames().into_iter().map(str::to_owned));
        }
        let dbnames: Vec<&str> = dbnames.iter().map(String::as_str).collect();
        // The command is not shown: a part of a malformed string may be a password.
        let kept =
            Words::new(&words, &dbnames).map_err(|error| Usage(format!("command {letter}: {error}")))?;
        let is_compared = !matches!(parsed.verb, Verb::Ddl(_) | Verb::Backup(_) | Verb::Model(_));
        let Some(save) = parsed.verb.save().filter(|_| is_compared) else {
            return Err(refused("give one of fill, blockio, micro, tps and testdb bench".to_owned()));
        };
        if save.json.is_some() || save.label.is_some() {
            return Err(refused("leave out --json and --label: ab sets them".to_owned()));
        }
        if parsed.verb.explains() {
            return Err(refused("it only shows a plan: leave out --explain or --dry-run".to_owned()));
        }
        let kind = std::mem::discriminant(&parsed.verb);
        if *verb.get_or_insert(kind) != kind {
            return Err(refused(
                "command a runs another pgrig command: give the same one in all; only its options may differ"
                    .to_owned(),
            ));
        }
        if let Verb::Fill(fill) = &parsed.verb
            && (arguments.rounds > 1 || !arguments.no_warm_up)
            && fill.works_once()
        {
            let why =
                format!("each round fills the tables again: give --drop in each command: {hidden} --drop");
            return Err(refused(why));
        }
        candidates.extend(Candidates::of(&parsed.verb, &kept.words));
        // Another build of pgrig, if a path names it.
        let shown = passwords::shown(shown, &words, &kept.words);
        let words: Vec<OsString> = kept.words.into_iter().map(OsString::from).collect();
        let program = PathBuf::from(&words[0]);
        let program = if program.components().count() > 1 { program } else { own.clone() };
        let (verb, rest) = words[1..].split_at(verb_length(&words[1..]));
        let [verb, rest] = [verb, rest].map(<[OsString]>::to_vec);
        Ok(Arm {
            shown,
            letter,
            program,
            verb,
            rest,
            password: kept.password,
            label: format!("{label}-{letter}"),
        })
    });
    let arms = arms.collect::<Result<Vec<_>, Usage>>()?;
    if arms.len() < arguments.commands.len() {
        return Err(Usage("there are too many commands: give at most 26".to_owned()).into());
    }
    if arguments.judge.figures.is_empty() && candidates.len() == arms.len() {
        expressions::refuse_apart(&candidates)?;
    }
    Ok(arms)
}

/// Number of words after `pgrig` that belong to the verb, with options before it and the second word of `testdb
/// bench`. Words behind a later `--` belong to the user's command.
fn verb_length(words: &[OsString]) -> usize {
    let is_name = |word: &OsString| !word.as_encoded_bytes().starts_with(b"-");
    let mut names = words.iter().enumerate().filter(|(_, word)| is_name(word));
    let verb = names.next();
    let last = if verb.is_some_and(|(_, word)| word == "testdb") { names.next() } else { verb };
    last.map_or(words.len(), |(place, _)| place + 1)
}

struct Work<'a> {
    arguments: &'a AbArgs,
    arms: Vec<Arm>,
    looks: Looks,
    seed: u64,
    /// Directory for documents and error messages of the commands.
    place: TempDir,
    printer: &'a Printer,
}

/// The judged rounds: the runs of each arm.
struct Rounds {
    runs: Vec<Vec<Run>>,
    /// The look after which they ended.
    look: Look,
}

impl Work<'_> {
    async fn rounds(&self) -> Result<Rounds, Failure> {
        let mut runs: Vec<Vec<Run>> = self.arms.iter().map(|_| Vec::new()).collect();
        let mut orders = Orders::new(self.arms.len(), self.seed);
        let began = Instant::now();
        if !self.arguments.no_warm_up {
            let order = orders.next().context("orders have no end")?;
            let warm = self.round(&order, "-warm-up").await?;
            self.printer.say(text::round("warm-up", &warm, self.arguments));
            self.check_figures(&warm)?;
        }
        let rounds = usize::from(self.arguments.rounds);
        let warm_up = usize::from(!self.arguments.no_warm_up);
        for number in 1..=rounds {
            let order = orders.next().context("orders have no end")?;
            let found = match self.round(&order, "").await {
                Ok(found) => found,
                Err(error) => {
                    self.printer.say(text::saved(number - 1, rounds, &self.labels()));
                    return Err(error);
                }
            };
            let each = began.elapsed().as_secs_f64() / (number + warm_up) as f64;
            let left = each * (rounds - number) as f64;
            let title = text::title(number, rounds, left);
            self.printer.say(text::round(&title, &found, self.arguments));
            for (all, run) in runs.iter_mut().zip(found) {
                all.push(run);
            }
            if number == 1 && warm_up == 0 {
                self.check_figures(&runs.iter().map(|runs| runs[0].clone()).collect::<Vec<_>>())?;
            }
            if let Some(look) = self.looks.after(number)
                && (number == rounds || self.all_differ(&runs, look)?)
            {
                return Ok(Rounds { runs, look });
            }
        }
        unreachable!("the last round has a look")
    }

    /// One run of each arm, in the order of the arms; their labels end with `suffix`.
    async fn round(&self, order: &[usize], suffix: &str) -> Result<Vec<Run>, Failure> {
        let mut found: Vec<Option<Run>> = self.arms.iter().map(|_| None).collect();
        for place in order {
            found[*place] = Some(self.command(&self.arms[*place], suffix).await?);
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Runs a command to its end, and reads its document.
    async fn command(&self, arm: &Arm, suffix: &str) -> Result<Run, Failure> {
        let [document, errors] = ["run.json", "errors"].map(|name| self.place.path().join(name));
        let log = File::create(&errors).context("cannot write the output of a command")?;
        let mut command = std::process::Command::new(&arm.program);
        command
            .args(&arm.verb)
            .arg("--quiet")
            .arg("--label")
            .arg(format!("{}{suffix}", arm.label))
            .arg("--json")
            .arg(&document);
        command.args(&arm.rest);
        command.envs(arm.password.iter().map(|password| ("PGPASSWORD", password)));
        // In a group of its own: Ctrl-C reaches pgrig alone, which passes it on once.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = Command::from(command)
            .spawn()
            .with_context(|| format!("cannot start {}", arm.program.display()))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let status = tokio::select! {
            status = child.wait() => status.context("cannot wait for a command")?,
            () = interrupted(self.printer) => {
                if let Some(group) = group {
                    // An error means that it has ended.
                    let _ = kill(group, Signal::SIGINT);
                }
                if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
                    if let Some(group) = group {
                        let _ = killpg(group, Signal::SIGKILL);
                    }
                    let _ = child.wait().await;
                }
                return Err(BadResult::Stopped.into());
            }
        };
        Self::refuse_failed(arm, status, &errors)?;
        let text = std::fs::read_to_string(&document).context("cannot read a command's run document")?;
        Run::read(&text).with_context(|| format!("command {} left no run document", arm.letter))
    }

    fn refuse_failed(arm: &Arm, status: ExitStatus, errors: &Path) -> Result<(), Failure> {
        if status.success() || status.code() == Some(MISSED) {
            return Ok(());
        }
        let said = std::fs::read_to_string(errors).unwrap_or_default();
        let said = said.trim().trim_start_matches("error: ");
        let Arm { letter, shown, .. } = arm;
        let text = format!("command {letter} ({shown}) ended with {status}: {said}");
        // The request was wrong.
        if status.code() == Some(2) { Err(Usage(text).into()) } else { Err(MachineFailure(text).into()) }
    }

    /// Options of the judgement at a look. The comparisons with the first arm divide the allowed
    /// false verdicts.
    fn options(&self, look: Look) -> Options {
        let comparisons = self.arms.len() - 1;
        Options { alpha: look.alpha / comparisons as f64, ..self.arguments.judge.options() }
    }

    /// The comparison of each other arm with the first.
    fn comparisons(&self, runs: &[Vec<Run>], look: Look) -> Result<Vec<(Sides, Comparison)>, Failure> {
        let beside_first = runs[1..].iter().map(|candidate| {
            let sides =
                Sides::new(runs[0].clone(), candidate.clone()).context("there is no round")?.paired()?;
            let comparison = Comparison::of(&sides, &self.options(look));
            compare::refuse_nothing(&comparison, &self.arguments.judge)?;
            Ok((sides, comparison))
        });
        beside_first.collect()
    }

    /// Whether all judged figures differ.
    fn all_differ(&self, runs: &[Vec<Run>], look: Look) -> Result<bool, Failure> {
        let comparisons = self.comparisons(runs, look)?;
        let mut verdicts = comparisons.iter().flat_map(|(_, comparison)| comparison.judged()).peekable();
        Ok(verdicts.peek().is_some()
            && verdicts.all(|(_, verdict)| matches!(verdict, Verdict::Improved | Verdict::Regressed)))
    }

    fn labels(&self) -> Vec<&str> {
        self.arms.iter().map(|arm| arm.label.as_str()).collect()
    }

    /// Called after the first round: refuses runs without a figure to judge, and warns if there
    /// will be too few rounds for a verdict.
    fn check_figures(&self, round: &[Run]) -> Result<(), Failure> {
        let judge = &self.arguments.judge;
        let mut judged = 0;
        for candidate in &round[1..] {
            let sides =
                Sides::new(vec![round[0].clone()], vec![candidate.clone()]).context("there is no round")?;
            let comparison = Comparison::of(&sides, &judge.options());
            compare::refuse_nothing(&comparison, judge)?;
            judged = judged.max(comparison.judged().count());
            if judged == 0 && comparison.unmeasured.is_empty() {
                let why = "these commands have no common figure to judge: give one with --figures; to compare \
                           expressions, give them to one pgrig micro";
                return Err(Usage(why.to_owned()).into());
            }
        }
        for look in self.looks.all() {
            let needed = fewest_rounds(judged, self.options(*look).alpha);
            if look.round < needed {
                self.printer.warn(text::too_few(
                    look.round,
                    usize::from(self.arguments.rounds),
                    judged,
                    needed,
                ));
            }
        }
        Ok(())
    }

    /// Prints and saves the verdicts.
    fn end(&self, rounds: Rounds) -> Result<(), Failure> {
        let Rounds { runs, look } = rounds;
        let judge = &self.arguments.judge;
        let comparisons = self.comparisons(&runs, look)?;
        self.printer.say(text::again(&self.labels(), judge));
        for note in text::notes(&runs) {
            self.printer.say(note);
        }
        for (arm, (sides, comparison)) in self.arms[1..].iter().zip(&comparisons) {
            let title = format!("pgrig ab, {} beside {}", arm.letter, self.arms[0].letter);
            let as_text = || text::result(&self.arms[0], arm, sides, comparison, judge);
            let named = [self.arms[0].shown.as_str(), arm.shown.as_str()];
            compare::show(&title, named, sides, comparison, judge, as_text, self.printer)?;
        }
        if let Some(name) = &judge.json {
            let documents = self.arms[1..].iter().zip(&comparisons).map(|(arm, (sides, comparison))| {
                let mut document = compare::document(sides, comparison, judge);
                document["command"] = arm.shown.clone().into();
                document
            });
            let document = json!({
                "baseline_command": self.arms[0].shown,
                "seed": self.seed,
                "rounds": look.round,
                "rounds_planned": self.arguments.rounds,
                "alpha": look.alpha,
                "comparisons": documents.collect::<Vec<_>>(),
            });
            compare::save(name, &document)?;
        }
        let comparisons: Vec<&Comparison> = comparisons.iter().map(|(_, comparison)| comparison).collect();
        compare::fail_on(&comparisons, &[], judge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_ab_go_before_those_of_the_command() {
        let length = |text: &str| verb_length(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(length("tps -S -T 1"), 1);
        assert_eq!(length("-q tps -S"), 2);
        assert_eq!(length("testdb bench --trials 3 -- ./test --json x"), 2);
    }
}
