//! Removes names, paths and SQL from run documents.
//!
//! All text is replaced, unless it is known to be harmless: words of pgrig's format, numbers, and
//! descriptions of PostgreSQL and the machine. The same text gets the same placeholder, so that
//! related parts of a document can still be recognised.

use std::collections::BTreeMap;

use measure::{Note, Run, UnreadableRun};
use serde_json::Value;

use crate::document::Document;

/// Words of the format and of PostgreSQL that tell nothing about the user. Names of observations and events are
/// made of them too.
const WORDS: &str = include_str!("words.txt");
/// Arms of `micro` that pgrig names itself: figures are computed from their names.
const OWN_ARMS: [&str; 2] = ["empty", "repeat"];
/// Placeholder of text that is left out.
const LEFT_OUT: &str = "redacted";

/// The same runs without host, user, database, paths, users' names, SQL and literals. The same text
/// gets the same placeholder in all of them.
///
/// # Errors
/// If a redacted document cannot be read, which would be a bug.
pub fn redacted(documents: &[Document]) -> Result<Vec<Document>, UnreadableRun> {
    let mut names = Names::default();
    // In the order in which the runs began: the order of the words on the command line changes no placeholder.
    let mut ordered: Vec<(usize, &Document)> = documents.iter().enumerate().collect();
    ordered.sort_by_key(|(_, document)| (&document.run.started_at, &document.run.id));
    let redacted = ordered.into_iter().map(|(place, document)| Ok((place, names.document(document)?)));
    let mut redacted: Vec<(usize, Document)> = redacted.collect::<Result<_, UnreadableRun>>()?;
    redacted.sort_by_key(|(place, _)| *place);
    Ok(redacted.into_iter().map(|(_, document)| document).collect())
}

