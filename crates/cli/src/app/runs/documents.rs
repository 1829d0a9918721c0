//! Reads the documents in a file: one or several run documents, or those in a report.

use std::path::Path;

use measure::Run;
use serde::de::IgnoredAny;
use serde_json::Deserializer;

use crate::app::failure::{Failure, Usage};
use crate::app::input;

/// A run document, with its text as it is in the file.
#[derive(Debug)]
pub(crate) struct Document {
    /// The text, byte for byte; of several in a file without the blanks between them, but with its last line end if there is one.
    pub(crate) text: String,
    pub(crate) run: Run,
}

/// The run documents in a file: at least one.
///
/// # Errors
/// If there is none, or one cannot be read.
pub(crate) fn in_file(file: &Path) -> Result<Vec<Document>, Failure> {
    let name = file.display();
    let failed = |error: String| Usage(format!("cannot read {name}: {}", input::for_runs(error)));
    let text = input::file(file).map_err(failed)?;
    Ok(all(&text).map_err(|error| Usage(format!("{name}: {error}")))?)
}

fn all(text: &str) -> Result<Vec<Document>, String> {
    if report::embed::is_report(text) {
        let embedded = report::embed::extract(text).map_err(|error| error.to_string())?;
        let read =
            |text: String| Ok(Document { run: Run::read(&text).map_err(|error| error.to_string())?, text });
        return embedded.into_iter().map(read).collect();
    }
    let texts = split(text);
    let several = texts.len() > 1;
    let read = |(number, part): (usize, &str)| {
        let place = if several { format!("document {number}: ") } else { String::new() };
        let run = Run::read(part).map_err(|error| format!("{place}{error}"))?;
        let kept = if several { part.trim_start() } else { text };
        Ok(Document { text: kept.to_owned(), run })
    };
    (1..).zip(texts).map(read).collect()
}

/// The texts of consecutive JSON values, each with the line end after it. If one cannot be read, it and everything after it are
/// returned as one text.
fn split(text: &str) -> Vec<&str> {
    let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut texts, mut start) = (Vec::new(), 0);
    while let Some(Ok(_)) = values.next() {
        let mut end = values.byte_offset();
        end += usize::from(text[end..].starts_with('\n'));
        texts.push(&text[start..end]);
        start = end;
    }
    if texts.is_empty() || !text[start..].trim().is_empty() {
        texts.push(&text[start..]);
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_and_a_cut_one_is_not_lost() {
        assert_eq!(split("{}\n{\"a\": [1]}{}"), ["{}\n", "{\"a\": [1]}", "{}"]);
        assert_eq!(split("{} \n"), ["{}"]);
        assert_eq!(split("{}\n{\"a\": [1"), ["{}\n", "{\"a\": [1"]);
        assert_eq!(split("{} x {}"), ["{}", " x {}"]);
        assert_eq!(split(""), [""]);
        assert!(all("{}\n{}").unwrap_err().starts_with("document 1: it is not a run document"));
        assert!(all("").unwrap_err().starts_with("it is not a run document"));
    }
}
