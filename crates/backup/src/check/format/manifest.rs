//! The manifest of a base backup (`src/common/parse_manifest.c`; "Backup Manifest Format" in PostgreSQL's documentation).

use std::io;

use serde::Deserialize;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::archive::TooNew;
use super::wrong;

/// The beginning of the last line.
const LAST: &[u8] = b"\n\"Manifest-Checksum\": \"";
const END: &[u8] = b"\"}\n";
/// No server's WAL goes on beyond this position.
const LAST_POSITION: u64 = 1 << 63;
/// Bytes of WAL than which no backup needs more: 16 TiB.
const MOST_WAL: u64 = 1 << 44;

/// A manifest whose own checksum is right.
#[derive(Debug, Deserialize)]
pub(in crate::check) struct Manifest {
    #[serde(rename = "PostgreSQL-Backup-Manifest-Version")]
    version: u32,
    #[serde(rename = "System-Identifier")]
    pub(in crate::check) system_identifier: Option<u64>,
    #[serde(rename = "Files")]
    pub(in crate::check) files: Vec<Listed>,
    #[serde(rename = "WAL-Ranges")]
    pub(in crate::check) wal: Vec<WalRange>,
}

/// A file of the backup.
#[derive(Debug, Deserialize)]
pub(in crate::check) struct Listed {
    #[serde(rename = "Path")]
    path: Option<String>,
    /// Bytes that are not UTF-8, as hexadecimal digits.
    #[serde(rename = "Encoded-Path")]
    encoded: Option<String>,
    #[serde(rename = "Size")]
    pub(in crate::check) size: u64,
    #[serde(rename = "Checksum-Algorithm")]
    algorithm: Option<String>,
    #[serde(rename = "Checksum")]
    checksum: Option<String>,
}

/// WAL that a restore needs.
#[derive(Clone, Debug, Deserialize)]
pub(in crate::check) struct WalRange {
    #[serde(rename = "Timeline")]
    pub(in crate::check) timeline: u32,
    #[serde(rename = "Start-LSN", deserialize_with = "position")]
    pub(in crate::check) start: u64,
    #[serde(rename = "End-LSN", deserialize_with = "position")]
    pub(in crate::check) end: u64,
}

fn position<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = lsn_of(&text);
    parsed.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a position in WAL")))
}

impl Manifest {
    /// Reads a manifest whose last line has the checksum of all lines before it.
    pub(in crate::check) fn read(bytes: &[u8]) -> io::Result<Self> {
        let last = bytes.windows(LAST.len()).rposition(|window| window == LAST);
        let at = last.ok_or_else(|| wrong("it ends without its own checksum: it is cut off or damaged"))? + 1;
        let recorded = bytes[at + LAST.len() - 1..].strip_suffix(END);
        let recorded = recorded.ok_or_else(|| wrong("its last line is cut off or damaged"))?;
        if hex(&Sha256::digest(&bytes[..at])).as_bytes() != recorded {
            return Err(wrong("its checksum differs from the one in its last line"));
        }
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| wrong(format!("its checksum is right, but {error}")))?;
        if !(1..=2).contains(&manifest.version) {
            return Err(io::Error::other(TooNew(manifest.version.to_string())));
        }
        let lengths = manifest.wal.iter().map(|range| range.end.saturating_sub(range.start));
        if lengths.fold(0, u64::saturating_add) > MOST_WAL {
            return Err(wrong("its checksum is right, but no backup needs as much WAL as it lists"));
        }
        Ok(manifest)
    }
}

