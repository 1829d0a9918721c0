//! Help texts and errors about wrong command lines, one file each in `cmd/`; and options with extreme values.

use std::process::Stdio;

use crate::support::{Ran, Rig, Running};
use testkit::until_some as until;

#[test]
fn commands() {
    let home = testkit::directory();
    trycmd::TestCases::new().env("PGRIG_HOME", home.path().display().to_string()).case("tests/cmd/*.trycmd");
}

/// No server is there.
const NOWHERE: &str = "-h /nowhere-of-the-tests";
/// Command lines that end without a server, for the options of the verb.
const LINES: [(&str, &[&str]); 12] = [
    ("fill", &["1GB --explain", "--explain"]),
    ("size", &["", "1GB"]),
    ("blockio", &[""]),
    ("micro", &["i"]),
    ("ddl", &["-c VACUUM"]),
    ("tps", &["", "--matrix clients=1"]),
    ("compare", &["/dev/null /dev/null"]),
    ("runs list", &[""]),
    ("runs prune", &["--dry-run"]),
    ("testdb bench", &["--tps select-only"]),
    // These two do not go together: what a value means is seen before.
    ("testdb new", &["--keep --for 1h"]),
    ("testdb unlog", &["--dry-run"]),
];
const VALUES: [&str; 13] = [
    "0",
    "-1",
    "2147483648",
    "18446744073709551615",
    "1e308",
    "NaN",
    "",
    "9223372036854775807GB",
    "1e308s",
    "0.0000000000000001%",
    "1,18446744073709551615",
    "p99>1e308ms",
    "clients=18446744073709551615",
];

/// The options of a verb that take a value, from its help, and SIZE if there is one.
fn options(rig: &Rig, verb: &str) -> Vec<String> {
    let help = rig.done(&format!("{verb} --help")).stdout;
    let of_line = |line: &str| {
        let name = line.split_whitespace().find(|word| word.starts_with("--"))?;
        (line.trim_start().starts_with('-') && line.contains(&format!("{name} <"))
            || line.contains(&format!("{name}[=")))
        .then(|| name.split('[').next().unwrap_or(name).to_owned())
    };
    // Only what connects elsewhere would not end, or start a server.
    let server = ["--instance", "--pg-version", "--pg-bin", "--profile", "--set", "--host", "--json"];
    help.lines().filter_map(of_line).filter(|name| !server.contains(&name.as_str())).collect()
}

fn assert_ends(rig: &Rig, arguments: &[String]) {
    let mut command = rig.command("");
    command.args(arguments).current_dir(rig.home.path()).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    let mut pgrig = Running::start(command);
    until(&format!("pgrig {arguments:?} ends"), || pgrig.has_ended().then_some(()));
    let Ran { code, stderr, .. } = pgrig.end();
    let is_nowhere = code == Some(1) && stderr.contains("/nowhere-of-the-tests");
    assert!(matches!(code, Some(0 | 2)) || is_nowhere, "pgrig {arguments:?}: {code:?} {stderr}");
}

/// Every option of every verb with values that overflow, underflow or are no numbers.
#[test]
fn extreme_values_are_refused_or_work() {
    let rig = Rig::new();
    std::thread::scope(|scope| {
        for (verb, lines) in LINES {
            let rig = &rig;
            scope.spawn(move || {
                let options = options(rig, verb);
                assert!(!options.is_empty(), "{verb}");
                for value in VALUES {
                    for line in lines {
                        let words =
                            |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                        let is_remote = !matches!(verb, "size" | "compare" | "runs list" | "runs prune");
                        let base = [words(verb), words(if is_remote { NOWHERE } else { "" })].concat();
                        for option in &options {
                            let given = vec![format!("{option}={value}")];
                            assert_ends(rig, &[base.clone(), given, words(line)].concat());
                        }
                        if matches!(verb, "fill" | "size" | "blockio") && !line.contains("1GB") {
                            assert_ends(rig, &[base, words(line), vec![format!(" {value}")]].concat());
                        }
                    }
                }
            });
        }
    });
}
