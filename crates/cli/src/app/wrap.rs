//! Breaks long lines for a terminal between words, and continues them under the text of their
//! column. Folds tables that are too wide.

mod fold;

use console::measure_text_width;

use self::fold::{folded, has_gap};

/// Least width of a terminal for which lines are broken, columns.
const NARROWEST: usize = 40;

/// The text with lines of at most `width` columns, if its words are not longer. Commands to paste get lines of their own, and
/// are broken so that a shell reads them as one.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut wrapped = Vec::new();
    for block in lines.chunk_by(|one, next| has_gap(one) && has_gap(next)) {
        match folded(block, width).filter(|_| width >= NARROWEST) {
            Some(folded) => wrapped.extend(folded.iter().map(|line| wrapped_line(line, width))),
            None => wrapped.extend(block.iter().map(|line| wrapped_line(line, width))),
        }
    }
    wrapped.join("\n")
}

fn wrapped_line(line: &str, width: usize) -> String {
    if width < NARROWEST || measure_text_width(line) <= width {
        return line.to_owned();
    }
    if let Some((text, command)) = with_command(line) {
        if text.is_empty() {
            return broken(command, line.len() - line.trim_start().len(), width);
        }
        let indent = hanging(text).filter(|indent| (1..=width / 2).contains(indent)).unwrap_or(2);
        return format!("{}\n{}", wrapped_line(text, width), broken(command, indent, width));
    }
    let Some(indent) = hanging(line) else { return line.to_owned() };
    let indent = if indent > width / 2 { 2 } else { indent };
    let (mut whole, mut column) = (String::new(), 0);
    for (number, word) in words(line).iter().enumerate() {
        let length = measure_text_width(word);
        // Spaces that indent or separate columns are empty words.
        if number > 0 && column + 1 + length > width && !word.is_empty() {
            whole.truncate(whole.trim_end().len());
            whole.push('\n');
            whole.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if number > 0 {
            whole.push(' ');
            column += 1;
        }
        whole.push_str(word);
        column += length;
    }
    whole
}

/// Names of pgrig's commands.
pub(crate) const VERBS: [&str; 19] = [
    "fill",
    "model",
    "size",
    "blockio",
    "micro",
    "tps",
    "ddl",
    "backup",
    "testdb",
    "compare",
    "ab",
    "merge",
    "report",
    "runs",
    "server",
    "doctor",
    "completions",
    "man",
    "help",
];
/// Words that commands do not have, but sentences that begin with the name of a command.
const PROSE: [&str; 12] =
    ["or", "and", "then", "if", "keeps", "to", "for", "first", "again", "with", "shows", "does"];

/// The text before a command to paste, and the command, if the line ends with one.
fn with_command(line: &str) -> Option<(&str, &str)> {
    if is_command(line.trim_start()) {
        return Some(("", line.trim_start()));
    }
    let (at, _) = line.match_indices(": ").find(|(at, _)| is_command(&line[at + 2..]))?;
    Some((&line[..=at], &line[at + 2..]))
}

fn is_command(text: &str) -> bool {
    let words = shell_words(text);
    let begins = match words[..] {
        ["pgrig", verb, ..] => VERBS.contains(&verb),
        ["export" | "eval" | "pg_dump" | "createdb", _, ..] => true,
        _ => false,
    };
    let is_prose = |word: &&str| word.ends_with([',', ';', '.', ':']) || PROSE.contains(word);
    begins && !words.iter().any(is_prose)
}

/// The words of a command: text in quotes is not divided.
fn shell_words(text: &str) -> Vec<&str> {
    let (mut words, mut begin, mut quote) = (Vec::new(), 0, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, ' ') => {
                words.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&text[begin..]);
    words
}

/// The command in lines that a shell reads as one.
fn broken(command: &str, indent: usize, width: usize) -> String {
    if indent + measure_text_width(command) <= width {
        return format!("{:indent$}{command}", "");
    }
    let mut lines = vec![format!("{:indent$}", "")];
    for (number, word) in shell_words(command).into_iter().enumerate() {
        let line = lines.last_mut().expect("there is one");
        if number == 0 {
            line.push_str(word);
        } else if measure_text_width(line) + 1 + measure_text_width(word) + " \\".len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            line.push_str(" \\");
            lines.push(format!("{:indent$}    {word}", ""));
        }
    }
    lines.join("\n")
}

