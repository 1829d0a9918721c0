//! Run documents within a page: written and found again, byte for byte.
//!
//! Each document is a data block of HTML, which a browser neither shows nor runs:
//!
//! ```html
//! <script type="application/vnd.pgrig.run+json" data-encoding="numbers+xz+base64">/Td6…</script>
//! ```
//!
//! Of an hour of `tps`, 4.2 MB without waits, xz makes 240 kB in 0.28 s, zstd -19 246 kB in 1.7 s, gzip -9 596 kB; `numbers` rewrites the columns of
//! series for xz. Base64 adds a third; an encoding with 85 letters would add a quarter, but nothing reads one whose letters are safe in HTML. Pages
//! of earlier versions have `gzip+base64` or `xz+base64`; the latter is also for text that `numbers` does not rewrite.
//!
//! Text of people is escaped everywhere else in a page (`<` is `&lt;`), so it cannot look like the start of a block.

mod numbers;

use std::borrow::Cow;
use std::io::{self, Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use failure::{Class, Classified};
use flate2::read::GzDecoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{Check, Filters, LzmaOptions, MatchFinder, Mode, Stream};
use liblzma::write::XzEncoder;
use measure::human::bytes;
use numbers::Unpacking;
use thiserror::Error;

/// Start of a data block with a document, up to the name of its encoding.
const START: &str = r#"<script type="application/vnd.pgrig.run+json" data-encoding=""#;
/// End of the start.
const OPEN: &str = "\">";
/// End of a data block.
const END: &str = "</script>";
/// Encodings of a document.
const NUMBERS: &str = "numbers+xz+base64";
const XZ: &str = "xz+base64";
const GZIP: &str = "gzip+base64";
/// Bytes of the longest document: as many as pgrig reads from a file.
const LONGEST: u64 = 256 << 20;
/// Bytes that xz looks back at most. Compression takes ten times as much memory.
const MOST_HISTORY: usize = 4 << 20;
/// Bytes of memory that unpacking may take, whatever a page asks for.
const MOST_MEMORY: u64 = 64 << 20;

/// A data block that does not contain a document.
#[derive(Debug, Error)]
pub enum EmbedError {
    /// The page ends within a data block.
    #[error("the run document in the report is truncated: save the report again")]
    Cut,
    /// The text of a block is not base64.
    #[error("the run document in the report is damaged ({0}): save the report again")]
    Base64(#[from] base64::DecodeError),
    /// It is base64 of something else.
    #[error("the run document in the report is damaged ({0}): save the report again")]
    Compressed(#[from] io::Error),
    /// The numbers refer to others that are not there.
    #[error(
        "the run document in the report is damaged (a number refers to one that is not there): save the report again"
    )]
    Numbers,
    /// A later version of pgrig has written it.
    #[error(
        "the run document in the report is encoded as {0:?}, which this version of pgrig does not read: use the version that wrote the report"
    )]
    Encoding(String),
    /// The document is longer than pgrig reads.
    #[error(
        "a run document in the report is longer than {}, the most that pgrig reads: save the report again without that run",
        bytes(LONGEST)
    )]
    Long,
    /// The document is not text.
    #[error("the run document in the report is not UTF-8 text: save the report again")]
    Text,
}

impl Classified for EmbedError {
    fn class(&self) -> Class {
        match self {
            Self::Cut
            | Self::Base64(_)
            | Self::Compressed(_)
            | Self::Numbers
            | Self::Encoding(_)
            | Self::Long
            | Self::Text => Class::Request,
        }
    }
}

/// The data block with a document.
///
/// # Panics
/// Never: memory takes all that is written, and the options of xz are supported.
pub fn block(document: &str) -> String {
    let (encoding, text) = match numbers::packed(document) {
        Some(packed) => (NUMBERS, Cow::Owned(packed)),
        None => (XZ, Cow::Borrowed(document)),
    };
    let mut xz = XzEncoder::new_stream(Vec::new(), compression(text.len()));
    let compressed = xz.write_all(text.as_bytes()).and_then(|()| xz.finish());
    let compressed = compressed.expect("memory takes all that is written");
    format!("{START}{encoding}{OPEN}{}{END}\n", STANDARD.encode(compressed))
}

