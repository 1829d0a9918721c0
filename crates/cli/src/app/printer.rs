//! Prints all output: results to standard output, everything else to standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use console::{Term, measure_text_width, style};

use crate::app::terminal::can_draw;
use crate::app::wrap::wrapped;

/// Number of lines that were printed to a terminal so far.
static SHOWN: AtomicUsize = AtomicUsize::new(0);

/// Prints results, progress and warnings.
pub(crate) struct Printer {
    /// Approximate start of the process.
    started: Instant,
    quiet: bool,
    /// Standard output holds JSON and nothing else; results for people go to standard error.
    json_to_stdout: bool,
}

impl Printer {
    pub(crate) fn new(quiet: bool, json_to_stdout: bool) -> Self {
        Self { started: Instant::now(), quiet, json_to_stdout }
    }

    /// Time since the process began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether only results and errors are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints text of another thread above a progress bar; the next drawing restores the bar.
    pub(crate) fn interject(text: &str) {
        let clear = if io::stderr().is_terminal() && can_draw() { "\r\x1b[K" } else { "" };
        to_stderr(&format!("{clear}{text}"));
    }

    /// Columns of the terminal that shows results; none if it is a file or a pipe.
    pub(crate) fn width() -> Option<usize> {
        let terminal = Term::stdout();
        terminal.size_checked().filter(|_| terminal.is_term()).map(|(_, columns)| columns.into())
    }

    /// A result, for people.
    pub(crate) fn result(&self, text: impl Display) -> io::Result<()> {
        if !self.json_to_stdout {
            return to_stdout(text);
        }
        if !self.quiet {
            self.say(text);
        }
        Ok(())
    }

    /// Prints a result again if it has scrolled off the screen since it was printed at `place`.
    pub(crate) fn remind(&self, place: OutputPosition, text: &str) -> io::Result<()> {
        let terminal = Term::stdout();
        let Some((rows, columns)) = terminal.size_checked().filter(|_| terminal.is_term()) else {
            return Ok(());
        };
        let text = format!("the result again:\n{}", text.trim_start_matches('\n'));
        // The shell's prompt takes a line.
        let room = usize::from(rows).saturating_sub(1);
        let is_gone = OutputPosition::here().0 - place.0 > room;
        let fits = wrapped(&text, columns.into()).lines().count() < room;
        if is_gone && fits { self.result(text) } else { Ok(()) }
    }

    /// A result, for programs.
    pub(crate) fn json(text: &str) -> io::Result<()> {
        whole_to_stdout(text)
    }

    /// Prints progress. Not when quiet.
    pub(crate) fn say(&self, text: impl Display) {
        if !self.quiet {
            to_stderr(&text.to_string());
        }
    }

    /// Prints a warning, even with --quiet.
    #[expect(clippy::unused_self, reason = "output has one owner")]
    pub(crate) fn warn(&self, text: impl Display) {
        to_stderr(&format!("{} {text}", style("warning:").for_stderr().yellow().bold()));
    }

    /// Prints a danger in red, even with --quiet.
    #[expect(clippy::unused_self, reason = "output has one owner")]
    pub(crate) fn danger(&self, text: impl Display) {
        to_stderr(&style(text.to_string()).for_stderr().red().bold().to_string());
    }

    #[expect(clippy::unused_self, reason = "output has one owner")]
    pub(crate) fn error(&self, text: impl Display) {
        to_stderr(&format!("{} {text}", style("error:").for_stderr().red().bold()));
    }

    /// Whether a progress bar can be drawn, plain progress lines are printed, or neither.
    pub(crate) fn progress(&self) -> ProgressStyle {
        if self.quiet {
            ProgressStyle::None
        } else if io::stderr().is_terminal() && can_draw() {
            ProgressStyle::Bar
        } else {
            ProgressStyle::Lines
        }
    }
}

/// A place in the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputPosition(usize);

impl OutputPosition {
    /// The end of the output so far.
    pub(crate) fn here() -> Self {
        Self(SHOWN.load(Ordering::Relaxed))
    }
}

/// The text up to the first empty line.
pub(crate) fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or(text)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressStyle {
    None,
    Lines,
    Bar,
}

fn to_stdout(text: impl Display) -> io::Result<()> {
    whole_to_stdout(&for_terminal(&Term::stdout(), &text.to_string()))
}

fn whole_to_stdout(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
        .map_err(|error| io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
}

/// The text, broken to the width of a terminal.
fn for_terminal(terminal: &Term, text: &str) -> String {
    match terminal.size_checked() {
        Some((_, columns)) if terminal.is_term() => {
            let text = wrapped(text, columns.into());
            let rows = |line: &str| measure_text_width(line).div_ceil(usize::from(columns).max(1)).max(1);
            SHOWN.fetch_add(text.split('\n').map(rows).sum(), Ordering::Relaxed);
            text
        }
        _ => text.to_owned(),
    }
}

/// Errors are ignored: if standard error is closed, no message can reach the user.
fn to_stderr(text: &str) {
    let _ = writeln!(io::stderr(), "{}", for_terminal(&Term::stderr(), text));
}
