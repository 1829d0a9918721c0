//! The parts of a run document that lists and selections need. The middle of a document, which may
//! be long, is not read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use measure::{FORMAT_VERSION, Figure, FigureUnit, Run, Status, UnreadableRun};
use serde::Deserialize;
use serde_json::Value;

/// Bytes at the beginning of a document that usually include all fields before the plan.
const BEGINNING: u64 = 8 << 10;
/// Bytes at the end of a document that usually include its figures.
const END: u64 = 16 << 10;
/// The field after the head in documents of pgrig's. JSON strings contain no line breaks, so these
/// bytes can only be a field of the document itself.
const PLAN: &[u8] = b",\n  \"plan\": ";
/// The last field of a document.
const FIGURES: &[u8] = b",\n  \"figures\": {";
/// Number of digits of an id's fraction of a second.
const FRACTION: usize = 8;

/// The fields of a run document up to its plan.
#[derive(Debug, Deserialize)]
pub(crate) struct Head {
    format_version: u64,
    pub(crate) id: String,
    pub(crate) verb: String,
    pub(crate) label: Option<String>,
    pub(crate) started_at: String,
    pub(crate) status: Status,
    pub(crate) request: Value,
}

/// The reason why a file has no head.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoHead {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Unreadable(#[from] UnreadableRun),
    #[error("it is not a regular file")]
    Special,
    #[error("it is the document of run {0}: rename it to {0}.json")]
    OtherName(String),
}

impl Head {
    /// Reads the head of a saved document, and its size in bytes. Special files are refused,
    /// because opening a pipe would block.
    pub(super) fn read(path: &Path) -> Result<(Self, u64), NoHead> {
        let metadata = path.metadata()?;
        if !metadata.is_file() {
            return Err(NoHead::Special);
        }
        let mut text = Vec::new();
        let mut file = File::open(path)?;
        file.by_ref().take(BEGINNING).read_to_end(&mut text)?;
        let head = if let Some(head) = beginning(&text) {
            head
        } else {
            file.read_to_end(&mut text)?;
            refuse_other_format(&text)?;
            serde_json::from_slice::<Self>(&text).map_err(UnreadableRun::from)?
        };
        if head.format_version != u64::from(FORMAT_VERSION) {
            return Err(UnreadableRun::Format(head.format_version).into());
        }
        if !is_id(&head.id) || path.file_stem() != Some(head.id.as_ref()) {
            return Err(NoHead::OtherName(head.id));
        }
        Ok((head, metadata.len()))
    }

    /// The start, as a text that sorts by time.
    pub(super) fn start(&self) -> &str {
        self.started_at.trim_end_matches('Z')
    }
}

/// A document of another format may lack the fields of this one.
fn refuse_other_format(text: &[u8]) -> Result<(), UnreadableRun> {
    #[derive(Deserialize)]
    struct Format {
        format_version: u64,
    }
    match serde_json::from_slice::<Format>(text) {
        Ok(format) if format.format_version != u64::from(FORMAT_VERSION) => {
            Err(UnreadableRun::Format(format.format_version))
        }
        _ => Ok(()),
    }
}

fn beginning(text: &[u8]) -> Option<Head> {
    let end = text.windows(PLAN.len()).position(|bytes| bytes == PLAN)?;
    serde_json::from_slice(&[&text[..end], b"}"].concat()).ok()
}

/// The figures of a saved document, with their values.
///
/// # Errors
/// If it is not a whole run document.
pub(crate) fn figures(path: &Path) -> Result<Vec<(Figure, f64)>, UnreadableRun> {
    let unreadable = |error: io::Error| UnreadableRun::Foreign(serde_json::Error::io(error));
    let mut file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(END))).map_err(unreadable)?;
    file.read_to_end(&mut text).map_err(unreadable)?;
    if let Some(found) = end(&text) {
        return Ok(found);
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Ok(measure::figures(&Run::read(&text)?))
}

#[derive(Deserialize)]
struct End {
    figures: BTreeMap<String, BTreeMap<String, FigureValue>>,
}

#[derive(Deserialize)]
struct FigureValue {
    value: f64,
    unit: FigureUnit,
}

/// None if the text does not end like a document of pgrig's.
fn end(text: &[u8]) -> Option<Vec<(Figure, f64)>> {
    let start = text.windows(FIGURES.len()).rposition(|bytes| bytes == FIGURES)?;
    let end: End = serde_json::from_slice(&[b"{", &text[start + 1..]].concat()).ok()?;
    let of_config = |(config, named): (String, BTreeMap<String, FigureValue>)| {
        named.into_iter().map(move |(name, FigureValue { value, unit })| {
            (Figure { config: config.clone(), name, unit }, value)
        })
    };
    Some(end.figures.into_iter().flat_map(of_config).collect())
}

/// Whether a text is the id of a run, and so safe as the name of a file.
pub(crate) fn is_id(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let [Some(time), Some(verb), Some(unique)] = [parts.next(), parts.next(), parts.next()] else {
        return false;
    };
    let is_time = time.len() == 16
        && time.bytes().enumerate().all(|(place, byte)| match place {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        });
    is_time
        && !verb.is_empty()
        && verb.bytes().all(|byte| byte.is_ascii_lowercase())
        && !unique.is_empty()
        && unique.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.len() <= 100
}

/// The ID of the process that wrote the run.
pub(crate) fn process(id: &str) -> Option<i32> {
    let (_, unique) = id.rsplit_once('-')?;
    let number = unique.get(..unique.len().checked_sub(FRACTION)?)?;
    i32::from_str_radix(number, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_no_paths() {
        assert!(is_id("20261124T081827Z-tps-1a2b05f5e100"));
        for text in [
            "",
            "../20261124T081827Z-tps-1a",
            "20261124T081827Z-tps-../1a",
            "20261124T081827Z-tps-",
            "20261124T081827Z-Tps-1a",
            "20261124t081827Z-tps-1a",
            "20261124T081827Z-tps",
            "before",
        ] {
            assert!(!is_id(text), "{text}");
        }
        assert_eq!(process("20261124T081827Z-tps-1a2b05f5e100"), Some(0x1a2b));
        assert_eq!(process("20261124T081827Z-tps-1a"), None);
    }

    #[test]
    fn what_looks_like_a_field_in_a_string_is_none() {
        let text = "{\n  \"format_version\": 1,\n  \"id\": \"i\",\n  \"verb\": \"tps\",\n  \"started_at\": \"s\",\n  \"status\": \"done\",\n  \
                    \"request\": {\n    \"plan\": 1,\n    \"text\": \",\\n  \\\"plan\\\": \"\n  },\n  \"plan\": {";
        let head = beginning(text.as_bytes()).unwrap();
        assert_eq!(head.request["plan"], 1);
        assert_eq!(head.label, None);
        // Cut off before the plan.
        assert!(beginning(&text.as_bytes()[..text.len() - 10]).is_none());
    }

    #[test]
    fn figures_are_at_the_end_or_not_known() {
        let text = "  \"notes\": [],\n  \"figures\": {\n    \"tps\": {\n      \"tps\": {\"value\": 2.5, \"unit\": \"per-second\"}\n    }\n  }\n}\n";
        let found = end(text.as_bytes()).unwrap();
        assert_eq!((found[0].0.full_name(), found[0].1), ("tps: tps".to_owned(), 2.5));
        assert!(end(&text.as_bytes()[..text.len() - 3]).is_none());
    }
}
