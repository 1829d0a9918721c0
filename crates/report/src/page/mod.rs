//! The page: head, sections, plots with their tables, and the documents.

use std::fmt::Write;

use measure::human::bytes;
use measure::{Note, Run, Status};

use crate::document::{Document, began, name, release};
use crate::embed;
use crate::escape::html;
use crate::plot::{NARROW, Plot, STYLE, Table, WIDE};
use crate::sections::{self, Section};

const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Content security policy: nothing is loaded, because all styles and scripts are in the page.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Longer options may be broken: a narrow page has no room for them.
const LONGEST_OPTION: usize = 24;
/// So many notes that differ only in their numbers are folded.
const MANY: usize = 4;
/// More notes than these get bars to scroll, so that the plots are not far down.
const NOTES: usize = 10;

/// Runs of one verb, with the report's sections on them.
pub(crate) struct VerbRuns<'a> {
    /// The verb, with its mode.
    pub(crate) verb: String,
    pub(crate) runs: Vec<&'a Run>,
    pub(crate) shown: sections::Shown,
}

/// The parts of a report: runs by verb, in the order in which they began.
pub(crate) fn parts(documents: &[Document]) -> Vec<VerbRuns<'_>> {
    let mut runs: Vec<&Run> = documents.iter().map(|document| &document.run).collect();
    runs.sort_by(|one, other| {
        one.started_at.trim_end_matches('Z').cmp(other.started_at.trim_end_matches('Z'))
    });
    let mut verbs: Vec<String> = Vec::new();
    for run in &runs {
        let kind = sections::kind(run);
        if !verbs.contains(&kind) {
            verbs.push(kind);
        }
    }
    let part = |verb: String| {
        let runs: Vec<&Run> = runs.iter().copied().filter(|run| sections::kind(run) == verb).collect();
        VerbRuns { verb, shown: sections::of(&runs), runs }
    };
    verbs.into_iter().map(part).collect()
}

