//! The levels of article 000, and their flags.

use std::ffi::OsString;

use clap::ValueEnum;

/// A level of article 000 ("Generating lots of test data with Postgres, fast and faster").
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    #[value(name = "0", help = "CREATE TABLE AS SELECT generate_series")]
    Series,
    #[value(name = "1", help = "pgbench's plain init")]
    Plain,
    #[value(name = "2", help = "unlogged tables")]
    Unlogged,
    #[value(name = "3", help = "level 2 without vacuum and keys")]
    DataOnly,
    #[value(name = "4", help = "level 3 at fillfactor 10")]
    Sparse,
    #[value(name = "5", help = "level 4 in two streams")]
    Parallel,
    #[value(name = "bonus", help = "level 4 in partitions, method reinsert")]
    Bonus,
}

/// Every level with its flags.
pub(crate) const LEVELS: [(Level, &str); 7] = [
    (Level::Series, "--series --init-steps tg"),
    (Level::Plain, "--logged --streams 1 --init-steps tgvp --method copy"),
    (Level::Unlogged, "--unlogged --streams 1 --init-steps tgvp --method copy"),
    (Level::DataOnly, "--unlogged --streams 1 --data-only --method copy"),
    (Level::Sparse, "--unlogged --streams 1 --data-only --fillfactor 10 --method copy"),
    (Level::Parallel, "--unlogged --streams 2 --partitions 2 --data-only --fillfactor 10 --method copy"),
    (
        Level::Bonus,
        "--unlogged --data-only --fillfactor 10 --partitions 4 --partition-method hash --method reinsert",
    ),
];

impl Level {
    /// The flags that the level stands for.
    pub(crate) fn flags(self) -> &'static str {
        LEVELS.iter().find(|(level, _)| *level == self).map_or("", |(_, flags)| flags)
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Its help text.
    pub(crate) fn phrase(self) -> String {
        let help = self.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
        help.unwrap_or_default()
    }
}

/// The command line with `--level` replaced by the level's flags, right after the verb. So options
/// that the user gives come later and override them. `--logged` and `--unlogged` exclude each other: the user's replaces
/// that of the level.
pub(crate) fn with_level(arguments: &[OsString], level: Level) -> Vec<OsString> {
    let verb = arguments.iter().position(|argument| argument == "fill").unwrap_or(0);
    let (before, after) = arguments.split_at(verb + 1);
    let is_persistence = |flag: &str| flag == "--logged" || flag == "--unlogged";
    let is_chosen = after.iter().filter_map(|argument| argument.to_str()).any(is_persistence);
    let flags = level.flags().split_whitespace().filter(|flag| !(is_chosen && is_persistence(flag)));
    before.iter().cloned().chain(flags.map(OsString::from)).chain(after.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::fill::args::FillArgs;

    #[test]
    fn every_level_s_flags_are_flags() {
        for (level, flags) in LEVELS {
            let arguments = FillArgs::of_flags(&format!("{flags} 1GB")).unwrap();
            arguments.request().unwrap();
            assert!(arguments.size.is_some(), "{}", level.name());
        }
    }

    #[test]
    fn what_is_given_beside_a_level_counts() {
        let line: Vec<OsString> =
            ["pgrig", "fill", "1GB", "--level", "4", "--logged", "-F", "20"].map(Into::into).into();
        let expanded = with_level(&line, Level::Sparse);
        let flags: Vec<String> =
            expanded[2..].iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let arguments = FillArgs::of_flags(&flags.join(" ")).unwrap();
        assert_eq!((arguments.fillfactor, arguments.unlogged, arguments.data_only), (20, false, true));

        let line: Vec<OsString> =
            ["pgrig", "fill", "1GB", "--level", "1", "--unlogged"].map(Into::into).into();
        let expanded = with_level(&line, Level::Plain);
        assert!(!expanded.iter().any(|argument| argument == "--logged"), "{expanded:?}");
    }
}
