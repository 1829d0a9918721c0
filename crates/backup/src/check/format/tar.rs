//! Tar files, up to the two blocks of zeros that end them. Bytes between members must be zero.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use ::tar::{Archive, EntryType};

use super::wrong;

const BLOCK: u64 = 512;
/// Zeros at the end.
const END: u64 = 2 * BLOCK;
const PIECE: usize = 64 << 10;

/// A member.
pub(in crate::check) struct Member<'a> {
    /// Path with `/`, without `./` before it and `/` after it.
    pub(in crate::check) path: String,
    pub(in crate::check) is_file: bool,
    pub(in crate::check) is_directory: bool,
    /// Whether it is a symbolic or a hard link.
    pub(in crate::check) is_link: bool,
    /// Its content.
    pub(in crate::check) content: &'a mut dyn Read,
}

/// Reads all members.
pub(in crate::check) fn members<R: Read>(
    input: R,
    mut each: impl FnMut(Member<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let seam = Rc::new(Seam::default());
    let mut archive = Archive::new(Seamed { input, position: 0, seam: Rc::clone(&seam) });
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = path.trim_start_matches("./").trim_end_matches('/').to_owned();
        let end = entry.raw_file_position() + entry.size();
        let kind = entry.header().entry_type();
        let is_file = matches!(kind, EntryType::Regular | EntryType::Continuous);
        if !is_file && !matches!(kind, EntryType::Directory | EntryType::Symlink | EntryType::Link) {
            return Err(wrong(format!("member {path:?} has an unknown type")));
        }
        let is_directory = kind == EntryType::Directory;
        let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
        each(Member { path, is_file, is_directory, is_link, content: &mut entry })?;
        drain(&mut entry)?;
        seam.from.set(end);
        seam.to.set(end.next_multiple_of(BLOCK));
    }
    // All that is left, and the bytes of it that the last call has read.
    seam.to.set(u64::MAX);
    let mut rest = archive.into_inner();
    drain(&mut rest)?;
    if let Some(at) = seam.wrong.get() {
        return Err(wrong(format!("byte {at} of the tar file, behind a member, is not zero")));
    }
    let end = seam.from.get().next_multiple_of(BLOCK);
    if rest.position < end + END {
        return Err(wrong("the tar file ends without two blocks of zeros: it is cut off"));
    }
    Ok(())
}

fn drain(input: &mut impl Read) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    while input.read(&mut piece)? > 0 {}
    Ok(())
}

/// The range of bytes in which only zeros may be, and the first other one.
#[derive(Default)]
struct Seam {
    from: Cell<u64>,
    to: Cell<u64>,
    wrong: Cell<Option<u64>>,
}

struct Seamed<R> {
    input: R,
    position: u64,
    seam: Rc<Seam>,
}

impl<R: Read> Read for Seamed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let seam = &self.seam;
        let end = self.position + read as u64;
        let (from, to) = (seam.from.get().max(self.position), seam.to.get().min(end));
        let within = |at: u64| usize::try_from(at - self.position).unwrap_or(read);
        if from < to
            && seam.wrong.get().is_none()
            && let Some(at) = buffer[within(from)..within(to)].iter().position(|byte| *byte != 0)
        {
            seam.wrong.set(Some(from + at as u64));
        }
        self.position += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed() -> Vec<u8> {
        let mut builder = ::tar::Builder::new(Vec::new());
        for (name, bytes) in [("./a", &b"one"[..]), ("b/c", &[7; 1024]), ("d", b"")] {
            let mut header = ::tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, name, bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<(String, usize)>> {
        let mut found = Vec::new();
        members(bytes, |member| {
            let mut content = Vec::new();
            member.content.read_to_end(&mut content)?;
            found.push((member.path, content.len()));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn members_are_read() {
        let expected = [("a", 3), ("b/c", 1024), ("d", 0)].map(|(name, size)| (name.to_owned(), size));
        assert_eq!(read(&packed()).unwrap(), expected);
    }

    #[test]
    fn a_cut_tar_file_is_damaged_wherever_it_is_cut() {
        let bytes = packed();
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "cut to {cut} of {}", bytes.len());
        }
    }

    #[test]
    fn a_byte_behind_a_member_is_damage() {
        let bytes = packed();
        for at in [512 + 3, 1023, bytes.len() - 1, bytes.len() - 1024] {
            let mut flipped = bytes.clone();
            flipped[at] = 1;
            assert!(read(&flipped).is_err(), "byte {at}");
        }
    }
}
