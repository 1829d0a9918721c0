//! The request: candidates, rows, rounds.

use std::time::Duration;

use serde::{Serialize, Serializer};
use sql::{Kind, Text};

use crate::candidate::{Body, Candidate, ROWS, TABLE};
use crate::error::MicroError;

/// Most rows: the numbers of the series are integers.
pub const MOST_ROWS: u64 = 2_147_483_647;

/// The request, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// The candidates; the others are compared with the first.
    pub candidates: Vec<Candidate>,
    /// A statement whose time is subtracted from each; expressions have their own.
    pub empty: Option<String>,
    /// SQL that is run once, in the session that then measures.
    pub setup: Option<String>,
    /// SQL that is run once at the end, even after an error or an interruption.
    pub teardown: Option<String>,
    /// Extensions that candidates need; missing ones are created for the run.
    pub extensions: Vec<String>,
    /// Rows of a sample; none for pgrig's choice.
    pub rows: Option<u64>,
    /// Time for the rounds.
    #[serde(serialize_with = "seconds")]
    pub budget: Duration,
    /// The least difference that matters, as a share of the first candidate's own time.
    pub threshold: f64,
    /// Seed of orders and of resampling.
    pub seed: u64,
    /// Schema of the tables; none for a schema of pgrig's own.
    pub schema: Option<String>,
    /// Whether candidates are measured even if their plans would be refused.
    pub anyway: bool,
}

/// Whether a statement begins, ends or divides a transaction.
fn is_of_transactions(text: &str) -> bool {
    let mut at = 0;
    let mut words = Vec::new();
    while let Ok(Some((kind, length))) = Text::whole(text).from(at).token()
        && words.len() < 2
    {
        if !matches!(kind, Kind::Blank | Kind::Comment) {
            words.push(text[at..at + length].to_ascii_lowercase());
        }
        at += length;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["prepare", second] => second == "transaction",
        [first, ..] => {
            let known = ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"];
            known.contains(&first)
        }
        [] => false,
    }
}

fn seconds<S: Serializer>(budget: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(budget.as_secs_f64())
}

impl Request {
    /// Whether pgrig creates tables or extensions for it.
    pub fn creates_objects(&self) -> bool {
        let is_table = |candidate: &Candidate| matches!(candidate.body, Body::Table { .. });
        self.candidates.iter().any(is_table) || !self.extensions.is_empty()
    }

    /// Refuses requests that make no sense on any server.
    ///
    /// # Errors
    /// [`MicroError::Request`], with the reason.
    pub fn check(&self) -> Result<(), MicroError> {
        let refuse = |why: &str| Err(MicroError::Request(why.to_owned()));
        let Some(first) = self.candidates.first() else {
            return refuse("nothing to measure: give expressions, --statement, --ddl or --suite");
        };
        if self.candidates.iter().any(|candidate| candidate.body.is_blank()) {
            return refuse("an expression or a statement is empty: give SQL, for example 'md5(i::text)'");
        }
        let kind = std::mem::discriminant(&first.body);
        if self.candidates.iter().any(|candidate| std::mem::discriminant(&candidate.body) != kind) {
            return refuse(
                "pgrig does not compare expressions, statements and tables with one another: give one kind",
            );
        }
        if self.rows.is_some_and(|rows| rows == 0 || rows > MOST_ROWS) {
            return refuse("--rows must be 1 to 2147483647: the row numbers are integers");
        }
        if !(self.threshold > 0.0 && self.threshold < 1.0) {
            return refuse("--threshold must be more than 0 % and less than 100 %");
        }
        self.check_transactions()?;
        self.check_placeholders(&first.body)
    }

    /// Refuses statements that begin or end a transaction: it would still be open, or over, for the samples after it.
    fn check_transactions(&self) -> Result<(), MicroError> {
        let candidates = self.candidates.iter().filter_map(|candidate| match &candidate.body {
            Body::Expression(_) => None,
            Body::Statement(text) | Body::Table { statement: text, .. } => Some(text),
        });
        match candidates.chain(&self.empty).find(|text| is_of_transactions(text)) {
            None => Ok(()),
            Some(text) => Err(MicroError::Request(format!(
                "pgrig micro cannot time {}, because it changes the transaction in which the next sample runs. To time a whole \
                 transaction, write BEGIN, its statements and COMMIT into a file, and run: pgrig tps -f FILE",
                text.trim()
            ))),
        }
    }

    fn check_placeholders(&self, first: &Body) -> Result<(), MicroError> {
        if self.empty.is_some() && !matches!(first, Body::Statement(_)) {
            return Err(MicroError::Request("--empty is for --statement only".to_owned()));
        }
        let has_rows = first.has_rows();
        let empty = self.empty.iter().map(|text| text.contains(ROWS));
        let others = self.candidates.iter().map(|candidate| candidate.body.has_rows());
        if others.chain(empty).any(|other| other != has_rows) {
            return Err(MicroError::Request(format!(
                "use {ROWS} in all statements or in none: otherwise their times per row cannot be compared"
            )));
        }
        for candidate in &self.candidates {
            if let Body::Table { ddl, statement } = &candidate.body
                && !(ddl.contains(TABLE) && statement.contains(TABLE))
            {
                return Err(MicroError::Request(format!(
                    "\"{}\" has no {TABLE}, which stands for the name of the table: give SQL text (not a file) like --ddl 'CREATE TABLE {TABLE} (n \
                     int)' --statement 'INSERT INTO {TABLE} VALUES (1)'",
                    if ddl.contains(TABLE) { statement } else { ddl }
                )));
            }
            if let Body::Statement(text) = &candidate.body
                && text.contains(TABLE)
            {
                return Err(MicroError::Request(format!(
                    "{TABLE} is the table that --ddl makes: give --ddl too"
                )));
            }
        }
        Ok(())
    }

    /// Whether times are per row; otherwise they are per statement.
    pub fn has_rows(&self) -> bool {
        self.candidates.iter().all(|candidate| candidate.body.has_rows())
    }

    /// The candidates' names in order, made different from each other.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for candidate in &self.candidates {
            let same =
                self.candidates.iter().take(names.len()).filter(|other| other.name == candidate.name).count();
            let name = &candidate.name;
            names.push(if same == 0 { name.clone() } else { format!("{name} ({})", same + 1) });
        }
        names
    }
}
