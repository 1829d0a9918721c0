//! Commands to run after a `tps` run.

use script::{Action, Script};
use tps::{End, Outcome, Plan};

/// Least number of transactions for which hints are given.
const WORTH_A_HINT: u64 = 100;

/// Commands to run next, ready to paste.
pub(crate) fn hints(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut hints = Vec::new();
    if outcome.end != End::Complete || outcome.all.counts.succeeded < WORTH_A_HINT {
        return hints;
    }
    let again = command_line(&["--json", "--label"]).shown();
    if plan.request.rate.is_none() {
        let half = (outcome.tps() / 2.0).max(1.0).round();
        hints.push(format!("latency at half of this rate: {again} -R {half}"));
    }
    let statements = |script: &Script| {
        script.commands().iter().filter(|command| matches!(command.action(), Action::Sql(_))).count()
    };
    let has_several = plan.scripts.iter().any(|script| statements(script) > 1);
    if has_several && !plan.request.statements {
        hints.push(format!("time of each command: {again} -r"));
    }
    hints.extend(comparison());
    hints
}

/// A command for a comparison in rounds, because two runs differ by more than their trials. None if
/// the command cannot be repeated unchanged.
fn comparison() -> Option<String> {
    let command = command_line(&["--json", "--label", "--trials", "--fail-if"]);
    let reads_input = command.0.iter().any(|argument| argument == "-" || argument == "-f-");
    let is_whole = !command.0.iter().any(|argument| is_secret(argument)) && !reads_input;
    let quoted = quoted(&command.shown());
    is_whole.then(|| format!("compare with a changed second command: pgrig ab --rounds 10 {quoted} {quoted}"))
}

/// The arguments of the present command.
struct CommandLine(Vec<String>);

/// The present command without these options, each of which has a value.
fn command_line(without: &[&str]) -> CommandLine {
    CommandLine(leave_out(std::env::args().skip(1), without))
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

impl CommandLine {
    /// The command, quoted for a shell. Arguments that may contain a password are replaced by
    /// placeholders.
    fn shown(&self) -> String {
        let shown = self.0.iter().map(|argument| match argument {
            secret if is_secret(secret) => "…".to_owned(),
            argument => quoted(argument),
        });
        std::iter::once("pgrig".to_owned()).chain(shown).collect::<Vec<_>>().join(" ")
    }
}

fn is_secret(argument: &str) -> bool {
    argument.contains("://") || argument.contains("password")
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=@:,+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
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
        let command = CommandLine(["tps", "-f", "it's mine.sql", ""].map(str::to_owned).into());
        for text in [command.shown(), "a b".to_owned(), "'".to_owned(), "$HOME `x` \\".to_owned()] {
            let script = format!("printf %s {}", quoted(&text));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
