//! One file, or standard input: its beginning tells its kind.

use std::io::{BufRead, Cursor, Read};
use std::rc::Rc;

use crate::check::error::CheckError;
use crate::check::format::archive;
use crate::check::format::compression::Method;
use crate::check::outcome::Outcome;
use crate::check::plan::Kind;
use crate::check::recipe::Form;
use crate::check::run::{Run, Stream, base, custom, plain, tar_dump};

/// Bytes that tell the kind.
const HEAD: u64 = 4096;
const TAR_BLOCK: usize = 512;
/// Place of `ustar` in the header of a member.
const USTAR: std::ops::Range<usize> = 257..262;
/// The first member of pg_dump's tar files, and those of pg_basebackup's.
const OF_DUMP: &[u8] = b"toc.dat\0";
const OF_BASE: [&[u8]; 3] = [b"backup_label\0", b"tablespace_map\0", b"PG_VERSION\0"];
/// Texts of which a plain dump has at least one in its first lines; the first one begins it.
const OF_PLAIN: [&[u8]; 6] = [
    b"--\n-- PostgreSQL database dump",
    b"--\n-- PostgreSQL database cluster dump",
    b"\n-- Dumped by pg_dump version",
    b"\n-- Dumped from database version",
    b"\nSET statement_timeout = 0;",
    b"\nSET default_transaction_read_only = off;",
];

/// The kind of the content, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Archive,
    DumpTar,
    OtherTar,
    Plain,
    Unknown,
}

pub(super) fn check(run: &Run<'_>, outcome: &mut Outcome) -> Result<(), CheckError> {
    let path = &run.plan.path;
    let is_stream = run.plan.kind == Kind::Stream;
    let name = if is_stream {
        "standard input".to_owned()
    } else {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let input = if is_stream { run.watch.stdin(path) } else { run.watch.open(path)? };
    let at = Rc::clone(&input.at);
    let opened = Stream::new(input);
    let Some(mut stream) = run.watch.settle(outcome, &name, Some(0), opened)? else { return Ok(()) };
    if stream.is_empty {
        outcome.damage(&name, Some(0), "it is empty");
        return Ok(());
    }
    let mut head = Vec::new();
    let read = stream.content.by_ref().take(HEAD).read_to_end(&mut head);
    let content = content_of(&head);
    outcome.kind = kind(content, stream.method);
    outcome.recipe.form = form(content);
    outcome.recipe.packed = stream.method;
    if run.watch.settle(outcome, &name, Some(at.get()), read)?.is_none() {
        return Ok(());
    }
    let compressed = Method::of_name(&name);
    if content == Content::Unknown {
        if compressed != Method::None && stream.method != compressed {
            outcome.damage(&name, Some(0), format!("it does not begin as {}", compressed.name()));
            return Ok(());
        }
        // A damaged stream may begin as anything. Its checksum comes last.
        if stream.method != Method::None {
            let rest = super::drain(&mut stream.content);
            if run.watch.settle(outcome, &name, Some(at.get()), rest)?.is_none() {
                return Ok(());
            }
        }
        if head.is_empty() {
            outcome.damage(&name, Some(at.get()), "its content is empty");
            return Ok(());
        }
        return Err(CheckError::Unknown { path: path.clone() });
    }
    if run.plan.wal.is_some() && content != Content::OtherTar {
        return Err(CheckError::NeedsNoWal { path: path.clone() });
    }
    let method = stream.method;
    let covered = Rc::clone(&stream.covered);
    let mut whole: Box<dyn BufRead + '_> = Box::new(Cursor::new(head).chain(stream.content));
    let before = outcome.gaps.len();
    let damages = outcome.damages.len();
    match content {
        Content::Archive => custom::check(run, &mut whole, &name, &at, outcome)?,
        Content::DumpTar => tar_dump::check(run, &mut whole, &name, &at, outcome)?,
        Content::Plain => plain::check(run, &mut whole, &name, &at, outcome)?,
        Content::OtherTar if is_stream => return Err(CheckError::Streamed),
        Content::OtherTar => {
            drop(whole);
            return base::one_tar(run, &name, outcome);
        }
        Content::Unknown => {}
    }
    // The bytes that follow belong to the compressed stream, whose checksum comes last.
    if outcome.damages.len() == damages {
        let rest = super::drain(&mut whole);
        if let Some(rest @ 1..) = run.watch.settle(outcome, &name, Some(at.get()), rest)? {
            outcome.damage(&name, Some(at.get()), format!("more data follow the end of the dump: {rest} B"));
        }
    }
    if method != Method::None && covered.get() {
        outcome.gaps.truncate(before);
    }
    Ok(())
}

fn form(content: Content) -> Option<Form> {
    match content {
        Content::Archive => Some(Form::Archive),
        Content::DumpTar => Some(Form::TarArchive),
        Content::OtherTar => Some(Form::OneTar),
        Content::Plain => Some(Form::Sql),
        Content::Unknown => None,
    }
}

fn kind(content: Content, method: Method) -> String {
    let name = match content {
        Content::Archive => "dump in custom format",
        Content::DumpTar => "dump in tar format",
        Content::OtherTar => "base backup as one tar file",
        Content::Plain => "dump as SQL",
        Content::Unknown => "file",
    };
    match method {
        Method::None => name.to_owned(),
        method => format!("{name}, compressed as a whole with {}", method.name()),
    }
}

/// The kind of a content that begins so. A cut or a flipped bit in the first bytes does not hide it.
fn content_of(head: &[u8]) -> Content {
    let begins = |with: &[u8]| !head.is_empty() && (head.starts_with(with) || with.starts_with(head));
    let magic = archive::MAGIC;
    let differing = head.iter().zip(magic).filter(|(one, other)| one != other).count();
    if begins(magic) || head.len() > magic.len() && differing == 1 && head[magic.len()] == 1 {
        Content::Archive
    } else if begins(OF_DUMP) {
        Content::DumpTar
    } else if head.get(USTAR) == Some(b"ustar") || OF_BASE.iter().any(|name| begins(name)) {
        let is_dump = head.len() >= TAR_BLOCK
            && head[..OF_DUMP.len()].iter().zip(OF_DUMP).filter(|(one, other)| one != other).count() <= 1;
        if is_dump { Content::DumpTar } else { Content::OtherTar }
    } else if begins(OF_PLAIN[0])
        || OF_PLAIN.iter().any(|text| head.windows(text.len()).any(|part| part == *text))
    {
        Content::Plain
    } else {
        Content::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_found_though_the_first_bytes_are_damaged() {
        for (head, content) in [
            (&b"PGDMP\x01\x0e"[..], Content::Archive),
            (b"PGDM", Content::Archive),
            (b"PGDOP\x01\x0e", Content::Archive),
            (b"toc.dat\0", Content::DumpTar),
            (b"backup_label\0\0", Content::OtherTar),
            (b"--\n-- Postg", Content::Plain),
            (
                b"--\n-- PostgrESQL database dump\n--\n\n-- Dumped from database version 15.18\n",
                Content::Plain,
            ),
            (b"--\n-- MySQL dump 10.13\n", Content::Unknown),
            (b"hello", Content::Unknown),
            (b"", Content::Unknown),
        ] {
            assert_eq!(content_of(head), content, "{:?}", String::from_utf8_lossy(head));
        }
    }
}
