//! Files that are read as a whole: run documents, scripts, SQL, TOML.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use measure::human::bytes;
use server::quote::shell_word;

/// Longest file, bytes. The document of a run of a day, with a line for every second, takes a tenth
/// of it.
const LONGEST: u64 = 256 << 20;
/// Bytes of one read. It is small, so that the limit is soon noticed on an endless device.
const PIECE: u64 = 1 << 20;
/// The first bytes of the archives of pg_dump: custom format (pg_backup_archiver.c) and tar.
const ARCHIVES: [&[u8]; 2] = [b"PGDMP", b"toc.dat\0"];
/// The error for an archive of pg_dump.
const ARCHIVE: &str = "it is an archive of pg_dump";
/// The beginning of the error for a compressed file.
const COMPRESSED: &str = "it is compressed";
/// The first bytes of compressed files, and the programs that decompress them.
const COMPRESSIONS: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
];
/// The mark that some editors begin UTF-8 with.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a text file. A name of `-` is a file like any other. A pipe can be read only once, so its text is kept.
pub(crate) fn file(path: &Path) -> Result<String, String> {
    static PIPES: Mutex<BTreeMap<PathBuf, Result<String, String>>> = Mutex::new(BTreeMap::new());
    if !path.metadata().is_ok_and(|found| found.file_type().is_fifo()) {
        return text_of(path);
    }
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    pipes.entry(path.to_owned()).or_insert_with(|| text_of(path)).clone()
}

fn text_of(path: &Path) -> Result<String, String> {
    File::open(path)
        .and_then(
            |file| if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) },
        )
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "the file does not exist; check the path".to_owned(),
            io::ErrorKind::IsADirectory => "it is a directory; give a file".to_owned(),
            io::ErrorKind::PermissionDenied => "this user may not read it; check its permissions".to_owned(),
            _ => error.to_string(),
        })
        .and_then(text)
        .map_err(|error| {
            let is_compressed = error.starts_with(COMPRESSED);
            let name = || shell_word(&path.to_string_lossy());
            if is_compressed { error.replace("FILE", &name()) } else { error }
        })
}

/// Reads a text file; `-` is standard input, which is read once and kept.
pub(crate) fn file_or_stdin(path: &Path) -> Result<String, String> {
    static STDIN: OnceLock<Result<String, String>> = OnceLock::new();
    if is_stdin(path) { STDIN.get_or_init(|| text(io::stdin())).clone() } else { file(path) }
}

