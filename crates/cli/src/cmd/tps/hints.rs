//! Commands to run after a `tps` run.

use connect::split_password;
use script::{Action, Script};
use server::quote::shell_word;
use tps::{End, Outcome, Plan, Protocol};

use crate::app::command_line::left_out;
use crate::app::passwords::Words;

/// Least number of transactions for which hints are given.
const WORTH_A_HINT: u64 = 100;

/// Commands to run next, ready to paste. `dbnames` are the databases that the command names.
pub(crate) fn hints(plan: &Plan, outcome: &Outcome, dbnames: &[&str]) -> Vec<String> {
    let mut hints = Vec::new();
    if outcome.end != End::Complete || outcome.all.counts.succeeded < WORTH_A_HINT {
        return hints;
    }
    let Some(again) = command_line(&["--json", "--label"], dbnames) else { return hints };
    if plan.request.rate.is_none() {
        let half = (outcome.tps() / 2.0).max(1.0).round();
        hints.push(again.hint("latency at half of this rate", &format!(" -R {half}")));
    }
    let statements = |script: &Script| {
        script.commands().iter().filter(|command| matches!(command.action(), Action::Sql(_))).count()
    };
    let has_several = plan.scripts.iter().any(|script| statements(script) > 1);
    if has_several && !plan.request.statements {
        hints.push(again.hint("time of each command", " -r"));
    }
    hints.extend(comparison(plan.request.protocol, dbnames));
    hints
}

/// A command for a comparison in rounds, because two runs differ by more than their trials: with another protocol, as an
/// example. None if the command cannot be repeated unchanged.
fn comparison(protocol: Protocol, dbnames: &[&str]) -> Option<String> {
    let command = command_line(&["--json", "--label", "--trials", "--fail-if", "-M", "--protocol"], dbnames)?;
    let reads_input = command.words.iter().any(|word| word == "-" || word == "-f-");
    let has_attached = command.words.iter().any(|word| word.starts_with("-M"));
    // Not every script runs with the simple protocol.
    let other = if protocol == Protocol::Prepared { Protocol::Extended } else { Protocol::Prepared };
    let with = |protocol: Protocol| shell_word(&format!("{} -M {}", command.shown(), protocol.name()));
    let hint = || {
        format!(
            "compare in rounds, for example protocols: pgrig ab --rounds 10 {} {}",
            with(protocol),
            with(other)
        )
    };
    (!reads_input && !has_attached && !command.had_password).then(hint)
}

/// The arguments of the present command.
struct CommandLine {
    words: Vec<String>,
    /// Whether a connection string had a password, which is left out.
    had_password: bool,
}

/// The present command without these options, each of which has a value, and without the passwords of its connection
/// strings. None if a password may be left in it.
fn command_line(without: &[&str], dbnames: &[&str]) -> Option<CommandLine> {
    CommandLine::new(&leave_out(std::env::args().skip(1), without), dbnames)
}

fn leave_out(arguments: impl Iterator<Item = String>, options: &[&str]) -> Vec<String> {
    let mut arguments = arguments;
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.split_once('=') {
            Some((name, _)) if options.contains(&name) => {}
            None if options.contains(&argument.as_str()) => drop(arguments.next()),
            _ => kept.push(argument),
        }
    }
    kept
}

/// The word without its password: a URI as the user wrote it, where the password can be left out of it; else `kept`, in keywords.
fn readable(given: &str, kept: String) -> String {
    let left = left_out(given);
    let uri =
        ["postgresql://", "postgres://"].iter().find_map(|scheme| left.find(scheme)).map(|at| &left[at..]);
    let has_none = |uri: &str| !uri.contains('*') && split_password(uri).is_ok_and(|found| found.is_none());
    if left != given && uri.is_some_and(has_none) { left } else { kept }
}

impl CommandLine {
    fn new(words: &[String], dbnames: &[&str]) -> Option<Self> {
        let Words { words: kept, password } = Words::new(words, dbnames).ok()?;
        let words: Vec<String> = words.iter().zip(kept).map(|(given, kept)| readable(given, kept)).collect();
        let is_secret = words.iter().any(|word| word.to_lowercase().contains("password"));
        (!is_secret).then_some(Self { words, had_password: password.is_some() })
    }

    /// The command, quoted for a shell.
    fn shown(&self) -> String {
        let words = self.words.iter().map(|word| shell_word(word));
        std::iter::once("pgrig".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// A hint that ends with the command and these words.
    fn hint(&self, purpose: &str, more: &str) -> String {
        let password = if self.had_password { " (with the password in PGPASSWORD)" } else { "" };
        format!("{purpose}{password}: {}{more}", self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl Iterator<Item = String> {
        text.split(' ').map(str::to_owned)
    }

    #[test]
    fn options_are_left_out_with_their_values() {
        let kept = leave_out(
            words("tps --trials 3 -c 4 --json=x --fail-if p99>1s -S --trials=2"),
            &["--json", "--trials", "--fail-if"],
        );
        assert_eq!(kept, ["tps", "-c", "4", "-S"]);
    }

    #[test]
    fn a_shell_reads_a_quoted_command_as_one_word() {
        let words = ["tps", "-f", "it's mine.sql", ""].map(str::to_owned);
        let command = CommandLine::new(&words, &[]).unwrap();
        for text in [command.shown(), "a b".to_owned(), "'".to_owned(), "$HOME `x` \\".to_owned()] {
            let script = format!("printf %s {}", shell_word(&text));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }

    #[test]
    fn a_hint_has_no_password_and_can_be_pasted() {
        let words: Vec<String> = words("tps -T 1 -d postgresql://u:secret@h/db").collect();
        let command = CommandLine::new(&words, &[]).unwrap();
        let hint = command.hint("again", " -r");
        let shown = "again (with the password in PGPASSWORD): pgrig tps -T 1 -d postgresql://u@h/db -r";
        assert_eq!(hint, shown);
        // A password that only the parser of connection strings finds.
        let hidden = ["tps", "-d", "postgresql://u@h/db?pass%77ord=secret"].map(str::to_owned);
        let hint = CommandLine::new(&hidden, &[]).unwrap().hint("again", "");
        assert!(hint.contains("host=") && !hint.contains("secret"), "{hint}");
        let unsure = ["tps", "-D", "password=secret"].map(str::to_owned);
        assert!(CommandLine::new(&unsure, &[]).is_none());
    }
}
