//! Run documents within a page: written and found again, byte for byte.
//!
//! Each document is a data block of HTML, which a browser neither shows nor runs:
//!
//! ```html
//! <script type="application/vnd.pgrig.run+json" data-encoding="gzip+base64">H4sI…</script>
//! ```
//!
//! Text of people is escaped everywhere else in a page (`<` is `&lt;`), so it cannot look like the start of a block.

use std::io::{self, Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use failure::{Class, Classified};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use measure::human::bytes;
use thiserror::Error;

/// Start of a data block with a document.
const START: &str = r#"<script type="application/vnd.pgrig.run+json" data-encoding="gzip+base64">"#;
/// Its end.
const END: &str = "</script>";
/// Bytes of the longest document: as many as pgrig reads from a file.
const LONGEST: u64 = 256 << 20;

/// A data block that does not contain a document.
#[derive(Debug, Error)]
pub enum EmbedError {
    /// The page ends within a data block.
    #[error("the report is not complete: the run document in it has no end")]
    Cut,
    /// The text of a block is not base64.
    #[error("the run document in the report is damaged: {0}")]
    Base64(#[from] base64::DecodeError),
    /// It is base64 of something else.
    #[error("the run document in the report is damaged: {0}")]
    Gzip(#[from] io::Error),
    /// The document is longer than pgrig reads.
    #[error("the run document in the report is longer than {}", bytes(LONGEST))]
    Long,
    /// The document is not text.
    #[error("the run document in the report is not UTF-8 text")]
    Text,
}

impl Classified for EmbedError {
    fn class(&self) -> Class {
        match self {
            Self::Cut | Self::Base64(_) | Self::Gzip(_) | Self::Long | Self::Text => Class::Request,
        }
    }
}

/// The data block with a document.
///
/// # Panics
/// Never: memory takes all that is written.
pub fn block(document: &str) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    let compressed = gzip.write_all(document.as_bytes()).and_then(|()| gzip.finish());
    let compressed = compressed.expect("memory takes all that is written");
    format!("{START}{}{END}\n", STANDARD.encode(compressed))
}

/// Whether a text contains at least one data block.
pub fn is_report(text: &str) -> bool {
    text.contains(START)
}

/// The documents of all data blocks of a page, in their order; none if it has no block.
///
/// # Errors
/// If a block does not contain a document.
pub fn extract(page: &str) -> Result<Vec<String>, EmbedError> {
    let mut documents = Vec::new();
    let mut rest = page;
    while let Some((_, from)) = rest.split_once(START) {
        let (encoded, after) = from.split_once(END).ok_or(EmbedError::Cut)?;
        documents.push(decoded(encoded, LONGEST)?);
        rest = after;
    }
    Ok(documents)
}

fn decoded(encoded: &str, longest: u64) -> Result<String, EmbedError> {
    let compressed = STANDARD.decode(encoded)?;
    let mut bytes = Vec::new();
    GzDecoder::new(compressed.as_slice()).take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Err(EmbedError::Long);
    }
    String::from_utf8(bytes).map_err(|_| EmbedError::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_without_documents_have_none() {
        for page in ["", "{}", "<html><script>let run = 1;</script></html>"] {
            assert!(!is_report(page));
            assert_eq!(extract(page).unwrap(), Vec::<String>::new());
        }
    }

    #[test]
    fn a_damaged_block_is_an_error() {
        let whole = block("{\"id\": \"a\"}");
        let encoded = &whole[START.len()..whole.len() - END.len() - 1];
        let cut = STANDARD.encode(&STANDARD.decode(encoded).unwrap()[..12]);
        for (page, expected) in [
            (whole[..whole.len() - 5].to_owned(), "not complete"),
            (format!("{START}%%%{END}"), "damaged"),
            (format!("{START}{}{END}", STANDARD.encode("{}")), "damaged"),
            (format!("{START}{cut}{END}"), "damaged"),
        ] {
            assert!(is_report(&page));
            let error = extract(&page).unwrap_err().to_string();
            assert!(error.contains(expected), "{page}: {error}");
        }
    }

    #[test]
    fn what_unpacks_without_end_is_refused() {
        let whole = block(&" ".repeat(1000));
        let encoded = &whole[START.len()..whole.len() - END.len() - 1];
        assert!(decoded(encoded, 1000).is_ok());
        assert!(matches!(decoded(encoded, 999), Err(EmbedError::Long)));
    }

    proptest! {
        #[test]
        fn documents_come_back_byte_for_byte(documents in prop::collection::vec("(?s).{0,300}", 0..4)) {
            let blocks: Vec<String> = documents.iter().map(|document| block(document)).collect();
            let page = format!("<html><body>{}</body></html>", blocks.join("<p>&lt;/script&gt;</p>\n"));
            prop_assert_eq!(extract(&page).unwrap(), documents);
        }
    }
}
