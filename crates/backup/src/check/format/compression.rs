//! Compressed streams: frames one after the other, each of them read to its end mark.
//!
//! Some decoders of libraries take a stream that ends early for its end; here that is an error.

use std::cell::Cell;
use std::io::{self, BufRead, Chain, Cursor, Read};
use std::rc::Rc;

use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use lz4_flex::frame::FrameDecoder;

use super::wrong;

/// Bytes of a frame's beginning that tell its method, and whether it has a checksum.
const HEAD: usize = 5;
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const LZ4: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// The last three bytes of a skippable frame's mark; the first one is 0x50 to 0x5f (RFC 8878, 3.1.2). pzstd writes one before each frame.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Bits of a frame's descriptor: it has a checksum of its content (`Content_Checksum_flag` of RFC 8878; `C.Checksum` of lz4's frames).
const HAS_CHECKSUM: u8 = 1 << 2;

/// Method of compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::check) enum Method {
    #[default]
    None,
    Gzip,
    /// As `Gzip`, with the frame of archives of pg_dump.
    Zlib,
    Zstd,
    Lz4,
}

impl Method {
    /// That of a file that begins so.
    pub(in crate::check) fn of(head: &[u8]) -> Self {
        match head {
            head if head.starts_with(&GZIP) => Self::Gzip,
            head if head.starts_with(&ZSTD) => Self::Zstd,
            head if head.starts_with(&LZ4) => Self::Lz4,
            // pzstd begins so; lz4's programs do not.
            head if is_skippable(head) => Self::Zstd,
            _ => Self::None,
        }
    }

    /// That of a file with this name.
    pub(in crate::check) fn of_name(name: &str) -> Self {
        match name.rsplit_once('.') {
            Some((_, "gz" | "tgz")) => Self::Gzip,
            Some((_, "zst" | "zstd")) => Self::Zstd,
            Some((_, "lz4")) => Self::Lz4,
            _ => Self::None,
        }
    }

    pub(in crate::check) fn name(self) -> &'static str {
        match self {
            Self::None => "not compressed",
            Self::Gzip | Self::Zlib => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }
}

/// The content of a compressed stream.
pub(in crate::check) struct Frames<R: BufRead> {
    method: Method,
    state: FrameState<R>,
    is_first: bool,
    covered: Rc<Cell<bool>>,
}

type Headed<R> = Chain<Cursor<Vec<u8>>, R>;

enum FrameState<R: BufRead> {
    Raw(R),
    Between(R),
    Zlib(Box<Zlib<R>>),
    Gzip(Box<GzDecoder<Headed<R>>>),
    Zstd(Box<zstd::Decoder<'static, Headed<R>>>),
    Lz4(Box<FrameDecoder<Ends<Headed<R>>>>),
    Failed,
}

impl<R: BufRead> Frames<R> {
    pub(in crate::check) fn new(method: Method, input: R) -> Self {
        let (state, covered) = match method {
            Method::None => (FrameState::Raw(input), false),
            _ => (FrameState::Between(input), true),
        };
        Self { method, state, is_first: true, covered: Rc::new(Cell::new(covered)) }
    }

    /// Whether each frame so far has a checksum of its content.
    pub(in crate::check) fn covered(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.covered)
    }

    /// The frame that begins here; none at the end.
    fn begin(&mut self, mut input: R) -> io::Result<Option<FrameState<R>>> {
        if input.fill_buf()?.is_empty() {
            self.state = FrameState::Between(input);
            return Ok(None);
        }
        let is_first = std::mem::replace(&mut self.is_first, false);
        if self.method == Method::Zlib {
            return if is_first {
                Ok(Some(FrameState::Zlib(Box::new(Zlib::new(input)))))
            } else {
                Err(after())
            };
        }
        let mut head = Vec::new();
        input.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        if self.method == Method::Zstd && is_skippable(&head) {
            skip(&head, &mut input)?;
            self.is_first = is_first;
            return self.begin(input);
        }
        if Method::of(&head) != self.method {
            let text = format!("it does not begin as {}", self.method.name());
            return Err(if is_first { wrong(text) } else { after() });
        }
        let descriptor = head.get(HEAD - 1).copied().unwrap_or_default();
        let chained = Cursor::new(head).chain(input);
        if self.method != Method::Gzip && descriptor & HAS_CHECKSUM == 0 {
            self.covered.set(false);
        }
        Ok(Some(match self.method {
            Method::Gzip => FrameState::Gzip(Box::new(GzDecoder::new(chained))),
            Method::Zstd => FrameState::Zstd(Box::new(zstd::Decoder::with_buffer(chained)?.single_frame())),
            _ => FrameState::Lz4(Box::new(FrameDecoder::new(Ends { input: chained, has_ended: false }))),
        }))
    }
}

