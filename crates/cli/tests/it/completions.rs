//! `pgrig completions` in the shells themselves, and `pgrig man` by man.

use std::fs;
use std::process::Command;

use testkit::{Need, require};

use crate::support::Rig;

/// Standard output of a program, which must end without a message.
fn silent(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("HOME", "/nonexistent").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{program} {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Each shell completes a command, a subcommand, an option and its value.
#[test]
fn shells_complete_commands_options_and_values() {
    if !require(Need::Shells) {
        return;
    }
    let rig = Rig::new();
    let script = |shell: &str, name: &str| {
        let path = rig.home.path().join(name);
        fs::write(&path, rig.done(&format!("completions {shell}")).stdout).unwrap();
        path.display().to_string()
    };
    let (bash, zsh, fish) =
        (script("bash", "pgrig.bash"), script("zsh", "_pgrig"), script("fish", "pgrig.fish"));
    for (words, completed) in [
        (&["fi"][..], "fill"),
        (&["testdb", "ben"], "bench"),
        (&["fill", "--meth"], "--method"),
        (&["fill", "--method", "dir"], "direct"),
    ] {
        let (last, before) = words.split_last().unwrap();
        let previous = before.last().copied().unwrap_or("pgrig");
        let complete = format!(
            "source {bash}; COMP_WORDS=(pgrig {}); COMP_CWORD={}; _pgrig pgrig '{last}' '{previous}'; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len()
        );
        let found = silent("bash", &["--norc", "-c", &complete]);
        assert!(found.lines().any(|line| line == completed), "bash {words:?}: {found}");
        let complete = format!("source {fish}; complete -C 'pgrig {}'", words.join(" "));
        let found = silent("fish", &["--no-config", "-c", &complete]);
        let is_it = |line: &str| line.split('\t').next() == Some(completed);
        assert!(found.lines().any(is_it), "fish {words:?}: {found}");
    }
    // zsh completes only with a line editor, so it reads the script and knows it as pgrig's.
    let load = format!(
        "autoload -Uz compinit; compinit -u -D; source {zsh}; print $_comps[pgrig]; functions _pgrig _pgrig_commands"
    );
    let loaded = silent("zsh", &["-f", "-c", &load]);
    assert!(loaded.starts_with("_pgrig\n") && loaded.contains("'fill:"), "{loaded}");
}

#[test]
fn man_pages_are_those_of_all_commands_and_man_has_no_complaint() {
    if !require(Need::Shells) {
        return;
    }
    let rig = Rig::new();
    let directory = rig.home.path().join("man1");
    rig.done(&format!("man {}", directory.display()));
    let pages: Vec<_> = fs::read_dir(&directory).unwrap().map(|page| page.unwrap().path()).collect();
    let has = |name: &str| pages.iter().any(|page| page.ends_with(name));
    assert!(["pgrig.1", "pgrig-fill.1", "pgrig-testdb-new.1"].into_iter().all(has), "{pages:?}");
    assert!(!has("pgrig-help.1") && has("pgrig-man.1"), "{pages:?}");
    let pages: Vec<String> = pages.iter().map(|page| page.display().to_string()).collect();
    let arguments: Vec<&str> =
        ["--warnings", "-Tutf8", "-l"].into_iter().chain(pages.iter().map(String::as_str)).collect();
    let text = silent("man", &arguments);
    assert!(text.contains("pgrig testdb new"), "{text}");
}
