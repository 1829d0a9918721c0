//! The words of a command line of `testdb bench`: pgrig's own options, and the test command.

use clap::{Arg, Args, Command};

use crate::app::command_line::shown;
use crate::cmd::testdb::args::BenchArgs;

/// The words that are pgrig's, without `--`, and those of the command that begins with `command`. Short options stay with the command:
/// many programs have the same.
pub(crate) fn divided(words: &[String], command: &str) -> (Vec<String>, Vec<String>) {
    let at = words.iter().skip(2).position(|word| word == command).map_or(words.len(), |at| at + 2);
    let (mut own, mut rest) = (words[..at].to_vec(), Vec::new());
    own.retain(|word| word != "--");
    let mut words = words[at..].iter();
    while let Some(word) = words.next() {
        let Some(takes_value) = own_option(word) else {
            rest.push(word.clone());
            continue;
        };
        own.push(word.clone());
        if takes_value {
            own.extend(words.next().cloned());
        }
    }
    (own, rest)
}

/// Whether the next word is the value of this long option of `testdb bench`; none if it is none.
fn own_option(word: &str) -> Option<bool> {
    let name = word.strip_prefix("--")?;
    let (name, has_value) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
    let bench = BenchArgs::augment_args(Command::new("bench"));
    let is_it = |option: &&Arg| {
        option.get_long() == Some(name) || option.get_all_aliases().is_some_and(|all| all.contains(&name))
    };
    let option = bench.get_arguments().find(is_it)?;
    Some(option.get_action().takes_values() && !has_value)
}

/// The remedy for words behind `script`, a test command in one word: sh -c runs it only if it is alone.
pub(super) fn behind_script(words: &[String], script: &str) -> String {
    let (own, rest) = divided(words, script);
    match rest.as_slice() {
        [_] => format!("write pgrig's options before --: pgrig {} -- {}", shown(&own), shown(&rest)),
        _ => format!(
            "pgrig passes a command with spaces to sh -c only if it is the single argument: write the whole command in one argument, or \
             each word of {} as an argument of its own",
            shown(&[script.to_owned()])
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_behind_a_script_go_before_the_dashes() {
        let script = "sh a.sh";
        let line = ["testdb", "bench", "--no-warm-up", "--", script, "--rounds", "2"];
        let mut given = Vec::from(line.map(str::to_owned));
        let told = behind_script(&given, script);
        assert!(told.ends_with(": pgrig testdb bench --no-warm-up --rounds 2 -- 'sh a.sh'"), "{told}");
        given.push("-x".to_owned());
        let told = behind_script(&given, script);
        assert!(told.ends_with("or each word of 'sh a.sh' as an argument of its own"), "{told}");
    }
}