fn is_skippable(head: &[u8]) -> bool {
    head.len() >= 4 && head[0] >> 4 == 5 && head[1..4] == SKIPPABLE
}

/// Skips the frame that begins so: after the mark come its length, four bytes, and as many bytes.
fn skip(head: &[u8], input: &mut impl Read) -> io::Result<()> {
    let mut length = [0; 4];
    let known = &head[SKIPPABLE.len() + 1..];
    length[..known.len()].copy_from_slice(known);
    input.read_exact(&mut length[known.len()..])?;
    let length = u64::from(u32::from_le_bytes(length));
    if io::copy(&mut input.take(length), &mut io::sink())? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn after() -> io::Error {
    wrong("other bytes follow the end of the compressed data")
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let read = match &mut self.state {
                FrameState::Raw(input) => return input.read(buffer),
                FrameState::Failed => return Err(wrong("the compressed data are damaged")),
                FrameState::Between(_) => 0,
                FrameState::Zlib(decoder) => decoder.read(buffer)?,
                FrameState::Gzip(decoder) => decoder.read(buffer)?,
                FrameState::Zstd(decoder) => decoder.read(buffer)?,
                FrameState::Lz4(decoder) => decoder.read(buffer)?,
            };
            if read > 0 {
                return Ok(read);
            }
            let input = match std::mem::replace(&mut self.state, FrameState::Failed) {
                FrameState::Raw(input) | FrameState::Between(input) => input,
                FrameState::Zlib(decoder) => decoder.input,
                FrameState::Gzip(decoder) => decoder.into_inner().into_inner().1,
                FrameState::Zstd(decoder) => decoder.finish().into_inner().1,
                FrameState::Lz4(decoder) => {
                    let Ends { input, has_ended } = decoder.into_inner();
                    if has_ended {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    input.into_inner().1
                }
                FrameState::Failed => continue,
            };
            match self.begin(input)? {
                Some(state) => self.state = state,
                None => return Ok(0),
            }
        }
    }
}

/// Notes whether the reader met the end of the input: `FrameDecoder` takes that between two blocks for the end of the frame.
struct Ends<R> {
    input: R,
    has_ended: bool,
}

impl<R: Read> Read for Ends<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.has_ended |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

/// A zlib stream, whose end and checksum must be there. `flate2::read::ZlibDecoder` takes the end of the input for the end of the stream.
struct Zlib<R> {
    input: R,
    state: Decompress,
    has_ended: bool,
}

impl<R: BufRead> Zlib<R> {
    fn new(input: R) -> Self {
        Self { input, state: Decompress::new(true), has_ended: false }
    }
}

impl<R: BufRead> Read for Zlib<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.has_ended {
            let input = self.input.fill_buf()?;
            let is_end = input.is_empty();
            let (before_in, before_out) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(input, buffer, FlushDecompress::None);
            let status = status.map_err(|_| wrong("the compressed data are damaged"))?;
            let [consumed, written] =
                [self.state.total_in() - before_in, self.state.total_out() - before_out]
                    .map(|bytes| usize::try_from(bytes).unwrap_or_default());
            self.input.consume(consumed);
            self.has_ended = status == Status::StreamEnd;
            if written > 0 {
                return Ok(written);
            }
            if is_end && !self.has_ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn text() -> Vec<u8> {
        (0..16_000_u32)
            .flat_map(|number| format!("{}\n", number.wrapping_mul(2_654_435_761)).into_bytes())
            .collect()
    }

