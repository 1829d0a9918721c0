//! Words that `tps` reads as the name of a database, and that are meant otherwise.

use std::path::Path;
use std::time::Duration;

use server::quote::shell_word;

use crate::app::failure::Usage;
use crate::app::size::Size;

/// Units of time apart from their number, each as it is written after the number.
const UNITS: [(&[&str], &str); 4] = [
    (&["ms", "millisecond", "milliseconds"], "ms"),
    (&["s", "sec", "secs", "second", "seconds"], "s"),
    (&["m", "min", "mins", "minute", "minutes"], "min"),
    (&["h", "hr", "hrs", "hour", "hours"], "h"),
];

/// Axes of --matrix that are no settings. No connection string begins with one.
const AXES: [&str; 3] = ["durability", "clients", "protocol"];

/// Refuses a word in the place of the database that names none. With -d, it does. `server` has the options that name the server.
///
/// # Errors
/// If the word is SQL, a script, a number, a size, `help`, an axis, or the unit of a duration.
pub(super) fn check(
    word: &str,
    server: &str,
    time: Option<Duration>,
    limit: Option<Duration>,
) -> Result<(), Usage> {
    match remedy(word, server, time, limit) {
        Some(remedy) => Err(Usage(format!("unexpected argument {word}: {remedy}"))),
        None => Ok(()),
    }
}

fn remedy(word: &str, server: &str, time: Option<Duration>, limit: Option<Duration>) -> Option<String> {
    let is_connection_string = word.contains('=') || word.contains("://");
    if word == "help" {
        return Some("for help, run pgrig help tps; to name a database, give -d help".to_owned());
    }
    if word.contains(char::is_whitespace) && (!is_connection_string || word.contains([';', '(', '*'])) {
        return Some(
            "to measure SQL, write it into a file, and give -f FILE (-f - reads standard input); to name a database, give -d DBNAME"
                .to_owned(),
        );
    }
    if AXES.into_iter().any(|axis| word.strip_prefix(axis).is_some_and(|rest| rest.starts_with('='))) {
        return Some(format!("to add an axis, give --matrix {}", shell_word(word)));
    }
    if let Some(told) = instead(word, server) {
        return Some(format!("{told}; to name a database, give -d {}", shell_word(word)));
    }
    let lower = word.to_ascii_lowercase();
    let unit = unit(&lower)?;
    // Numbers without a unit are milliseconds for -L, and seconds for -T.
    let (option, number) = match (time, limit) {
        (Some(time), limit) if unit != "ms" || limit.is_none() => ("-T", time.as_secs_f64()),
        (_, Some(limit)) => ("-L", limit.as_secs_f64() * 1000.0),
        _ => return None,
    };
    Some(format!("write {option} {number}{unit} without a space; to name a database, give -d {word}"))
}

/// A unit of time in small letters, as it is written after its number.
pub(crate) fn unit(lower: &str) -> Option<&'static str> {
    UNITS.iter().find(|(names, _)| names.contains(&lower)).map(|(_, unit)| *unit)
}

/// The remedy for a script, a number or a size in the place of the database. `server` has the options that name the server: ` -h db`.
pub(crate) fn instead(word: &str, server: &str) -> Option<String> {
    let is_connection_string = word.contains('=') || word.contains("://");
    let is_sql = Path::new(word).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql"));
    if !is_connection_string && (is_sql || word.contains('/')) {
        return Some(format!("to run a script, give -f {}", shell_word(word)));
    }
    if word.parse::<Size>().is_ok() {
        return Some(format!("pgrig tps takes no size: pgrig fill {word}{server} makes tables of this size"));
    }
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| {
        format!("to set the number of clients, give -c {word}; to measure for {word} s, give -T {word}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_no_database_get_a_remedy() {
        let seconds = |number| Some(Duration::from_secs(number));
        let millis = |number| Some(Duration::from_millis(number));
        for (word, time, limit, said) in [
            ("minutes", seconds(5), None, "write -T 5min without a space"),
            ("S", seconds(30), millis(20), "write -T 30s without a space"),
            ("ms", seconds(30), millis(20), "write -L 20ms without a space"),
            ("help", None, None, "run pgrig help tps"),
            ("clients=1,2", None, None, "to add an axis, give --matrix clients=1,2"),
            ("select 1", None, None, "give -f FILE"),
            ("SELECT * FROM t WHERE id = 1", None, None, "give -f FILE"),
            ("my.sql", None, None, "to run a script, give -f my.sql; to name a database, give -d my.sql"),
            ("scripts/mine", None, None, "to run a script, give -f scripts/mine"),
            ("10MB", None, None, "pgrig tps takes no size: pgrig fill 10MB -h db makes tables of this size"),
            ("8", None, None, "give -c 8; to measure for 8 s, give -T 8; to name a database, give -d 8"),
        ] {
            let error = check(word, " -h db", time, limit).unwrap_err().to_string();
            assert!(error.contains(said), "{word}: {error}");
        }
        for word in ["shop", "host=/tmp dbname=shop", "postgresql://localhost/shop", "minutes"] {
            assert!(check(word, "", None, None).is_ok(), "{word}");
        }
    }
}
