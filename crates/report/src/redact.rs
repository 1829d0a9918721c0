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
/// Placeholder of text that is left out.
const LEFT_OUT: &str = "redacted";

/// The same runs without host, user, database, paths, users' names, SQL and literals. The same text
/// gets the same placeholder in all of them.
///
/// # Errors
/// If a redacted document cannot be read, which would be a bug.
pub fn redacted(documents: &[Document]) -> Result<Vec<Document>, UnreadableRun> {
    let mut names = Names::default();
    documents.iter().map(|document| names.document(document)).collect()
}

/// Placeholders of omitted text.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn document(&mut self, document: &Document) -> Result<Document, UnreadableRun> {
        let mut run = document.run.clone();
        run.label = run.label.map(|label| self.of("label", &label));
        run.command.clear();
        self.value("name", &mut run.request);
        self.value("name", &mut run.plan);
        self.environment(&mut run);
        for trial in &mut run.trials {
            trial.config = match trial.config.split_once(": ") {
                // The number of a statement, and its text.
                Some((number, sql)) if run.verb == "ddl" => format!("{number}: {}", self.of("SQL", sql)),
                _ => self.word("configuration", &trial.config),
            };
            for observation in &mut trial.observations {
                observation.name = self.quantity(&observation.name);
            }
            for series in &mut trial.series {
                series.name = self.quantity(&series.name);
            }
            for histogram in &mut trial.histograms {
                histogram.name = self.quantity(&histogram.name);
            }
            for increment in &mut trial.increments {
                let counts = std::mem::take(&mut increment.counts).into_iter();
                increment.counts = counts.map(|(name, count)| (self.quantity(&name), count)).collect();
                let histograms = std::mem::take(&mut increment.histograms).into_iter();
                increment.histograms =
                    histograms.map(|(name, packed)| (self.quantity(&name), packed)).collect();
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

    /// The redacted name of a quantity: a user's name with a suffix of the format (`md5(i)-wal`),
    /// or a name of the format's.
    fn quantity(&mut self, name: &str) -> String {
        for suffix in ["", "-wal"] {
            if let Some(known) = name.strip_suffix(suffix).and_then(|own| self.0.get(own)) {
                return format!("{known}{suffix}");
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
        let kind = environment.transport.split(' ').next().unwrap_or_default();
        environment.transport = match kind {
            "tcp" => "tcp".to_owned(),
            "unix" => "unix socket".to_owned(),
            _ => LEFT_OUT.to_owned(),
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

/// The word for a field's text in placeholders.
fn kind(key: &str) -> &str {
    match key {
        "ddl" | "sql" | "text" | "statement" | "expression" | "executed" | "setup" | "teardown" | "empty"
        | "commands" => "SQL",
        "table" | "tables" | "relation" | "index" => "table",
        "column" | "columns" => "column",
        "cells" | "variants" | "variant" => "configuration",
        _ => "name",
    }
}

/// Whether the text of a field is the user's even if it is made of harmless words.
fn is_always_left_out(key: &str) -> bool {
    kind(key) != "name" && kind(key) != "configuration"
        || ["candidate", "baseline", "name", "label", "schema"].contains(&key)
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