/// The whole page.
pub(crate) fn page(documents: &[Document]) -> String {
    let parts = parts(documents);
    let title = match parts.as_slice() {
        [part] => format!("pgrig {}: {}", part.verb, part.shown.result),
        several => {
            format!(
                "pgrig: runs of {}",
                several.iter().map(|part| part.verb.as_str()).collect::<Vec<_>>().join(", ")
            )
        }
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{STYLE}{PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n",
        html(&title)
    );
    if let [part] = parts.as_slice() {
        head(&mut page, part);
        for section in &part.shown.sections {
            self::section(&mut page, section);
        }
    } else {
        let _ = writeln!(page, "<h1>{}</h1>", html(&title));
        for part in &parts {
            head(&mut page, part);
            for section in &part.shown.sections {
                self::section(&mut page, section);
            }
        }
    }
    page += "<h2>Run documents</h2>\n<p>This page contains the whole run documents: pgrig compare and pgrig report accept it where they accept a run.</p>\n<ul>\n";
    for document in documents {
        let _ = writeln!(page, "<li>{}, {}</li>", html(&document.run.id), bytes(document.text.len() as u64));
    }
    page += "</ul>\n</main>\n";
    for document in documents {
        page += &embed::block(&document.text);
    }
    let _ = writeln!(page, "<script>\n{SCRIPT}</script>\n</body>\n</html>");
    page
}

/// Appends the result, the conditions, and the command that repeats a run.
fn head(page: &mut String, part: &VerbRuns<'_>) {
    let is_alone = part.runs.len() == 1;
    let when = if is_alone { name_and_start(part.runs[0]) } else { format!("{} runs", part.runs.len()) };
    let _ = writeln!(
        page,
        "<p class=\"kind\">pgrig {}, {}</p>\n<h1>{}</h1>",
        html(&part.verb),
        html(&when),
        html(&unbroken(&part.shown.result))
    );
    if is_alone {
        conditions(page, part.runs[0]);
        return;
    }
    for run in &part.runs {
        let _ = writeln!(page, "<details><summary>{}</summary>", html(&name_and_start(run)));
        conditions(page, run);
        *page += "</details>\n";
    }
}

/// The text, with no line end between a number and its unit.
fn unbroken(text: &str) -> String {
    const UNITS: [&str; 16] =
        ["%", "ns", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB", "B/s", "kB/s", "MB/s", "GB/s"];
    let mut unbroken = String::with_capacity(text.len());
    for (at, word) in text.split(' ').enumerate() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
        if at > 0 {
            unbroken.push(if is_unit && unbroken.ends_with(|c: char| c.is_ascii_digit()) {
                '\u{a0}'
            } else {
                ' '
            });
        }
        unbroken += word;
    }
    unbroken
}

fn name_and_start(run: &Run) -> String {
    let label = run.label.as_ref().map_or_else(String::new, |_| format!("{}, ", name(run)));
    format!("{label}{} UTC", began(run))
}

/// Name and value of each condition of a run.
pub(crate) fn conditions_of(run: &Run) -> Vec<(&'static str, String)> {
    let environment = &run.environment;
    let client = &environment.client;
    let here = match environment.server_is_local {
        Some(true) => ", on the same machine",
        Some(false) => ", on another machine",
        None => "",
    };
    let mut conditions = vec![
        ("server", format!("{}{here}", release(run))),
        (
            "connection",
            format!(
                "database {}, role {}, {}",
                environment.database, environment.role, environment.transport
            ),
        ),
        (
            "machine",
            format!(
                "{} cores, {}, {} memory, {}",
                client.cores,
                client.cpu,
                bytes(client.memory),
                client.system
            ),
        ),
    ];
    if let Some(disk) = &environment.data_volume {
        conditions.push((
            "data volume",
            format!(
                "{} on {}, {} of {} free",
                disk.file_system,
                disk.mount,
                bytes(disk.free),
                bytes(disk.size)
            ),
        ));
    }
    conditions.push(("pgrig", environment.pgrig.clone()));
    if run.status != Status::Done {
        conditions.push(("status", format!("{:?}: the results are not complete", run.status).to_lowercase()));
    }
    conditions
}

fn conditions(page: &mut String, run: &Run) {
    *page += "<dl>\n";
    for (name, value) in conditions_of(run) {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", html(&value));
    }
    *page += "</dl>\n";
    if !run.notes.is_empty() {
        notes(page, &run.notes);
    }
    if let Some(command) = repeat(run) {
        let _ = writeln!(page, "<p>The command that repeats it:</p>\n<pre>{}</pre>", with_options(&command));
    }
    let settings = &run.environment.server.settings;
    if !settings.is_empty() {
        let mut table = Table::new(&["setting", "value"]);
        for setting in settings {
            table.add([setting.name.clone(), setting.value.clone()]);
        }
        let title = match settings.len() {
            1 => "1 setting that differs from PostgreSQL's default".to_owned(),
            many => format!("{many} settings that differ from PostgreSQL's defaults"),
        };
        folded(page, &title, &table);
    }
}

/// The text as HTML, with no line end within an option: `--dump`.
fn with_options(text: &str) -> String {
    let shown = |word: &str| {
        let is_option = word.trim_start_matches('(').starts_with('-') && word.len() <= LONGEST_OPTION;
        let word = html(word);
        if is_option { format!("<span class=\"option\">{word}</span>") } else { word }
    };
    text.split(' ').map(shown).collect::<Vec<String>>().join(" ")
}

/// Notes that differ only in their trial and their numbers are one, with the notes behind a fold: a warning that is given once
/// is not lost among them.
fn notes(page: &mut String, notes: &[Note]) {
    let (many, few): (Vec<_>, Vec<_>) = alike(notes).into_iter().partition(|of| of.len() >= MANY);
    let is_long = few.len() + many.len() > NOTES;
    if is_long {
        let label = format!("{} notes", few.len() + many.len());
        let _ = writeln!(
            page,
            "<div class=\"scroll notes\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">"
        );
    }
    *page += "<ul>\n";
    for text in few.iter().flatten() {
        let _ = writeln!(page, "<li>{}</li>", with_options(text));
    }
    for texts in &many {
        let _ = writeln!(
            page,
            "<li><details class=\"many\"><summary>{} notes: {}</summary>\n<ul>",
            texts.len(),
            html(&together(texts))
        );
        for text in texts {
            let _ = writeln!(page, "<li>{}</li>", with_options(text));
        }
        *page += "</ul></details></li>\n";
    }
    *page += if is_long { "</ul>\n</div>\n" } else { "</ul>\n" };
}

/// The note without the trial that it begins with: `trial 2, work_mem=4MB: `.
fn without_trial(text: &str) -> &str {
    let is_trial = |start: &str| {
        let number = start.strip_prefix("trial ").unwrap_or_default();
        number.starts_with(|c: char| c.is_ascii_digit())
    };
    text.split_once(": ").filter(|(start, _)| is_trial(start)).map_or(text, |(_, rest)| rest)
}

/// The numbers of a text, and the text between them.
fn numbers(text: &str) -> (Vec<&str>, Vec<&str>) {
    let is_part = |c: char| c.is_ascii_digit();
    let (mut numbers, mut between) = (Vec::new(), Vec::new());
    let mut rest = text;
    loop {
        let start = rest.find(is_part).unwrap_or(rest.len());
        between.push(&rest[..start]);
        rest = &rest[start..];
        if rest.is_empty() {
            return (numbers, between);
        }
        let mut end = rest.find(|c: char| !is_part(c) && c != '.').unwrap_or(rest.len());
        end = rest[..end].trim_end_matches('.').len();
        numbers.push(&rest[..end]);
        rest = &rest[end..];
    }
}

/// Groups of notes that differ only in their trial and their numbers.
fn alike(notes: &[Note]) -> Vec<Vec<&str>> {
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for note in notes {
        let (_, between) = numbers(without_trial(&note.text));
        match groups.iter_mut().find(|(known, _)| *known == between) {
            Some((_, texts)) => texts.push(&note.text),
            None => groups.push((between, vec![&note.text])),
        }
    }
    groups.into_iter().map(|(_, texts)| texts).collect()
}

/// Such notes as one, with the range of each number.
fn together(texts: &[&str]) -> String {
    let all: Vec<(Vec<&str>, Vec<&str>)> = texts.iter().map(|text| numbers(without_trial(text))).collect();
    let mut text = String::new();
    for (at, part) in all[0].1.iter().enumerate() {
        text += part;
        let value = |(numbers, _): &(Vec<&'_ str>, _)| {
            numbers.get(at).and_then(|number| Some((number.parse::<f64>().ok()?, (*number).to_owned())))
        };
        let values: Vec<(f64, String)> = all.iter().filter_map(value).collect();
        let by_size = |one: &&(f64, String), other: &&(f64, String)| one.0.total_cmp(&other.0);
        if let Some((low, high)) = values.iter().min_by(by_size).zip(values.iter().max_by(by_size)) {
            text += &low.1;
            if low.0 < high.0 {
                let _ = write!(text, " to {}", high.1);
            }
        }
    }
    text
}

/// The command line, as a shell reads it.
pub(crate) fn repeat(run: &Run) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = |argument: &String| {
        if !argument.is_empty() && argument.chars().all(is_plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    (!run.command.is_empty()).then(|| run.command.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

fn section(page: &mut String, section: &Section) {
    let _ = writeln!(page, "<h2>{}</h2>", html(&section.title));
    for text in &section.text {
        let _ = writeln!(page, "<p>{}</p>", html(&unbroken(text)));
    }
    if let Some((title, table)) = &section.first {
        self::table(page, title, table, true);
    }
    for plot in &section.plots {
        figure(page, plot);
    }
    for (title, table) in &section.tables {
        folded(page, title, table);
    }
}

fn figure(page: &mut String, plot: &Plot) {
    let _ = writeln!(
        page,
        "<h3>{}</h3>\n<figure>\n<figcaption>{}</figcaption>",
        html(&plot.title),
        html(&unbroken(&plot.caption))
    );
    *page += &plot.svg(WIDE);
    *page += &plot.svg(NARROW);
    folded(page, &format!("Table: {}", plot.title), &plot.table());
    *page += "</figure>\n";
}

/// Appends a table in a closed `details` element. Each printed page repeats its header. Cells have no end tags: HTML does not need them,
/// and long tables have many cells.
fn folded(page: &mut String, title: &str, table: &Table) {
    self::table(page, title, table, false);
}

fn table(page: &mut String, title: &str, table: &Table, is_open: bool) {
    let title = html(title);
    let open = if is_open { " open class=\"first\"" } else { "" };
    let _ = write!(
        page,
        "<details{open}><summary>{title}</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>\n<thead><tr>"
    );
    for name in &table.header {
        // An empty header would name nothing.
        let _ = if name.is_empty() {
            write!(page, "<td>")
        } else {
            write!(page, "<th scope=\"col\">{}", html(name))
        };
    }
    *page += "\n<tbody>";
    for row in &table.rows {
        *page += "\n<tr>";
        for cell in row {
            let _ = write!(page, "<td>{}", html(&if is_open { unbroken(cell) } else { cell.clone() }));
        }
    }
    *page += "\n</table></div></details>\n";
}