impl Listed {
    /// Its path within the backup, with `/`.
    pub(in crate::check) fn path(&self) -> String {
        let decode = |digits: &String| {
            let bytes: Option<Vec<u8>> = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
                .collect();
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let path = self.path.clone().or_else(|| self.encoded.as_ref().and_then(decode));
        path.unwrap_or_default()
    }

    /// The checksum to compute; none if it has none.
    pub(in crate::check) fn checksum(&self) -> io::Result<Option<Checksum>> {
        Ok(match self.algorithm.as_deref() {
            None | Some("NONE") => None,
            Some("CRC32C") => Some(Checksum::Crc32c(0)),
            Some("SHA224") => Some(Checksum::Sha224(Sha224::new())),
            Some("SHA256") => Some(Checksum::Sha256(Sha256::new())),
            Some("SHA384") => Some(Checksum::Sha384(Sha384::new())),
            Some("SHA512") => Some(Checksum::Sha512(Box::new(Sha512::new()))),
            Some(other) => return Err(wrong(format!("checksums by {other} are not known: update pgrig"))),
        })
    }

    pub(in crate::check) fn agrees(&self, checksum: Checksum) -> bool {
        self.checksum.as_ref().is_some_and(|recorded| *recorded == checksum.hex())
    }
}

/// A checksum of a file, as far as it was read.
pub(in crate::check) enum Checksum {
    Crc32c(u32),
    Sha224(Sha224),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Box<Sha512>),
}

impl Checksum {
    pub(in crate::check) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc32c(sum) => *sum = crc32c::crc32c_append(*sum, bytes),
            Self::Sha224(sum) => sum.update(bytes),
            Self::Sha256(sum) => sum.update(bytes),
            Self::Sha384(sum) => sum.update(bytes),
            Self::Sha512(sum) => sum.update(bytes),
        }
    }

    fn hex(self) -> String {
        match self {
            // `pg_checksum_final` copies the bytes of the number.
            Self::Crc32c(sum) => hex(&sum.to_le_bytes()),
            Self::Sha224(sum) => hex(&sum.finalize()),
            Self::Sha256(sum) => hex(&sum.finalize()),
            Self::Sha384(sum) => hex(&sum.finalize()),
            Self::Sha512(sum) => hex(&sum.finalize()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A position in WAL, from its text: `0/2000028`.
pub(in crate::check) fn lsn_of(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let [high, low] = [high, low].map(|part| u32::from_str_radix(part, 16).ok());
    let position = u64::from(high?) << 32 | u64::from(low?);
    (position <= LAST_POSITION).then_some(position)
}

/// A position in WAL as PostgreSQL writes it.
pub(in crate::check) fn lsn(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(body: &str) -> Vec<u8> {
        let sum = hex(&Sha256::digest(body.as_bytes()));
        format!("{body}\"Manifest-Checksum\": \"{sum}\"}}\n").into_bytes()
    }

    const BODY: &str = "{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [\n\
        { \"Path\": \"PG_VERSION\", \"Size\": 3, \"Last-Modified\": \"x\", \"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"00\" },\n\
        { \"Encoded-Path\": \"612f62\", \"Size\": 0, \"Last-Modified\": \"x\" }\n],\n\
        \"WAL-Ranges\": [\n{ \"Timeline\": 1, \"Start-LSN\": \"1/2000028\", \"End-LSN\": \"1/2000100\" }\n],\n";

    #[test]
    fn a_manifest_is_read() {
        let found = Manifest::read(&manifest(BODY)).unwrap();
        assert_eq!(found.files[1].path(), "a/b");
        assert_eq!((found.wal[0].start, lsn(found.wal[0].end).as_str()), (0x1_0200_0028, "1/2000100"));
    }

    #[test]
    fn wal_that_no_backup_has_is_damage() {
        for (start, end) in
            [("1/2000028", "FFFFFFFF/FFFFFFFF"), ("1/2000028", "1001/2000029"), ("0/0", "1G/0")]
        {
            let body = BODY.replace("1/2000028", start).replace("1/2000100", end);
            assert!(Manifest::read(&manifest(&body)).is_err(), "{start} {end}");
        }
        assert_eq!((lsn_of("1/28"), lsn_of("100000000/0"), lsn_of("1")), (Some(0x1_0000_0028), None, None));
    }

    #[test]
    fn any_other_byte_is_damage() {
        let bytes = manifest(BODY);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(Manifest::read(&flipped).is_err(), "byte {at}, bit {bit}");
            }
            assert!(Manifest::read(&bytes[..at]).is_err(), "cut to {at}");
        }
    }

    #[test]
    fn checksums_are_written_as_postgresql_writes_them() {
        let mut sum = Checksum::Crc32c(0);
        sum.update(b"1234");
        sum.update(b"56789");
        assert_eq!(sum.hex(), "839206e3");
    }
}