/// Units that stay on the line of their number.
const UNITS: [&str; 14] =
    ["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "%", "s", "ms", "µs", "ns", "min"];

/// The words of a line. A number and its unit are one; so is a command to paste: a line break within it would end it.
fn words(line: &str) -> Vec<String> {
    // In a statement of SQL, text in quotes is one word.
    let split: Vec<&str> = if line.ends_with(';') { shell_words(line) } else { line.split(' ').collect() };
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(word) = split.get(at) {
        let is_unit = UNITS.contains(&word.trim_end_matches(ENDS));
        let length = length_of_command(&split[at..]);
        match words.last_mut() {
            Some(number) if is_unit && number.ends_with(|last: char| last.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(split[at..at + length].join(" ")),
        }
        at += length;
    }
    words
}

/// Characters of a sentence that end a number or a command.
const ENDS: [char; 5] = ['.', ',', ';', ':', ')'];
/// Words after the name of a verb that belong to a command: verbs within a verb.
const SUBCOMMANDS: [&str; 29] = [
    "bench",
    "capture",
    "check",
    "destroy",
    "drop",
    "export",
    "fetch",
    "import",
    "keep",
    "list",
    "logs",
    "new",
    "prune",
    "psql",
    "rehearse",
    "restart",
    "rm",
    "serve",
    "show",
    "start",
    "status",
    "stop",
    "unlog",
    "url",
    "bash",
    "zsh",
    "fish",
    "powershell",
    "elvish",
];

/// The number of words of the command within a sentence that begins with these words; 1 if none begins there.
fn length_of_command(words: &[&str]) -> usize {
    let is_last = |at: usize| words[at].ends_with(ENDS) && !words[at].ends_with("...");
    let is_verb = |word: &&str| VERBS.contains(&word.trim_end_matches(ENDS));
    if words[0].trim_start_matches(['(', '"']) != "pgrig" || !words.get(1).is_some_and(is_verb) {
        return 1;
    }
    let mut quotes = 0;
    let mut length = 2;
    while let Some(word) = words.get(length).filter(|_| !is_last(length - 1) || quotes % 2 == 1) {
        let is_value = words[length - 1].starts_with('-') && !words[length - 1].contains('=');
        let is_argument = word.starts_with(['-', '\'', '"', '$', '/', '.', '>', '|'])
            || word.contains(['=', '/', '_'])
            || word.chars().any(|one| one.is_ascii_uppercase() || one.is_ascii_digit())
            || SUBCOMMANDS.contains(&word.trim_end_matches(ENDS));
        if quotes % 2 == 0 && (PROSE.contains(word) || !(is_value || is_argument)) {
            break;
        }
        quotes += word.matches('\'').count();
        length += 1;
    }
    length
}

/// The column at which continuations of this line begin; none if the line must not be broken.
fn hanging(line: &str) -> Option<usize> {
    let leading = line.len() - line.trim_start().len();
    let columns: Vec<usize> = line[leading..].match_indices("  ").map(|(at, _)| leading + at).collect();
    let Some(first) = columns.first() else { return Some(leading) };
    let after = line[*first..].trim_start();
    let begin = line.len() - after.len();
    // A further run of blanks: a row of a table.
    (!after.contains("  ")).then(|| measure_text_width(&line[..begin]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_continues_under_its_text() {
        let plan = "plan\n  method       direct: writes pages into the table's files in the transaction that creates it\n               past the server's COPY, at the speed of the disk: it is pgrig's own server";
        let expected = "plan\n  method       direct: writes pages into the table's files\n               in the transaction that creates it\n               past the server's COPY, at the speed of the\n               disk: it is pgrig's own server";
        assert_eq!(wrapped(plan, 60), expected);
    }

    #[test]
    fn commands_are_broken_as_a_shell_reads_them() {
        let line = "compare: pgrig ab --rounds 10 'pgrig tps -c 4 -T 8' 'pgrig tps -c 8 -T 8'";
        let expected =
            "compare:\n  pgrig ab --rounds 10 'pgrig tps -c 4 -T 8' \\\n      'pgrig tps -c 8 -T 8'";
        assert_eq!(wrapped(line, 50), expected);
        let line = "use tmpfs: export PGRIG_HOME=/dev/shm/pgrig && eval \"$(pgrig testdb new --instance x)\"";
        let expected = "use tmpfs:\n  export PGRIG_HOME=/dev/shm/pgrig && eval \\\n      \"$(pgrig testdb new --instance x)\"";
        assert_eq!(wrapped(line, 50), expected);
    }

    #[test]
    fn a_sentence_that_begins_like_a_command_is_broken_between_words() {
        let line = "error: work_mem: pgrig server start keeps this server for other commands, so pgrig waits";
        let expected =
            "error: work_mem: pgrig server start keeps this\nserver for other commands, so pgrig waits";
        assert_eq!(wrapped(line, 50), expected);
        let line = "error: invalid version: pgrig cannot download PostgreSQL 9.6: give another one";
        let expected = "error: invalid version: pgrig cannot download\nPostgreSQL 9.6: give another one";
        assert_eq!(wrapped(line, 50), expected);
    }

    #[test]
    fn a_command_within_a_sentence_is_not_broken() {
        let line = "error: instance bench runs with other settings; stop it first (pgrig server stop --instance bench), then repeat";
        let expected = "error: instance bench runs with other settings; stop it\nfirst (pgrig server stop --instance bench), then repeat";
        assert_eq!(wrapped(line, 56), expected);
        let line = "error: run pgrig ab 'pgrig tps -T 5' 'pgrig tps -T 5 -S' to see the difference of both";
        let expected =
            "error: run\npgrig ab 'pgrig tps -T 5' 'pgrig tps -T 5 -S' to\nsee the difference of both";
        assert_eq!(wrapped(line, 50), expected);
        let line = "warning: pgrig tps shows the transactions of each client and of all";
        let expected = "warning: pgrig tps shows the transactions of\neach client and of all";
        assert_eq!(wrapped(line, 45), expected);
    }

    #[test]
    fn texts_in_sql_are_not_broken() {
        let line = "  ALTER TABLE orders ADD CHECK (state IN ('new', 'in  progress', 'done')) NOT VALID;";
        let expected =
            "  ALTER TABLE orders ADD CHECK (state IN\n  ('new', 'in  progress', 'done')) NOT VALID;";
        assert_eq!(wrapped(line, 45), expected);
    }

    #[test]
    fn tables_and_long_words_stay_whole() {
        let row = format!("customers      500,000     1.20   500 k   112 MB  {}", "38.2 MB ".repeat(9));
        let path = format!("/{}", "directory/".repeat(12));
        for line in [&row, &path] {
            assert_eq!(wrapped(line, 60), *line);
        }
        let column =
            format!("verbs    not checked: pgrig server start {}", "--set a=b ".repeat(3).trim_end());
        assert_eq!(wrapped(&column, 60), column.replacen("checked: ", "checked:\n         ", 1));
        let said = format!("run document: {path}");
        assert_eq!(wrapped(&said, 60), format!("run document:\n{path}"));
    }

    #[test]
    fn a_unit_stays_with_its_number() {
        let line = "4 tables, 17 columns, 126 k rows in the original; model (3.95 kB)";
        let narrow = "4 tables, 17 columns, 126 k rows in the original; model\n(3.95 kB)";
        assert_eq!(wrapped(line, 62), narrow);
        assert_eq!(wrapped(line, 65), line);
    }

    #[test]
    fn no_word_is_lost_at_any_width() {
        let text = "  limits       until /mnt/small is full: 83.1 MB stay free (for 4 WAL segments, without which the server \
                    would crash)\nwarning: no vacuum, and so no statistics: public.t belongs to another role than clerk";
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for width in 0..200 {
            let wrapped = wrapped(text, width);
            assert_eq!(words(&wrapped), words(text), "{width}");
            let is_narrow = |line: &str| line.len() <= width.max(60) || !line.trim().contains(' ');
            assert!(width < 60 || wrapped.lines().all(is_narrow), "{width}: {wrapped}");
        }
    }
}
