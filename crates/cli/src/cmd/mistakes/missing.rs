//! Remedies for arguments that are missing.

use crate::app::command_line::shown;

/// The remedy where one of several arguments is needed, or the second one of two.
pub(super) fn remedy(words: &[String]) -> Option<String> {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    let has = |option: &str| names.iter().any(|word| word.split('=').next() == Some(option));
    let text = match names.as_slice() {
        ["ddl", ..] => {
            "no migration is given: give a file with SQL, or -c 'ALTER TABLE orders ADD COLUMN note text'"
        }
        ["fill", ..] if has("--reserve") => "--reserve goes with --brim: give both, or leave out --reserve",
        ["tps", ..] if has("--tables") => {
            "--tables names tables of your own scripts for --matrix durability=unlogged: leave it out (pgrig fill --scale N makes \
             pgbench's tables; pgrig tps runs pgbench's scripts, not sysbench's)"
        }
        ["tps", ..] => {
            "--allow-dangerous-settings is for --matrix: give --matrix durability, too, or leave it out"
        }
        ["size", ..] => "give SIZE, --scale N or --rows N, for example: pgrig size 73GB",
        ["compare", ..] if !has("--baseline") && !has("--candidate") => {
            "give two runs or labels, for example: pgrig compare before after"
        }
        ["ab", ..] => {
            "give two commands or more, each in quotes, for example: pgrig ab 'pgrig tps -T 10' 'pgrig tps -T 10 -M prepared'"
        }
        ["merge", ..] => "give the runs of all parts, for example: pgrig merge 1.json 2.json",
        ["backup", "rehearse", ..] => return Some(of_rehearse(&has) + "\n"),
        ["backup", "check", ..] => {
            "give the file or directory of a backup, or - for standard input, for example: pgrig backup check shop.dump"
        }
        ["model", "capture", ..] => {
            "no file for the model is given: give -o FILE, too, or --explain to see the queries"
        }
        ["model", "show", ..] => "give the file of a model, for example: pgrig model show shop.model.toml",
        ["model", "check", original, ..] if !original.starts_with('-') => {
            let mut words = words.to_vec();
            words.insert(3, "copy".to_owned());
            return Some(format!("give the original, then the copy, for example: pgrig {}\n", shown(&words)));
        }
        ["model", "check", ..] => {
            "give the original, then the copy, for example: pgrig model check shop copy"
        }
        ["man", ..] => "give a directory for the man pages, for example: pgrig man man1",
        ["completions", ..] => "give the name of the shell, for example: pgrig completions bash",
        ["runs", "rm", ..] => "give the runs to remove: their ids or labels (pgrig runs list shows them)",
        ["runs", "export", ..] => {
            return Some(format!("give the runs, and a file for them: {}\n", of_export(words)));
        }
        ["testdb", "bench", ..] => {
            let own: Vec<String> = words.iter().filter(|word| *word != "--").cloned().collect();
            return Some(format!(
                "give your test command after --, for example: pgrig {} -- sh suite.sh; or --tps SCRIPT\n",
                shown(&own)
            ));
        }
        ["testdb", "keep", ..] => "give the name of a lent database (pgrig testdb list shows them)",
        ["server", "destroy", ..] => {
            "--instance is missing: pgrig server destroy deletes an instance with all its data (pgrig server status lists \
             the instances)"
        }
        ["testdb", "drop", ..] => "give NAME, --all, --templates or --orphans",
        ["runs", "prune", ..] => "give --keep N, --older-than AGE, or both",
        ["compare", ..] if has("--baseline") => "--baseline needs --candidate: give both",
        ["compare", ..] if has("--candidate") => "--candidate needs --baseline: give both",
        _ => return None,
    };
    Some(format!("{text}\n"))
}

/// The command line of `runs export`, with a run and a file.
fn of_export(words: &[String]) -> String {
    let mut words = words.to_vec();
    let has_file = |word: &String| word.starts_with("-o") || word.starts_with("--output");
    let run = words[2..].iter().find(|word| !word.starts_with('-')).cloned();
    if words.iter().any(has_file) {
        words.insert(2, "latest".to_owned());
        return format!("pgrig {}", shown(&words));
    }
    if run.is_none() {
        words.push("latest".to_owned());
    }
    let is_plain = |run: &String| run.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let name = run.filter(is_plain).unwrap_or_else(|| "latest".to_owned());
    words.extend(["-o".to_owned(), format!("{name}.runs.json")]);
    format!("pgrig {}", shown(&words))
}

/// Options of `backup rehearse` with which pgrig fills databases. Only these can have a load, because it changes them.
const OF_FORECASTS: [&str; 6] = ["--size", "--up-to", "--model", "--schema-file", "--ddl", "--from"];

/// The remedy for an option of `backup rehearse` that needs others: all of them at once.
fn of_rehearse(has: &dyn Fn(&str) -> bool) -> String {
    if has("--tool-backup") != has("--tool-restore") {
        return "another tool needs --tool-backup and --tool-restore: give both".to_owned();
    }
    if !has("--tool-backup") && (has("--tool-wal") || has("--tool-name")) {
        return "--tool-wal and --tool-name are for another tool: give --tool-backup and --tool-restore, too"
            .to_owned();
    }
    let size = if OF_FORECASTS.into_iter().any(has) { "" } else { " --size 100GB" };
    if has("--tool-wal") && !has("--load") {
        format!(
            "--tool-wal stores the WAL of a load: give a load, too, for example --load simple-update -R 500{size}"
        )
    } else if !has("--load") {
        format!(
            "-R, -T and -c are for a load: give its script, too, for example --load simple-update -R 500{size}"
        )
    } else if size.is_empty() {
        "--load needs a rate: give its transactions per second, for example -R 500".to_owned()
    } else {
        format!(
            "--load needs a rate, and databases that pgrig fills, because it changes them: give its transactions per second, and a \
             size, for example -R 500{size}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_command_follows_the_options_that_are_given() {
        let words = ["testdb", "bench", "--from", "my schema.sql", "--"].map(str::to_owned);
        let told = remedy(&words).unwrap();
        assert!(told.contains("pgrig testdb bench --from 'my schema.sql' -- sh suite.sh;"), "{told}");
    }

    #[test]
    fn the_runs_to_export_get_a_file() {
        for (line, told) in [
            ("runs export latest --force", "pgrig runs export latest --force -o latest.runs.json"),
            ("runs export before after", "pgrig runs export before after -o before.runs.json"),
            ("runs export -f", "pgrig runs export -f latest -o latest.runs.json"),
            ("runs export latest:tps~1", "pgrig runs export 'latest:tps~1' -o latest.runs.json"),
            ("runs export -o a.json", "pgrig runs export latest -o a.json"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(of_export(&words), told);
        }
    }

    #[test]
    fn a_model_gets_a_copy_to_check() {
        let words = ["model", "check", "t.toml", "--instance", "default"].map(str::to_owned);
        let told = remedy(&words).unwrap();
        assert!(told.ends_with("pgrig model check t.toml copy --instance default\n"), "{told}");
    }

    #[test]
    fn a_load_gets_all_that_it_needs_at_once() {
        for (line, said) in [
            ("backup rehearse -d shop --load x", "for example -R 500 --size 100GB\n"),
            ("backup rehearse --size=1TB --load x", "for example -R 500\n"),
            ("backup rehearse -d shop -R 5", "for example --load simple-update -R 500 --size 100GB\n"),
            ("backup rehearse --model m.toml -R 5", "for example --load simple-update -R 500\n"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let told = remedy(&words).unwrap();
            assert!(told.ends_with(said), "{line}: {told}");
        }
    }
}
