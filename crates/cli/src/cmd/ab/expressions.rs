//! Commands of `micro` that have no figure in common.

use micro::Body;
use server::quote::shell_word;

use crate::app::command_line::shown;
use crate::app::failure::Usage;
use crate::cmd::line::Verb;

/// The candidates of a command of `micro`.
pub(super) struct Candidates {
    names: Vec<String>,
    /// Whether all are expressions.
    are_expressions: bool,
    /// The words of the command, without passwords.
    words: Vec<String>,
}

impl Candidates {
    /// The candidates of a command; none if it is not one of `micro`, or is wrong.
    pub(super) fn of(verb: &Verb, words: &[String]) -> Option<Self> {
        let Verb::Micro(arguments) = verb else { return None };
        let candidates = arguments.request().ok().filter(|_| !arguments.calibrate)?.candidates;
        let are_expressions =
            candidates.iter().all(|candidate| matches!(candidate.body, Body::Expression(_)));
        let names = candidates.into_iter().map(|candidate| candidate.name).collect();
        Some(Self { names, are_expressions, words: words.to_vec() })
    }

    /// Candidates whose ratio to the first one is a figure.
    fn judged(&self) -> &[String] {
        self.names.get(1..).unwrap_or_default()
    }
}

/// Refuses commands of `micro` without a candidate after the first one that all have: its ratio to the first one is judged.
///
/// # Errors
/// The error names the command or the option to give instead.
pub(super) fn refuse_apart(commands: &[Candidates]) -> Result<(), Usage> {
    let Some((first, others)) = commands.split_first() else { return Ok(()) };
    let is_judged = |other: &Candidates| first.judged().iter().any(|name| other.judged().contains(name));
    if others.iter().all(is_judged) {
        return Ok(());
    }
    let is_common = |name: &&String| others.iter().all(|other| other.names.contains(*name));
    let text = match first.names.iter().find(is_common) {
        // Commas separate the figures.
        Some(name) if !name.contains(',') => format!(
            "pgrig ab judges the ratio of each candidate of pgrig micro to the first one, and these commands have only {name} in common: \
             to judge its time, give --figures {}",
            shell_word(name)
        ),
        Some(_) => "pgrig ab judges the ratio of each candidate of pgrig micro to the first one: give the same second candidate in all \
                    commands"
            .to_owned(),
        None if commands.iter().all(|command| command.are_expressions) => format!(
            "these commands have no expression in common: to compare expressions, give all to one command: {}",
            together(first, others)
        ),
        None => "these commands have no candidate in common: to compare candidates, give all to one pgrig micro".to_owned(),
    };
    Err(Usage(text))
}

/// The first command with the expressions of the others.
fn together(first: &Candidates, others: &[Candidates]) -> String {
    let mut added: Vec<String> = Vec::new();
    for name in others.iter().flat_map(|other| &other.names) {
        if !first.names.contains(name) && !added.contains(name) {
            added.push(name.clone());
        }
    }
    let words = first.words.iter().skip(1).cloned().chain(added);
    format!("pgrig {}", shown(&words.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cmd::line::parse;

    fn refused(lines: &[&str]) -> Option<String> {
        let candidates = |line: &&str| {
            let words = shlex::split(line).unwrap();
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            Candidates::of(&parse(&arguments).unwrap().verb, &words).unwrap()
        };
        refuse_apart(&lines.iter().map(candidates).collect::<Vec<_>>()).err().map(|error| error.to_string())
    }

    #[test]
    fn commands_need_a_candidate_after_the_first_in_common() {
        for (lines, said) in [
            (&["pgrig micro i+1 -d shop", "pgrig micro i+2"][..], "pgrig micro i+1 -d shop i+2"),
            (&["pgrig micro i+1", "pgrig micro i+1 --set jit=off"], "give --figures i+1"),
            (&["pgrig micro 'f(i,1)'"; 2], "give the same second candidate in all commands"),
            (
                &["pgrig micro --statement 'SELECT 1'", "pgrig micro --statement 'SELECT 2'"],
                "give all to one pgrig micro",
            ),
        ] {
            let error = refused(lines).unwrap();
            assert!(error.ends_with(said), "{error}");
        }
        assert_eq!(refused(&["pgrig micro i i+1", "pgrig micro i i+1 --set jit=off"]), None);
    }
}
