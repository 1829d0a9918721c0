//! Proposals of clap's that lead astray are left out.

use clap::Error;
use clap::error::{ContextKind, ContextValue};
use strsim::osa_distance;

use super::{path, string};

/// Least number of letters of a word that can stand for a longer one.
const SHORTEST: usize = 3;

/// The error of an option for which clap proposes one that is not like it: clap's usage line would show that one, too.
pub(super) fn of_unlike(words: &[String], error: &Error) -> Option<String> {
    let (given, proposed) =
        (string(error, ContextKind::InvalidArg)?, string(error, ContextKind::SuggestedArg)?);
    let path = path(words);
    (!is_like(given, proposed)).then(|| format!("{path} has no {given}: {path} --help lists its options\n"))
}

/// Leaves out a value that is not like the given one, and the advice to write an unknown option after `--`: no option is meant as a
/// value.
pub(super) fn leave_out(error: &mut Error) {
    let (given, proposed) =
        (string(error, ContextKind::InvalidValue), string(error, ContextKind::SuggestedValue));
    if given.zip(proposed).is_some_and(|(given, proposed)| !is_like(given, proposed)) {
        error.remove(ContextKind::SuggestedValue);
    }
    let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) else { return };
    let tips: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().contains("as a value, use")).collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// Whether one word may be the other one, misspelt or cut off. One letter in four may be wrong.
pub(super) fn is_like(given: &str, known: &str) -> bool {
    let [given, known] = [given, known].map(|word| word.trim_start_matches('-'));
    let longer = given.chars().count().max(known.chars().count());
    let is_part =
        given.len().min(known.len()) >= SHORTEST && (known.starts_with(given) || given.starts_with(known));
    is_part || osa_distance(given, known) <= longer / 4
}

/// The same for commands, whose names are short: one letter may always be wrong, or stand in another place.
pub(super) fn is_like_command(given: &str, known: &str) -> bool {
    is_like(given, known) || osa_distance(given, known) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_are_like_and_others_are_not() {
        for (given, known) in [
            ("--expalin", "--explain"),
            ("--tme", "--time"),
            ("--user", "--username"),
            ("--no-vaccum", "--no-vacuum"),
            ("prepard", "prepared"),
        ] {
            assert!(is_like(given, known), "{given} {known}");
        }
        for (given, known) in [
            ("--database", "--all-tables"),
            ("--querymode", "--username"),
            ("--format", "--from"),
            ("--expr", "--report"),
            ("--verbose", "--version"),
            ("csh", "zsh"),
        ] {
            assert!(!is_like(given, known), "{given} {known}");
        }
    }

    #[test]
    fn another_command_is_not_proposed() {
        for (given, known) in [("fil", "fill"), ("strat", "start"), ("tp", "tps"), ("dll", "ddl")] {
            assert!(is_like_command(given, known), "{given} {known}");
        }
        for (given, known) in [("upgrade", "prune"), ("reset", "server"), ("reload", "logs")] {
            assert!(!is_like_command(given, known), "{given} {known}");
        }
    }
}
