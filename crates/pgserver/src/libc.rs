//! The C library of this machine: it decides which archive of PostgreSQL runs here. pgrig's own does not count, since a
//! static pgrig runs everywhere.

use std::env::consts;
use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Programs that each distribution links with its own C library.
const PROGRAMS: [&str; 4] = ["bin/sh", "usr/bin/env", "bin/ls", "sbin/init"];
/// First bytes of a program on Linux with 64 bits, whose numbers are little-endian.
const ELF64_LITTLE: [u8; 6] = *b"\x7fELF\x02\x01";
/// Type of the program header that names the dynamic loader.
const PT_INTERP: u32 = 3;
/// More program headers, and longer paths, are not those of a program.
const MOST: u64 = 4096;

/// A C library for which there are archives of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Libc {
    Glibc,
    Musl,
}

impl Libc {
    /// The one of this machine.
    ///
    /// # Errors
    /// If programs for neither can run here.
    pub(crate) fn of_host() -> Result<Self> {
        if !cfg!(target_os = "linux") {
            return Ok(Self::Glibc);
        }
        Self::below(Path::new("/"))
    }

    /// The one of the system in this directory: which library its own programs are linked with. If they are static,
    /// which loader there is.
    fn below(root: &Path) -> Result<Self> {
        let of_programs = PROGRAMS.iter().find_map(|program| Self::of_program(&root.join(program)));
        let has_loader = |libc: &Self| root.join(libc.loader()).exists();
        let none = || Error::NoLibc { loader: Path::new("/").join(Self::Glibc.loader()) };
        match of_programs {
            Some(libc) if has_loader(&libc) => Ok(libc),
            Some(libc) => Err(Error::NoLibc { loader: Path::new("/").join(libc.loader()) }),
            None => [Self::Glibc, Self::Musl].into_iter().find(has_loader).ok_or_else(none),
        }
    }

    /// The one that a program is linked with; none for a static program or a script.
    pub(crate) fn of_program(program: &Path) -> Option<Self> {
        let loader = interpreter(program)?;
        let name = loader.file_name()?.to_str()?;
        match name {
            name if name.starts_with("ld-musl") => Some(Self::Musl),
            name if name.starts_with("ld-linux") || name.starts_with("ld64.so") => Some(Self::Glibc),
            _ => None,
        }
    }

    /// The loader that programs of the archives name, from the root.
    fn loader(self) -> PathBuf {
        match (self, consts::ARCH) {
            (Self::Musl, machine) => format!("lib/ld-musl-{machine}.so.1"),
            (Self::Glibc, "x86_64") => "lib64/ld-linux-x86-64.so.2".to_owned(),
            (Self::Glibc, machine) => format!("lib/ld-linux-{machine}.so.1"),
        }
        .into()
    }

    /// The part that it adds to the name of the archive.
    pub(crate) fn archive_suffix(self) -> &'static str {
        match self {
            Self::Glibc => "",
            Self::Musl => "-alpine",
        }
    }

    /// The part that it adds to the directory of a version: one home may serve machines of both kinds.
    pub(crate) fn directory_suffix(self) -> &'static str {
        match self {
            Self::Glibc => "",
            Self::Musl => "-musl",
        }
    }
}

impl fmt::Display for Libc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Glibc => "glibc",
            Self::Musl => "musl",
        })
    }
}

/// The dynamic loader that an ELF program names.
fn interpreter(program: &Path) -> Option<PathBuf> {
    // Opening a pipe would block.
    if !fs::metadata(program).ok()?.is_file() {
        return None;
    }
    let mut file = File::open(program).ok()?;
    let header = read(&mut file, 0, 64)?;
    if !header.starts_with(&ELF64_LITTLE) {
        return None;
    }
    let (start, size, count) = (number(&header, 32, 8)?, number(&header, 54, 2)?, number(&header, 56, 2)?);
    for index in 0..count.min(MOST) {
        let entry = read(&mut file, start.checked_add(index * size)?, 56)?;
        if number(&entry, 0, 4)? == u64::from(PT_INTERP) {
            let path = read(&mut file, number(&entry, 8, 8)?, number(&entry, 32, 8)?.min(MOST))?;
            let path = path.split(|byte| *byte == 0).next()?;
            return Some(std::str::from_utf8(path).ok()?.into());
        }
    }
    None
}

