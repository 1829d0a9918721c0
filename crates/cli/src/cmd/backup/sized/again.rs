//! The command that repeats a forecast with a larger --up-to.

use crate::app::command_line::without_passwords;
use crate::app::passwords::Words;

/// How to measure a size: the command of this process with this --up-to; only the option if its passwords cannot be left out.
pub(super) fn hint(up_to: &str) -> String {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    command(&words, up_to).unwrap_or_else(|| format!("to measure that: give --up-to {up_to}"))
}

/// The command with another --up-to, without the passwords of its connection strings.
fn command(words: &[String], up_to: &str) -> Option<String> {
    let attached = words.iter().filter_map(|word| word.strip_prefix("-d"));
    let dbnames: Vec<&str> = attached.filter(|dbname| !dbname.is_empty()).collect();
    let Words { words: kept, password } = Words::new(&without_up_to(words), &dbnames).ok()?;
    // Commands of other tools may have passwords, too.
    let shown: Vec<String> = kept.iter().map(|word| without_passwords(word)).collect();
    let passwords = match (password.is_some(), shown == kept) {
        (true, true) => " (with the password in PGPASSWORD)",
        (false, true) => "",
        (true, false) => " (with the password in PGPASSWORD, and the other passwords instead of ***)",
        (false, false) => " (with the passwords instead of ***)",
    };
    let words = ["pgrig"].into_iter().chain(shown.iter().map(String::as_str)).chain(["--up-to", up_to]);
    let command = shlex::try_join(words).ok()?;
    Some(format!("to measure that{passwords}: {command}"))
}

fn without_up_to(words: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--up-to" {
            words.next();
        } else if !word.starts_with("--up-to=") {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted_and_has_no_password() {
        let with_password = "to measure that (with the password in PGPASSWORD): pgrig backup rehearse ";
        for (line, begins) in [
            ("backup rehearse -d postgresql://u:s3cret@h/d --up-to 1GB --size 1TB", with_password),
            ("backup rehearse -dpostgresql://u:s3cret@h/d --up-to=1GB", with_password),
            ("backup rehearse -d shop", "to measure that: pgrig backup rehearse -d shop --up-to 2GB"),
            (
                "backup rehearse --tool-backup password=s3cret",
                "to measure that (with the passwords instead of ***): pgrig backup rehearse --tool-backup ",
            ),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let told = command(&words, "2GB").unwrap();
            assert!(told.starts_with(begins) && told.ends_with(" --up-to 2GB"), "{told}");
            assert!(!told.contains("s3cret") && !told.contains("1GB"), "{told}");
        }
        let two = ["-d", "postgres://a:x@h/d", "-d", "postgres://a:y@h/d"].map(str::to_owned);
        assert_eq!(command(&two, "2GB"), None);
    }
}
