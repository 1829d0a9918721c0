//! Finds cause and remedy in a server's last messages, or in the system's error.

use crate::Error;
use nix::sys::statvfs::{FsFlags, statvfs};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The decisive line of the log, and the remedy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub(crate) cause: String,
    remedy: &'static str,
}

impl Explanation {
    /// The remedy for the server of this instance.
    pub(crate) fn remedy(&self, instance: &str) -> String {
        match self.written_by_hand().filter(|_| self.remedy == BAD_SETTING) {
            Some((file, line)) => format!("correct line {line} of {file}"),
            None => self.remedy.replace(INSTANCE, instance),
        }
    }

    /// The remedy for a server of this instance that does not start: its own data may have filled the disk.
    pub(crate) fn remedy_of_start(&self, instance: &str) -> String {
        let remedy = self.remedy(instance);
        if self.remedy == MAKE_ROOM {
            format!(
                "{remedy}, or delete the instance with its data (pgrig server destroy --instance {instance})"
            )
        } else {
            remedy
        }
    }

    /// The file and the line of the cause, if the file is not pgrig's own, which has the settings of `--set`.
    fn written_by_hand(&self) -> Option<(&str, &str)> {
        let (_, rest) = self.cause.split_once(" in file \"")?;
        let (file, rest) = rest.split_once("\" line ")?;
        let line = rest.split(|c: char| !c.is_ascii_digit()).next().filter(|line| !line.is_empty())?;
        (!file.ends_with("/pgrig.conf")).then_some((file, line))
    }
}

/// Stands for the name of the instance in remedies.
const INSTANCE: &str = "{instance}";

/// The remedy of a full disk.
const MAKE_ROOM: &str = "free some space on that disk, or set PGRIG_HOME to another one";
/// A full disk.
const FULL: &str = "No space left on device";

/// Words of PostgreSQL's (and of the system's) messages → remedy. The first that occurs counts.
/// pgrig's servers speak English (`lc_messages` is C).
const KNOWN: [(&str, &str); 21] = [
    (FULL, MAKE_ROOM),
    ("unrecognized configuration parameter", BAD_SETTING),
    ("syntax error in file", BAD_SETTING),
    ("invalid value for parameter", BAD_SETTING),
    ("outside the valid range for parameter", BAD_SETTING),
    ("requires a numeric value", BAD_SETTING),
    ("requires a Boolean value", BAD_SETTING),
    ("cannot be changed", BAD_SETTING),
    ("requires \"wal_level\"", BAD_SETTING),
    ("requires wal_level", BAD_SETTING),
    (
        "could not access file",
        "correct shared_preload_libraries and similar settings (--set), or install the extension",
    ),
    (
        SHARED_MEMORY_IN_USE,
        "processes of the previous server still run: end them (ps -ef | grep postgres), then start again",
    ),
    (
        "could not map anonymous shared memory",
        "shared_buffers is larger than the free memory: give --set shared_buffers=128MB",
    ),
    (
        "could not create shared memory segment",
        "the kernel's limits on shared memory are too low: give --set shared_buffers=128MB",
    ),
    (
        "could not resize shared memory segment",
        "/dev/shm is too small: make it larger (containers: --shm-size), or give --set dynamic_shared_memory_type=mmap",
    ),
    (
        "Address already in use",
        "another process uses that port or socket: end it, or use another instance (--instance OTHER)",
    ),
    ("could not create any TCP/IP sockets", "another process uses that port: end it, or leave out --tcp"),
    (
        "has wrong ownership",
        "give the data directory back to the account that the server ran under (chown -R)",
    ),
    ("has invalid permissions", "run chmod 0700 on the data directory"),
    ("Permission denied", "let the server's account read and write the named file"),
    (
        "could not locate a valid checkpoint record",
        "the data is damaged: restore it, or delete the instance (pgrig server destroy --instance {instance})",
    ),
];

pub(crate) const BAD_SETTING: &str = "correct that setting (--set name=value)";
/// The remedy of a failed start if its log has nothing that pgrig knows.
pub const READ_LOG: &str = "read its log";
const SHARED_MEMORY_IN_USE: &str = "pre-existing shared memory block";

/// Explains the output of a failed server or initdb. `free` is the number of free bytes on its
/// disk: if there are none, even the message about that is lost.
pub(crate) fn explain(output: &str, free: Option<u64>) -> Explanation {
    if let Some((line, remedy)) = known(output) {
        let cause = message(line).to_owned();
        return Explanation { cause, remedy };
    }
    if free.is_some_and(|bytes| bytes < 1 << 20) {
        return Explanation { cause: FULL.to_owned(), remedy: MAKE_ROOM };
    }
    let cause = last_words(output).unwrap_or_else(|| "the program printed no message".to_owned());
    let remedy = if output.contains("error while loading shared libraries") {
        "install that library, or use an installed PostgreSQL (--pg-bin DIR)"
    } else {
        READ_LOG
    };
    Explanation { cause, remedy }
}

/// The remedy for a server that has ended by itself, from its last words. What filled the disk is there after it: the data, and the WAL that the
/// next start needs.
pub(crate) fn remedy_of_end(cause: &str, instance: &str) -> String {
    if !cause.contains(FULL) {
        return "the next start recovers it".to_owned();
    }
    format!(
        "the next start recovers it, if there is some space on that disk: free some, or delete the instance with its data (pgrig server destroy \
         --instance {instance}); then repeat the command with less data"
    )
}

/// Why a program could not be run.
pub(crate) fn not_run(program: &Path, source: io::Error) -> Error {
    let program = program.to_owned();
    match noexec_mount(&program) {
        Some(mount) if source.kind() == io::ErrorKind::PermissionDenied => Error::NoExec { program, mount },
        _ => Error::Run { program, source },
    }
}