fn read(file: &mut File, at: u64, length: u64) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// A little-endian number.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A program that names this loader, or none.
    fn program(loader: Option<&str>) -> Vec<u8> {
        let mut header = vec![0; 64 + 2 * 56];
        header[..6].copy_from_slice(&ELF64_LITTLE);
        (header[32], header[54], header[56]) = (64, 56, 2);
        let text = loader.unwrap_or_default();
        let second = 64 + 56;
        header[64] = 6;
        header[second] = if loader.is_some() { 3 } else { 1 };
        header[second + 8] = u8::try_from(header.len()).unwrap();
        header[second + 32] = u8::try_from(text.len() + 1).unwrap();
        [header, text.as_bytes().to_vec(), vec![0]].concat()
    }

    /// The library of a system with these files.
    fn found(files: &[(&str, &[u8])]) -> Result<Libc> {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Libc::below(root.path())
    }

    #[test]
    fn the_systems_own_programs_decide() {
        let (glibc, musl) = (Libc::Glibc.loader(), Libc::Musl.loader());
        let (glibc, musl) = (glibc.to_str().unwrap(), musl.to_str().unwrap());
        let both = [(glibc, b"loader".as_slice()), (musl, b"loader")];
        let [of_glibc, of_musl, fixed] = [Some(glibc), Some(musl), None].map(program);
        // Debian with the package musl; Alpine with gcompat.
        assert_eq!(found(&[both[0], both[1], ("bin/sh", &of_glibc)]).unwrap(), Libc::Glibc);
        assert_eq!(found(&[both[0], both[1], ("bin/sh", &of_musl)]).unwrap(), Libc::Musl);
        // A static shell, a script in its place, a file that is cut off.
        for shell in [&*fixed, b"#!/bin/false\n", b"", &of_musl[..70]] {
            assert_eq!(found(&[both[1], ("bin/sh", shell)]).unwrap(), Libc::Musl);
            assert_eq!(found(&[both[0], both[1], ("bin/sh", shell)]).unwrap(), Libc::Glibc);
            assert_eq!(
                found(&[both[0], both[1], ("bin/sh", shell), ("bin/ls", &of_musl)]).unwrap(),
                Libc::Musl
            );
        }
    }

    #[test]
    fn a_system_without_a_loader_is_refused() {
        // NixOS; an image with nothing but pgrig.
        let elsewhere = program(Some("/nix/store/glibc/lib/ld-linux-x86-64.so.2"));
        for files in [&[("bin/sh", &*elsewhere)][..], &[]] {
            let error = found(files).unwrap_err().to_string();
            assert!(error.contains(Libc::Glibc.loader().to_str().unwrap()), "{error}");
            assert!(error.contains("--pg-bin DIR"), "{error}");
        }
    }

    #[test]
    fn this_machine_is_what_ldd_says() {
        if !cfg!(target_os = "linux") {
            return;
        }
        // ldd is part of the library, and names it.
        let said = std::process::Command::new("ldd").arg("--version").output().unwrap();
        let said = [said.stdout, said.stderr].concat();
        let said = String::from_utf8_lossy(&said).to_lowercase();
        assert_eq!(Libc::of_host().unwrap() == Libc::Musl, said.contains("musl"), "{said}");
        let root = tempfile::tempdir().unwrap();
        let pipe = root.path().join("sh");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(Libc::of_program(&pipe), None);
        symlink("/nowhere", root.path().join("link")).unwrap();
        assert_eq!(Libc::of_program(&root.path().join("link")), None);
    }
}