/// Placeholders of omitted text.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn document(&mut self, document: &Document) -> Result<Document, UnreadableRun> {
        let mut run = document.run.clone();
        let candidates = candidates(&run);
        let axes = axes(&run);
        let cells: Vec<String> = texts(&run.plan["cells"]);
        run.label = run.label.map(|label| self.of("label", &label));
        run.command.clear();
        self.value("name", &mut run.request);
        self.value("name", &mut run.plan);
        name_own_arms(&mut run);
        if !axes.is_empty() {
            run.plan["cells"] = cells.iter().map(|cell| self.cell(cell, &axes)).collect();
        }
        self.environment(&mut run);
        for trial in &mut run.trials {
            trial.config = match trial.config.split_once(": ") {
                // The number of a statement, and its text.
                Some((number, sql)) if run.verb == "ddl" => format!("{number}: {}", self.of("SQL", sql)),
                _ => self.cell(&trial.config, &axes),
            };
            for observation in &mut trial.observations {
                observation.name = self.quantity(&observation.name, &candidates);
            }
            for series in &mut trial.series {
                series.name = self.quantity(&series.name, &candidates);
            }
            for histogram in &mut trial.histograms {
                histogram.name = self.quantity(&histogram.name, &candidates);
            }
            for increment in &mut trial.increments {
                let counts = std::mem::take(&mut increment.counts).into_iter();
                increment.counts =
                    counts.map(|(name, count)| (self.quantity(&name, &candidates), count)).collect();
                let histograms = std::mem::take(&mut increment.histograms).into_iter();
                increment.histograms =
                    histograms.map(|(name, packed)| (self.quantity(&name, &candidates), packed)).collect();
            }
            for event in &mut trial.events {
                self.value("name", &mut event.what);
                event.text = event.what["event"].as_str().unwrap_or(LEFT_OUT).to_owned();
            }
        }
        let left_out = run.notes.len();
        run.notes.clear();
        if left_out > 0 {
            run.notes.push(Note { text: format!("--redact left out the notes of this run: {left_out}") });
        }
        Document::read(run.document()?)
    }

    /// The placeholder of a text.
    fn of(&mut self, kind: &str, text: &str) -> String {
        let number = self.0.len() + 1;
        self.0.entry(text.to_owned()).or_insert_with(|| format!("{kind} {number}")).clone()
    }

    /// The text if it is harmless, else its placeholder.
    fn word(&mut self, kind: &str, text: &str) -> String {
        if is_harmless(text) { text.to_owned() } else { self.of(kind, text) }
    }

    /// The redacted configuration of a trial. A cell of a matrix (`a=1 b=2`) keeps its form, because a report finds the
    /// cells of an axis by it.
    fn cell(&mut self, cell: &str, axes: &[(String, Vec<String>)]) -> String {
        let padded = format!(" {cell} ");
        let parts: Option<Vec<_>> = axes
            .iter()
            .map(|(axis, values)| {
                let value = values.iter().find(|value| padded.contains(&format!(" {axis}={value} ")))?;
                Some((axis, value))
            })
            .collect();
        match parts.filter(|parts| !parts.is_empty() && !is_harmless(cell)) {
            Some(parts) => {
                let parts = parts.into_iter();
                let parts: Vec<String> = parts
                    .map(|(axis, value)| format!("{}={}", self.word("name", axis), self.word("name", value)))
                    .collect();
                parts.join(" ")
            }
            None => self.word("configuration", cell),
        }
    }

    /// The redacted name of a quantity: the name of a candidate, perhaps with a suffix of the format (`md5(i)-wal`),
    /// or a name of the format's, which stays even if a label or another of the user's names is the same.
    fn quantity(&mut self, name: &str, candidates: &[String]) -> String {
        for suffix in ["", "-wal"] {
            if let Some(own) = name.strip_suffix(suffix).filter(|own| candidates.iter().any(|one| one == own))
            {
                return format!("{}{suffix}", self.of("name", own));
            }
        }
        // The server's own wait events; an extension may name one as it likes.
        if let Some(wait) = name.strip_prefix("wait-") {
            let is_servers = !wait.starts_with("Extension")
                && wait.chars().all(|c| c.is_ascii_alphabetic() || c == ':' || c == ' ');
            return if is_servers { name.to_owned() } else { format!("wait-{}", self.of("wait", wait)) };
        }
        self.word("quantity", name)
    }

    /// Redacts all text within a value, including keys of objects that are users' names.
    fn value(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) if is_always_left_out(key) => *text = self.of(kind(key), text),
            Value::String(text) => *text = self.word(kind(key), text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(key, item)),
            Value::Object(fields) => {
                let taken = std::mem::take(fields);
                for (name, mut inner) in taken {
                    self.value(&name, &mut inner);
                    // A value folded to a constant, and the values of variables, are literals whatever their type.
                    if matches!(name.as_str(), "value" | "seed") && inner.is_string() {
                        inner = Value::from(LEFT_OUT);
                    }
                    fields.insert(self.word("field", &name), inner);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn environment(&mut self, run: &mut Run) {
        let environment = &mut run.environment;
        LEFT_OUT.clone_into(&mut environment.database);
        LEFT_OUT.clone_into(&mut environment.role);
        let tls = environment.transport.split_once(", ").map_or(String::new(), |(_, tls)| format!(", {tls}"));
        environment.transport = match environment.transport.split(' ').next() {
            Some("tcp") => format!("tcp {LEFT_OUT}{tls}"),
            _ => format!("unix socket {LEFT_OUT}"),
        };
        if let Some(volume) = &mut environment.data_volume {
            LEFT_OUT.clone_into(&mut volume.mount);
        }
        for setting in &mut environment.server.settings {
            // Names with a dot are an application's own.
            if setting.name.contains('.') {
                setting.name = self.of("setting", &setting.name.clone());
            }
            if !is_harmless(&setting.value) {
                LEFT_OUT.clone_into(&mut setting.value);
            }
            setting.source = self.word("source", &setting.source);
        }
    }
}

/// The axes of a matrix of `tps`, with their values.
fn axes(run: &Run) -> Vec<(String, Vec<String>)> {
    let axes = run.request["matrix"]["axes"].as_array().into_iter().flatten();
    axes.filter_map(|axis| Some((axis["axis"].as_str()?.to_owned(), texts(&axis["values"])))).collect()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Names of the candidates of `micro`: no other observation has a name of the user's.
fn candidates(run: &Run) -> Vec<String> {
    let of = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let arms = of(&run.plan["arms"]).into_iter().chain(of(&run.request["candidates"]));
    let candidates = arms.filter(|arm| !is_own(arm));
    candidates.filter_map(|arm| arm["name"].as_str().map(ToOwned::to_owned)).collect()
}

/// Gives the arms that pgrig has named their names again.
fn name_own_arms(run: &mut Run) {
    for arm in run.plan["arms"].as_array_mut().into_iter().flatten().filter(|arm| is_own(arm)) {
        arm["name"] = arm["role"].clone();
    }
}

fn is_own(arm: &Value) -> bool {
    arm["role"].as_str().is_some_and(|role| OWN_ARMS.contains(&role))
}

/// The word for a field's text in placeholders.
fn kind(key: &str) -> &str {
    match key {
        "ddl" | "sql" | "text" | "statement" | "expression" | "executed" | "setup" | "teardown" | "empty"
        | "commands" => "SQL",
        "table" | "tables" | "relation" | "index" | "without_rows" => "table",
        "column" | "columns" => "column",
        "cells" | "variants" | "variant" => "configuration",
        _ => "name",
    }
}

/// Whether the text of a field is the user's even if it is made of harmless words.
fn is_always_left_out(key: &str) -> bool {
    kind(key) != "name" && kind(key) != "configuration"
        || ["candidate", "baseline", "name", "label", "schema", "database", "other_databases", "targets"]
            .contains(&key)
}

/// Whether each part of the text is a word of the format, or a number with a unit.
fn is_harmless(text: &str) -> bool {
    let parts = text.split([' ', '=', '-', '+', '_', ',', '.', ':']).filter(|part| !part.is_empty());
    text.len() <= 120
        && parts.into_iter().all(|part| is_number(part) || WORDS.lines().any(|word| word == part))
}

/// Whether it is a number, perhaps with a unit.
fn is_number(text: &str) -> bool {
    const UNITS: [&str; 13] = ["", "B", "kB", "MB", "GB", "TB", "us", "ms", "s", "min", "h", "d", "%"];
    let digits = text.trim_start_matches('p').trim_start_matches(|c: char| c.is_ascii_digit());
    text.len() <= 12 && UNITS.contains(&digits)
}