/// Whether the name means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of a file in messages.
pub(crate) fn shown(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// The error of a file with the SQL of a schema; for an archive of pg_dump with the command that writes this SQL.
pub(crate) fn for_schema(error: String, path: &Path) -> String {
    let name = if is_stdin(path) { "FILE".into() } else { path.to_string_lossy() };
    let name = shell_word(&name);
    for_archive(
        error,
        &format!(": to write its schema as SQL, run pg_restore --schema-only -f schema.sql {name}"),
    )
}

/// The error of a file with a model; for an archive of pg_dump with the way to a model.
pub(crate) fn for_model(error: String) -> String {
    for_archive(error, ", not a model: restore it, then run pgrig model capture")
}

/// The error of a file with runs; for an archive of pg_dump with the command that lists the runs.
pub(crate) fn for_runs(error: String) -> String {
    for_archive(error, ", not a run: pgrig runs list shows the runs")
}

fn for_archive(error: String, remedy: &str) -> String {
    if error == ARCHIVE { error + remedy } else { error }
}

/// Reads a text to its end, without a byte order mark.
pub(crate) fn text(input: impl Read) -> Result<String, String> {
    let mut input = input.take(LONGEST + 1);
    let mut read = Vec::new();
    loop {
        let before = read.len();
        let new = input.by_ref().take(PIECE).read_to_end(&mut read).map_err(|error| error.to_string())?;
        if new == 0 {
            break;
        }
        if let Some(at) = read[before..].iter().position(|byte| *byte == 0) {
            return Err(not_text(&read, before + at + 1));
        }
        if read.len() as u64 > LONGEST {
            return Err(format!("it is longer than {}", bytes(LONGEST)));
        }
    }
    let text = String::from_utf8(read).map_err(|error| {
        let byte = error.utf8_error().valid_up_to() + 1;
        compressed(error.as_bytes()).unwrap_or_else(|| {
            format!(
                "it is not UTF-8 text (byte {byte}): convert it, for example with iconv -f LATIN1 -t UTF-8"
            )
        })
    })?;
    Ok(match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The error of a file that begins like a compressed one.
fn compressed(read: &[u8]) -> Option<String> {
    let (_, program) = COMPRESSIONS.into_iter().find(|(magic, _)| read.starts_with(magic))?;
    Some(format!("{COMPRESSED}: decompress it (for example with {program} -dk FILE), and give the result"))
}

/// Why bytes are no text, of which this one, counted from 1, is NUL.
fn not_text(read: &[u8], byte: usize) -> String {
    if let Some(error) = compressed(read) {
        return error;
    }
    if ARCHIVES.iter().any(|archive| read.starts_with(archive)) {
        ARCHIVE.to_owned()
    } else if read.starts_with(&[0xff, 0xfe]) || read.starts_with(&[0xfe, 0xff]) {
        "it is in UTF-16: convert it with iconv -f UTF-16 -t UTF-8".to_owned()
    } else {
        format!("it is not text: byte {byte} is NUL")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        assert_eq!(text("\u{feff}SELECT 1".as_bytes()), Ok("SELECT 1".to_owned()));
        assert_eq!(text("\u{feff}\u{feff}x".as_bytes()), Ok("\u{feff}x".to_owned()));
        assert_eq!(text(&b""[..]), Ok(String::new()));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let utf16 = &b"\xff\xfea\0"[..];
        for (given, said) in [
            (&b"a\0b"[..], "byte 2 is NUL"),
            (utf16, "it is in UTF-16"),
            (&b"PGDMP\x01\x0e\0"[..], "it is an archive of pg_dump"),
            (&b"toc.dat\0\0"[..], "it is an archive of pg_dump"),
            (&b"ab\xff"[..], "not UTF-8 text (byte 3)"),
            (&b"\x1f\x8b\x08\0"[..], "it is compressed: decompress it (for example with gzip -dk FILE)"),
            (&b"\x28\xb5\x2f\xfdx"[..], "with zstd -dk FILE"),
        ] {
            let error = text(given).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert!(text(io::repeat(0)).unwrap_err().contains("byte 1 is NUL"));
        assert!(text(io::repeat(b' ')).unwrap_err().contains("longer than"));
        assert!(file(Path::new("/dev/zero")).unwrap_err().contains("NUL"));
        assert!(file(Path::new("/")).unwrap_err().contains("directory"));
    }

    #[test]
    fn a_pipe_is_read_once_and_a_compressed_file_is_named() {
        let place = tempfile::tempdir().unwrap();
        let packed = place.path().join("my shop.gz");
        std::fs::write(&packed, b"\x1f\x8b\x08\0").unwrap();
        let error = file(&packed).unwrap_err();
        assert!(error.contains(&format!("gzip -dk '{}'", packed.display())), "{error}");
        let pipe = place.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "SELECT 1").unwrap()
        });
        assert_eq!(file(&pipe), Ok("SELECT 1".to_owned()));
        writer.join().unwrap();
        assert_eq!(file(&pipe), Ok("SELECT 1".to_owned()));
    }

    #[test]
    fn the_remedy_for_an_archive_depends_on_the_wanted_file() {
        let archive = || text(&b"PGDMP\x01\x0e\0"[..]).unwrap_err();
        for (path, said) in [("-", "schema.sql FILE"), ("my shop.dump", "schema.sql 'my shop.dump'")] {
            let error = for_schema(archive(), Path::new(path));
            assert!(error.contains(": to write its schema as SQL, run pg_restore "), "{error}");
            assert!(error.ends_with(said), "{error}");
        }
        assert!(for_model(archive()).ends_with("then run pgrig model capture"));
        assert!(for_runs(archive()).ends_with("pgrig runs list shows the runs"));
        assert_eq!(for_runs("it is a directory".to_owned()), "it is a directory");
    }
}
