//! Archives of pg_dump: header, table of contents, and the blocks of data in the custom format.
//!
//! As `src/bin/pg_dump/pg_backup_archiver.c` and `pg_backup_custom.c` read them.

use std::io::{self, Read};

use super::compression::Method;
use super::wrong;

pub(in crate::check) const MAGIC: &[u8] = b"PGDMP";
/// The versions of the format that pgrig knows: of PostgreSQL 9.0 to 18.
const OLDEST: (u8, u8) = (1, 12);
const NEWEST: (u8, u8) = (1, 16);
/// Versions that brought fields (`K_VERS_…`).
const TABLE_AM: u8 = 14;
const ALGORITHM: u8 = 15;
const RELATION_KIND: u8 = 16;
/// Formats in the header: directories call themselves tar.
const CUSTOM: u8 = 1;
const TAR: u8 = 3;
/// States of an offset (`K_OFFSET_…`).
const NOT_SET: u8 = 1;
const SET: u8 = 2;
const NO_DATA: u8 = 3;
/// No string can be longer: PostgreSQL's MaxAllocSize.
const LONGEST: u64 = 1 << 30;
const PIECE: usize = 64 << 10;
/// The kinds of blocks (`BLK_…`).
const DATA: u8 = 1;
const LARGE_OBJECTS: u8 = 3;

/// An archive that is read from its start.
pub(in crate::check) struct Archive<R> {
    input: R,
    /// Bytes read.
    pub(in crate::check) position: u64,
    int_size: usize,
    offset_size: usize,
    minor: u8,
    /// Bytes that remain of the present chunk of data, and whether it is the last one.
    chunk: u64,
    has_stream_ended: bool,
}

/// Header and table of contents.
#[derive(Debug)]
pub(in crate::check) struct Contents {
    pub(in crate::check) is_custom: bool,
    pub(in crate::check) method: Method,
    /// Version of the server.
    pub(in crate::check) server: String,
    pub(in crate::check) entries: Vec<Entry>,
    /// The encoding, as PostgreSQL names it.
    pub(in crate::check) encoding: String,
}

/// An entry of the table of contents.
#[derive(Clone, Debug)]
pub(in crate::check) struct Entry {
    pub(in crate::check) id: i64,
    pub(in crate::check) description: String,
    /// Name, with its schema.
    pub(in crate::check) name: String,
    /// The COPY statement, if it has data by COPY.
    pub(in crate::check) copy: Option<Vec<u8>>,
    pub(in crate::check) place: DataLocation,
}

/// The place of an entry's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::check) enum DataLocation {
    Nowhere,
    /// In a custom archive, at this byte, if pg_dump could write that.
    At(Option<u64>),
    /// In a file.
    File(String),
}

/// A problem with the version, which is not damage.
#[derive(Debug)]
pub(in crate::check) struct TooNew(pub(in crate::check) String);

impl std::fmt::Display for TooNew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "archive format {}", self.0)
    }
}

impl std::error::Error for TooNew {}

impl Entry {
    pub(in crate::check) fn is_large_objects(&self) -> bool {
        self.description.starts_with("BLOB")
    }

    /// As messages name it.
    pub(in crate::check) fn label(&self) -> String {
        if self.is_large_objects() { "large objects".to_owned() } else { format!("table {}", self.name) }
    }
}

impl<R: Read> Archive<R> {
    pub(in crate::check) fn new(input: R) -> Self {
        Self { input, position: 0, int_size: 4, offset_size: 8, minor: 0, chunk: 0, has_stream_ended: true }
    }