/// Mount point of this file's file system, if it is mounted noexec.
pub(crate) fn noexec_mount(file: &Path) -> Option<PathBuf> {
    if !statvfs(file).ok()?.flags().contains(FsFlags::ST_NOEXEC) {
        return None;
    }
    let file = file.canonicalize().ok()?;
    let device = fs::metadata(&file).ok()?.dev();
    let is_on_it = |path: &&Path| fs::metadata(path).is_ok_and(|meta| meta.dev() == device);
    file.ancestors().take_while(is_on_it).last().map(Path::to_owned)
}

/// Whether processes of a killed server still hold its shared memory. It is the only failure that
/// waiting cures.
pub(crate) fn is_shared_memory_in_use(output: &str) -> bool {
    output.contains(SHARED_MEMORY_IN_USE)
}

/// `lock file "postmaster.pid" already exists`.
pub(crate) fn is_already_running(output: &str) -> bool {
    output.contains("lock file") && output.contains("already exists")
}

/// Whether the port is taken. It was free a moment before.
pub(crate) fn is_port_in_use(output: &str) -> bool {
    output.contains("Address already in use")
}

/// The file, below the data directory, that crash recovery could not create since it is there.
pub(crate) fn unexpected_file(output: &str) -> Option<&str> {
    let line = output.lines().rfind(|line| line.contains("FATAL:") && line.ends_with(": File exists"))?;
    let (_, rest) = line.split_once("could not create file \"")?;
    rest.split_once('"').map(|(file, _)| file)
}

/// How the server refuses a session that comes while it starts, recovers or ends.
const REFUSAL: &str = "FATAL:  the database system is ";

/// The last PANIC message, or how a child died, or the last FATAL message, or else the last line.
pub(crate) fn last_words(output: &str) -> Option<String> {
    // After a child's death, those who connect get a FATAL that explains nothing.
    ["PANIC:", "was terminated by signal", "FATAL:"]
        .iter()
        .find_map(|words| output.lines().rfind(|line| line.contains(words) && !line.contains(REFUSAL)))
        .or_else(|| output.lines().rfind(|line| !line.trim().is_empty()))
        .map(|line| message(line).to_owned())
}

fn known(output: &str) -> Option<(&str, &'static str)> {
    KNOWN.iter().find_map(|(words, remedy)| {
        let line = output.lines().find(|line| line.contains(words))?;
        Some((line, *remedy))
    })
}

/// The message without timestamp and severity.
fn message(line: &str) -> &str {
    let message = ["FATAL:", "PANIC:", "ERROR:", "LOG:", "initdb: error:"]
        .iter()
        .find_map(|severity| line.split_once(severity))
        .map_or(line, |(_, message)| message)
        .trim();
    // The end of a message of several lines: "Expected to find the database system in the directory …, but …".
    message.strip_prefix("but ").unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_setting_is_named() {
        let log = "2026-11-21 19:00:00 UTC [7] LOG:  unrecognized configuration parameter \"wurk_mem\" in file \"x\" line 4\n\
                   2026-11-21 19:00:00 UTC [7] FATAL:  configuration file \"x\" contains errors\n";
        let found = explain(log, None);
        assert!(found.cause.starts_with("unrecognized configuration parameter \"wurk_mem\""));
        assert!(found.remedy.contains("--set"));
    }

    #[test]
    fn a_setting_written_by_hand_is_corrected_in_its_file() {
        for (cause, told) in [
            (
                "unrecognized configuration parameter \"bogus\" in file \"/d/postgresql.conf\" line 893",
                "correct line 893 of /d/postgresql.conf",
            ),
            (
                "syntax error in file \"/d/postgresql.conf\" line 7, near token \"x\"",
                "correct line 7 of /d/postgresql.conf",
            ),
            ("unrecognized configuration parameter \"a\" in file \"/d/pgrig.conf\" line 4", BAD_SETTING),
            ("invalid value for parameter \"work_mem\": \"x\"", BAD_SETTING),
        ] {
            assert_eq!(explain(&format!("t [7] LOG:  {cause}\n"), None).remedy("default"), told, "{cause}");
        }
    }

    #[test]
    fn a_full_disk_explains_itself_even_without_a_log() {
        assert!(explain("", Some(0)).cause.contains("No space"));
        let panic = "x PANIC:  could not write to file \"pg_wal/xlogtemp.9\": No space left on device";
        assert!(explain(panic, None).remedy.contains("PGRIG_HOME"));
        assert!(
            explain(panic, None).remedy_of_start("ddl").ends_with("(pgrig server destroy --instance ddl)")
        );
        let cause =
            last_words(&format!("{panic}\nx LOG:  terminating any other active server processes\n")).unwrap();
        assert!(
            remedy_of_end(&cause, "ddl")
                .contains("delete the instance with its data (pgrig server destroy --instance ddl)")
        );
        assert_eq!(remedy_of_end("was terminated by signal 9: Killed", "ddl"), "the next start recovers it");
    }

    #[test]
    fn a_command_names_the_instance() {
        let found = explain("x PANIC:  could not locate a valid checkpoint record", None);
        assert!(found.remedy("old").ends_with("(pgrig server destroy --instance old)"), "{found:?}");
    }

    #[test]
    fn the_unknown_is_quoted() {
        let found = explain("a LOG:  fine\nb FATAL:  odd thing\nc LOG:  shut down\n", None);
        assert_eq!(found.cause, "odd thing");
        let crash = "a LOG:  server process (PID 7) was terminated by signal 9: Killed\n\
                     b FATAL:  the database system is in recovery mode\n";
        assert!(explain(crash, None).cause.ends_with("signal 9: Killed"));
        assert_eq!(explain("", None).cause, "the program printed no message");
    }
}