/// Options of xz for text of so many bytes: numbers in columns, whose digits have no position that counts. Repetitions are
/// short blanks and names; to look for longer ones takes time and makes the result no smaller.
fn compression(length: usize) -> Stream {
    let history = length.next_power_of_two().clamp(64 << 10, MOST_HISTORY);
    let mut options = LzmaOptions::new_preset(6).expect("xz has a preset 6");
    options.dict_size(u32::try_from(history).expect("4 MB fit 32 bits"));
    options.literal_context_bits(0).literal_position_bits(0).position_bits(0);
    options.mode(Mode::Normal).match_finder(MatchFinder::BinaryTree4).nice_len(16);
    Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc32).expect("xz has these options")
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
        let (block, after) = from.split_once(END).ok_or(EmbedError::Cut)?;
        let (encoding, encoded) = block.split_once(OPEN).ok_or(EmbedError::Cut)?;
        documents.push(decoded(encoding, encoded, LONGEST)?);
        rest = after;
    }
    Ok(documents)
}

fn decoded(encoding: &str, encoded: &str, longest: u64) -> Result<String, EmbedError> {
    let compressed = STANDARD.decode(encoded)?;
    let compressed = compressed.as_slice();
    let unpacked: Box<dyn Read + '_> = match encoding {
        XZ | NUMBERS => {
            let stream = Stream::new_stream_decoder(MOST_MEMORY, 0).map_err(io::Error::from)?;
            Box::new(XzDecoder::new_stream(compressed, stream))
        }
        GZIP => Box::new(GzDecoder::new(compressed)),
        other => return Err(EmbedError::Encoding(other.chars().take(40).collect())),
    };
    let mut bytes = Vec::new();
    unpacked.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Err(EmbedError::Long);
    }
    let text = String::from_utf8(bytes).map_err(|_| EmbedError::Text)?;
    if encoding != NUMBERS {
        return Ok(text);
    }
    numbers::unpacked(&text, usize::try_from(longest).unwrap_or(usize::MAX)).map_err(
        |problem| match problem {
            Unpacking::Damaged => EmbedError::Numbers,
            Unpacking::Long => EmbedError::Long,
        },
    )
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    /// The base64 in a block.
    fn inner(block: &str) -> &str {
        let (_, inner) = block.split_once(OPEN).unwrap();
        inner.split_once(END).unwrap().0
    }

    fn gzip_block(document: &str) -> String {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(document.as_bytes()).unwrap();
        format!("{START}{GZIP}{OPEN}{}{END}", STANDARD.encode(gzip.finish().unwrap()))
    }

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
        let damaged = |text: &str| format!("{START}{NUMBERS}{OPEN}{text}{END}");
        let bytes = STANDARD.decode(inner(&whole)).unwrap();
        let mut turned = bytes.clone();
        turned[bytes.len() / 2] ^= 1;
        for (page, expected) in [
            (whole[..whole.len() - 5].to_owned(), "truncated"),
            (START.to_owned(), "truncated"),
            (damaged("%%%"), "damaged"),
            (damaged(&STANDARD.encode("{}")), "damaged"),
            (damaged(&STANDARD.encode(&bytes[..12])), "damaged"),
            (damaged(&STANDARD.encode(&turned)), "damaged"),
            (whole.replace(NUMBERS, "brotli"), "does not read"),
        ] {
            assert!(is_report(&page));
            let error = extract(&page).unwrap_err().to_string();
            assert!(error.contains(expected), "{page}: {error}");
        }
    }

    #[test]
    fn what_unpacks_without_end_is_refused() {
        let text = " ".repeat(1000);
        for (encoding, block) in [(NUMBERS, block(&text)), (GZIP, gzip_block(&text))] {
            assert!(decoded(encoding, inner(&block), 1000).is_ok());
            assert!(matches!(decoded(encoding, inner(&block), 999), Err(EmbedError::Long)));
        }
    }

    #[test]
    fn memory_for_unpacking_is_bounded() {
        let mut options = LzmaOptions::new_preset(0).unwrap();
        options.dict_size(128 << 20);
        let stream = Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc32).unwrap();
        let mut xz = XzEncoder::new_stream(Vec::new(), stream);
        xz.write_all(b"{}").unwrap();
        let greedy = STANDARD.encode(xz.finish().unwrap());
        assert!(matches!(decoded(XZ, &greedy, LONGEST), Err(EmbedError::Compressed(_))));
    }

    proptest! {
        #[test]
        fn documents_come_back_byte_for_byte(
            documents in prop::collection::vec(("(?s).{0,300}", any::<bool>()), 0..4)
        ) {
            let blocks: Vec<String> = documents
                .iter()
                .map(|(document, is_old)| if *is_old { gzip_block(document) } else { block(document) })
                .collect();
            let page = format!("<html><body>{}</body></html>", blocks.join("<p>&lt;/script&gt;</p>\n"));
            let documents: Vec<String> = documents.into_iter().map(|(document, _)| document).collect();
            prop_assert_eq!(extract(&page).unwrap(), documents);
        }
    }
}