    /// Reads header and table of contents (`ReadHead`, `ReadToc`).
    pub(in crate::check) fn contents(&mut self) -> io::Result<Contents> {
        let mut magic = [0; 5];
        self.exact(&mut magic)?;
        if magic != MAGIC {
            return Err(wrong("it does not begin with PGDMP"));
        }
        let (major, minor, revision) = (self.byte()?, self.byte()?, self.byte()?);
        if major != 1 || (major, minor) < OLDEST || minor > 64 || revision > 64 {
            return Err(wrong(format!(
                "{major}.{minor}-{revision} is not a version of the archive format that pgrig knows"
            )));
        }
        if (major, minor) > NEWEST {
            return Err(io::Error::other(TooNew(format!("{major}.{minor}"))));
        }
        self.minor = minor;
        self.int_size = usize::from(self.byte()?);
        self.offset_size = usize::from(self.byte()?);
        if self.int_size != 4 || self.offset_size != 8 {
            return Err(wrong("its header has impossible sizes of numbers"));
        }
        let is_custom = match self.byte()? {
            CUSTOM => true,
            TAR => false,
            format => return Err(wrong(format!("its header has the unknown format {format}"))),
        };
        let method = self.method()?;
        self.date()?;
        let _database = self.string()?;
        let server = self.string()?.unwrap_or_default();
        let _program = self.string()?;
        let count = self.int()?;
        if count < 0 {
            return Err(wrong("its table of contents has a negative number of entries"));
        }
        let mut contents = Contents {
            is_custom,
            method,
            server: text(server),
            entries: Vec::new(),
            encoding: String::new(),
        };
        for number in 1..=count {
            let entry = self.entry(&mut contents);
            let entry = entry.map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => {
                    wrong(format!("entry {number} of the table of contents: {error}"))
                }
                _ => error,
            })?;
            contents.entries.push(entry);
        }
        Ok(contents)
    }

    fn method(&mut self) -> io::Result<Method> {
        if self.minor < ALGORITHM {
            return Ok(if self.int()? == 0 { Method::None } else { Method::Zlib });
        }
        Ok(match self.byte()? {
            0 => Method::None,
            1 => Method::Zlib,
            2 => Method::Lz4,
            3 => Method::Zstd,
            other => return Err(wrong(format!("its header has the unknown compression {other}"))),
        })
    }

    /// Second, minute, hour, day, month, year since 1900, summer time.
    fn date(&mut self) -> io::Result<()> {
        for most in [61, 59, 23, 31, 11, 1000, 1] {
            let value = self.int()?;
            if !(-1..=most).contains(&value) {
                return Err(wrong("its header has an impossible date"));
            }
        }
        Ok(())
    }

    fn entry(&mut self, contents: &mut Contents) -> io::Result<Entry> {
        let id = self.int()?;
        if id <= 0 {
            return Err(wrong("a number that is not positive"));
        }
        let has_data = self.flag()?;
        self.digits()?;
        self.digits()?;
        let tag = text(self.string()?.unwrap_or_default());
        let description = text(self.string()?.unwrap_or_default());
        if !(1..=4).contains(&self.int()?) {
            return Err(wrong("an unknown section"));
        }
        let definition = self.string()?;
        let _drop = self.string()?;
        let copy = self.string()?.filter(|copy| !copy.is_empty());
        let schema = text(self.string()?.unwrap_or_default());
        let _tablespace = self.string()?;
        if self.minor >= TABLE_AM {
            self.string()?;
        }
        if self.minor >= RELATION_KIND {
            self.int()?;
        }
        let _owner = self.string()?;
        let with_oids = self.string()?.unwrap_or_default();
        if !matches!(with_oids.as_slice(), b"" | b"true" | b"false") {
            return Err(wrong("an unknown flag of OIDs"));
        }
        while let Some(dependency) = self.string()? {
            if dependency.is_empty() || !dependency.iter().all(u8::is_ascii_digit) {
                return Err(wrong("a dependency that is not a number"));
            }
        }
        if description == "ENCODING" {
            let definition = text(definition.unwrap_or_default());
            definition.split('\'').nth(1).unwrap_or_default().clone_into(&mut contents.encoding);
        }
        let place = self.place(contents.is_custom, has_data)?;
        let name = if schema.is_empty() { tag } else { format!("{schema}.{tag}") };
        Ok(Entry { id, description, name, copy, place })
    }

    /// `ReadExtraToc` of the format.
    fn place(&mut self, is_custom: bool, has_data: bool) -> io::Result<DataLocation> {
        if !is_custom {
            let file = self.string()?.filter(|file| !file.is_empty());
            return match (has_data, file) {
                (true, Some(file)) => {
                    let file = text(file);
                    if file.contains('/') || file.starts_with('.') {
                        return Err(wrong(format!("the file name {file:?}")));
                    }
                    Ok(DataLocation::File(file))
                }
                (true, None) => Err(wrong("data without a file")),
                (false, None) => Ok(DataLocation::Nowhere),
                (false, Some(_)) => Err(wrong("a file without data")),
            };
        }
        let state = self.byte()?;
        let mut bytes = [0; 8];
        self.exact(&mut bytes)?;
        let offset = u64::from_le_bytes(bytes);
        match (state, has_data) {
            (NO_DATA | NOT_SET, false) => Ok(DataLocation::Nowhere),
            (NOT_SET, true) => Ok(DataLocation::At(None)),
            (SET, true) => Ok(DataLocation::At(Some(offset))),
            _ => Err(wrong("an impossible place of its data")),
        }
    }

    /// The next block of a custom archive: whether it holds large objects, and the number of its entry. None at the end.
    pub(in crate::check) fn block(&mut self) -> io::Result<Option<(bool, i64)>> {
        let mut kind = [0];
        if self.some(&mut kind)? == 0 {
            return Ok(None);
        }
        let is_large_objects = match kind[0] {
            DATA => false,
            LARGE_OBJECTS => true,
            kind => return Err(wrong(format!("a block of data has the unknown kind {kind}"))),
        };
        Ok(Some((is_large_objects, self.int()?)))
    }

    /// The next stream.
    pub(in crate::check) fn stream(&mut self) -> Chunks<'_, R> {
        self.has_stream_ended = false;
        self.chunk = 0;
        Chunks(self)
    }

    /// Reads the rest of the present stream, whatever it holds.
    pub(in crate::check) fn skip_stream(&mut self) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        while Chunks(self).read(&mut piece)? > 0 {}
        Ok(())
    }

    pub(in crate::check) fn int(&mut self) -> io::Result<i64> {
        let sign = self.byte()?;
        let mut bytes = [0; 4];
        self.exact(&mut bytes)?;
        let value = i64::from(u32::from_le_bytes(bytes));
        match sign {
            0 => Ok(value),
            1 => Ok(-value),
            _ => Err(wrong("a number has neither sign")),
        }
    }

    fn flag(&mut self) -> io::Result<bool> {
        match self.int()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(wrong("a flag is neither 0 nor 1")),
        }
    }

    fn digits(&mut self) -> io::Result<()> {
        let text = self.string()?.unwrap_or_default();
        if text.iter().all(u8::is_ascii_digit) { Ok(()) } else { Err(wrong("an OID that is not a number")) }
    }

    fn string(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Ok(length) = u64::try_from(self.int()?) else { return Ok(None) };
        if length > LONGEST {
            return Err(wrong("a text is longer than 1 GiB"));
        }
        let mut read = Vec::new();
        // Not at once: a damaged length must not take memory for bytes that are not there.
        self.input.by_ref().take(length).read_to_end(&mut read)?;
        self.position += read.len() as u64;
        if (read.len() as u64) < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if read.contains(&0) {
            return Err(wrong("a text contains a byte NUL"));
        }
        Ok(Some(read))
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.exact(&mut byte)?;
        Ok(byte[0])
    }

    fn exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.input.read_exact(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn some(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.position += read as u64;
        Ok(read)
    }

    /// Whether nothing follows.
    pub(in crate::check) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.some(&mut [0])? == 0)
    }
}

/// The bytes of a stream within a custom archive: chunks with their length, the last of which is empty.
pub(in crate::check) struct Chunks<'a, R>(&'a mut Archive<R>);

impl<R: Read> Read for Chunks<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let archive = &mut *self.0;
        if archive.has_stream_ended || buffer.is_empty() {
            return Ok(0);
        }
        if archive.chunk == 0 {
            let length = archive.int()?;
            archive.chunk =
                u64::try_from(length).map_err(|_| wrong("a chunk of data has a negative length"))?;
            if archive.chunk == 0 {
                archive.has_stream_ended = true;
                return Ok(0);
            }
        }
        let most = usize::try_from(archive.chunk).unwrap_or(usize::MAX).min(buffer.len());
        let read = archive.some(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        archive.chunk -= read as u64;
        Ok(read)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