    fn packed(method: Method, has_checksum: bool) -> Vec<u8> {
        let text = text();
        match method {
            Method::None => text,
            Method::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            }
            Method::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            }
            Method::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
                encoder.include_checksum(has_checksum).unwrap();
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            }
            Method::Lz4 => {
                let info = lz4_flex::frame::FrameInfo::new().content_checksum(has_checksum);
                let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    fn read(method: Method, bytes: &[u8]) -> (io::Result<Vec<u8>>, bool) {
        let mut frames = Frames::new(method, bytes);
        let mut found = Vec::new();
        let result = frames.read_to_end(&mut found).map(|_| found);
        (result, frames.covered().get())
    }

    const ALL: [Method; 4] = [Method::Gzip, Method::Zlib, Method::Zstd, Method::Lz4];

    #[test]
    fn streams_are_read_and_say_whether_a_checksum_covers_them() {
        for method in ALL {
            for has_checksum in [true, false] {
                let (found, covered) = read(method, &packed(method, has_checksum));
                assert!(found.unwrap() == text(), "{method:?}");
                let always = matches!(method, Method::Gzip | Method::Zlib);
                assert_eq!(covered, has_checksum || always, "{method:?}");
            }
        }
        let two = [packed(Method::Zstd, true), packed(Method::Zstd, false)].concat();
        let (found, covered) = read(Method::Zstd, &two);
        assert!(found.unwrap().len() == 2 * text().len() && !covered);
    }

    /// As pzstd writes them: a skippable frame with the length of the next one before each frame.
    #[test]
    fn skippable_frames_are_skipped() {
        let frame = packed(Method::Zstd, true);
        let mark = |length: usize| {
            let length = u32::try_from(length).unwrap().to_le_bytes();
            [&[0x50][..], &SKIPPABLE, &4_u32.to_le_bytes(), &length].concat()
        };
        let two = [mark(frame.len()), frame.clone(), mark(frame.len()), frame].concat();
        assert_eq!(Method::of(&two), Method::Zstd);
        let (found, covered) = read(Method::Zstd, &two);
        assert!(found.unwrap().len() == 2 * text().len() && covered);
        assert!(read(Method::Zstd, &two[..9]).0.is_err());
    }

    #[test]
    fn a_stream_that_is_cut_anywhere_is_damaged() {
        for method in ALL {
            for has_checksum in [true, false] {
                let bytes = packed(method, has_checksum);
                for part in 1..23 {
                    let cut = &bytes[..bytes.len() * part / 23];
                    assert!(
                        read(method, cut).0.is_err(),
                        "{method:?} cut to {} of {}",
                        cut.len(),
                        bytes.len()
                    );
                }
                for cut in 1..12 {
                    assert!(
                        read(method, &bytes[..bytes.len() - cut]).0.is_err(),
                        "{method:?} without the last {cut}"
                    );
                }
                let longer = [&bytes[..], b"x"].concat();
                assert!(read(method, &longer).0.is_err(), "{method:?} with a byte more");
            }
        }
    }

    /// lz4 may end with any block, as no block says whether it is the last one.
    #[test]
    fn an_lz4_frame_that_is_cut_between_two_blocks_is_damaged() {
        let bytes = packed(Method::Lz4, false);
        let mut at = 7;
        loop {
            let size = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
            assert!(read(Method::Lz4, &bytes[..at]).0.is_err(), "cut to {at}");
            if size == 0 {
                break;
            }
            at += 4 + size as usize;
        }
    }

    #[test]
    fn a_flipped_bit_under_a_checksum_is_noticed() {
        for method in ALL {
            let bytes = packed(method, true);
            for step in 0..40 {
                // Behind gzip's own fields, whose time and system no checksum covers.
                let at = 10 + step * (bytes.len() - 10) / 40;
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (step % 8);
                let (found, covered) = read(method, &flipped);
                assert!(found.is_err() || !covered, "{method:?}, byte {at}");
            }
        }
    }
}
