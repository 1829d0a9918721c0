//! The segments of WAL that a base backup needs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::check::format::blocks::{Block, Replaced};
use crate::check::format::manifest::{WalRange, lsn};
use crate::check::format::wal::{self, PAGE, Walk};
use crate::check::outcome::Outcome;
use crate::check::run::drain;
use measure::human::counted;

/// PostgreSQL's default.
const DEFAULT: u64 = 16 << 20;

/// Reads the segments of all ranges, each range in order.
pub(super) struct Segments {
    ranges: Vec<WalRange>,
    /// Without ranges, the one that `backup_label` tells of. Nothing of it is damage: it may end anywhere.
    untold: Option<WalRange>,
    /// Pages that are looked for.
    pages: Replaced,
    /// The segment with which recovery begins, if nothing else tells which WAL is needed; none once it was seen.
    first: Option<String>,
    system: Option<u64>,
    /// Size of a segment, once one was seen.
    size: Option<u64>,
    walks: Vec<Walked>,
    /// Other files.
    others: BTreeSet<String>,
}

struct Walked {
    walk: Walk,
    range: WalRange,
    segments: Vec<(u64, String)>,
    next: usize,
    has_failed: bool,
    /// Whether its segments are found one after the other, as long as there are some.
    is_untold: bool,
}

impl Walked {
    /// Reads a segment of this size that begins with this page, as far as it has records.
    fn read_untold(
        &mut self,
        (begin, size): (u64, u64),
        mut page: Vec<u8>,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        let mut at = begin;
        while page.len() == PAGE && !self.has_failed {
            self.has_failed = self.walk.page(at, &page).is_err() || self.walk.has_unknown_rest;
            at += PAGE as u64;
            page.clear();
            Read::take(&mut *content, PAGE as u64).read_to_end(&mut page)?;
        }
        self.has_failed |= at + page.len() as u64 != begin + size;
        drain(content).map(drop)
    }

    fn is_read_to_end(&self) -> bool {
        !self.has_failed && self.next == self.segments.len() && self.walk.is_complete()
    }
}

impl Segments {
    /// Of the ranges of a manifest, or without one of the range that begins where `backup_label` says.
    pub(super) fn new(
        (ranges, untold): (&[WalRange], Option<WalRange>),
        first: Option<String>,
        system: Option<u64>,
        pages: BTreeSet<Block>,
    ) -> Self {
        let (ranges, pages) = (ranges.to_vec(), Replaced::new(pages));
        Self { ranges, untold, pages, first, system, size: None, walks: Vec::new(), others: BTreeSet::new() }
    }

    /// Looks for the first segment in the user's own directory.
    pub(super) fn find_first_in(&mut self, directory: &Path) {
        self.first = self.first.take().filter(|name| !directory.join(name).is_file());
    }

    fn begin(&mut self, size: u64) {
        if self.size.is_some() {
            return;
        }
        self.size = Some(size);
        let walked = |range: &WalRange, is_untold: bool| Walked {
            walk: Walk::new(range, size, self.system, self.pages.clone()),
            range: range.clone(),
            segments: if is_untold {
                vec![wal::segment(range.timeline, range.start / size, size)]
            } else {
                wal::segments(range, size)
            },
            next: 0,
            has_failed: false,
            is_untold,
        };
        let told = self.ranges.iter().map(|range| walked(range, false));
        self.walks = told.chain(self.untold.iter().map(|range| walked(range, true))).collect();
    }

    /// Those of the manifest.
    fn told(&self) -> impl Iterator<Item = &Walked> {
        self.walks.iter().filter(|one| !one.is_untold)
    }

    /// Takes the size of segments from those in this directory, if the backup has none.
    pub(super) fn begin_as_in(&mut self, directory: &Path) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let segment = entries.filter(|entry| wal::is_segment(&entry.file_name().to_string_lossy()));
        let size = segment
            .filter_map(|entry| Some(entry.metadata().ok()?.len()))
            .find(|size| size.is_power_of_two());
        self.begin(size.unwrap_or(DEFAULT));
    }

    /// The segments that come next, each of another range.
    pub(super) fn wanted(&self) -> Vec<String> {
        let open =
            self.walks.iter().filter(|one| !(one.has_failed || one.is_untold && one.walk.is_complete()));
        open.filter_map(|one| Some(one.segments.get(one.next)?.1.clone())).collect()
    }

    /// Whether one of the ranges is not read to its end yet. That of which no manifest tells is not if its next segment came too early.
    pub(super) fn lacks_some(&self) -> bool {
        let mut untold = self.walks.iter().filter(|one| one.is_untold);
        let has_more = untold.any(|one| !one.has_failed && !one.walk.is_complete());
        self.told().any(|one| !one.has_failed && one.next < one.segments.len())
            || has_more && self.first_unread().is_some()
    }

    /// The segment with which the unread WAL of a backup without a manifest begins, if it is there: it came too early, or follows wrong WAL
    /// from after the end of the backup.
    pub(super) fn first_unread(&self) -> Option<String> {
        let is_right = |one: &&Walked| !one.has_failed || one.walk.is_complete();
        let untold = self.walks.iter().filter(|one| one.is_untold).find(is_right)?;
        let (_, next) = untold.segments.get(untold.next)?;
        self.others.contains(next).then(|| next.clone())
    }

    /// Whether the segment is needed, now or later.
    fn is_needed(&self, name: &str) -> bool {
        self.told().any(|one| one.segments.iter().any(|(_, needed)| needed == name))
    }

    /// Whether the replay of the WAL replaces a page of the backup, as far as it was read: none if the rest may do so.
    pub(super) fn replaces(&self, page: &Block) -> Option<bool> {
        let each = self.walks.iter().map(|one| {
            let walk = &one.walk;
            Found { start: one.range.start, replaces: walk.pages.replaces(page), is_read: walk.is_complete() }
        });
        first_found(each.collect())
    }

    /// Reads a file of the directory of WAL. `length` is that of the file, if it is known. Returns whether it was the next one of a range.
    pub(super) fn file(
        &mut self,
        name: &str,
        length: Option<u64>,
        content: &mut dyn Read,
        outcome: &mut Outcome,
    ) -> io::Result<bool> {
        if !wal::is_segment(name) {
            if !name.contains('/') {
                self.others.insert(name.to_owned());
            }
            drain(content)?;
            return Ok(false);
        }
        self.first = self.first.take().filter(|first| first != name);
        let mut page = Vec::new();
        Read::take(&mut *content, PAGE as u64).read_to_end(&mut page)?;
        let of_file = length.filter(|length| length.is_power_of_two() && *length >= 1 << 20);
        self.begin(of_file.or_else(|| wal::segment_size(&page)).unwrap_or(DEFAULT));
        let Some(walked) = self
            .walks
            .iter_mut()
            .find(|one| !one.has_failed && one.segments.get(one.next).is_some_and(|(_, next)| next == name))
        else {
            if !self.is_needed(name) {
                self.others.insert(name.to_owned());
            }
            drain(content)?;
            return Ok(false);
        };
        let begin = walked.segments[walked.next].0;
        walked.next += 1;
        let size = self.size.unwrap_or(DEFAULT);
        if walked.is_untold {
            walked.segments.push(wal::segment(walked.range.timeline, begin / size + 1, size));
            return walked.read_untold((begin, size), page, content).map(|()| true);
        }
        let mut at = begin;
        while page.len() == PAGE {
            if !walked.has_failed
                && let Err(error) = walked.walk.page(at, &page)
            {
                walked.has_failed = true;
                outcome.damage(format!("pg_wal/{name}"), Some(at - begin), error.to_string());
            }
            at += PAGE as u64;
            page.clear();
            Read::take(&mut *content, PAGE as u64).read_to_end(&mut page)?;
        }
        let length = at + page.len() as u64 - begin;
        if length != size && !walked.has_failed {
            walked.has_failed = true;
            outcome.damage(
                format!("pg_wal/{name}"),
                Some(length),
                format!("its size is {length} B instead of {size} B"),
            );
        }
        outcome.wal += length;
        Ok(true)
    }

    /// Whether the replay of the WAL writes relation maps, as far as it was read; WAL that was not read may do so.
    pub(super) fn may_write_maps(&self) -> bool {
        self.walks.len() < self.ranges.len()
            || self.walks.iter().any(|one| one.walk.writes_maps || !one.is_read_to_end())
    }

    /// Whether the replay of the WAL creates a tablespace, as far as it was read.
    pub(super) fn create_tablespaces(&self) -> bool {
        self.walks.iter().any(|one| one.walk.creates_tablespaces)
    }

    /// Adds the missing segments as damages, and those that no restore needs as gaps. `archive` is the user's own directory.
    pub(super) fn end(mut self, archive: Option<&Path>, outcome: &mut Outcome) {
        self.begin(DEFAULT);
        if let Some(first) = &self.first {
            outcome.damage(
                "pg_wal",
                None,
                format!(
                    "segment {first}, with which a restore begins, is missing: {}",
                    remedy(archive, first, "it and the later ones")
                ),
            );
        }
        for one in self.told() {
            let missing: Vec<&str> = one.segments[one.next..].iter().map(|(_, name)| name.as_str()).collect();
            let [start, end] = [one.range.start, one.range.end].map(lsn);
            if let Some(first) = missing.first() {
                let (names, are, them) = if missing.len() == 1 {
                    (format!("segment {first}"), "is", "it")
                } else {
                    let last = missing[missing.len() - 1];
                    (format!("{} segments from {first} to {last}", missing.len()), "are", "them")
                };
                outcome.damage(
                    "pg_wal",
                    None,
                    format!(
                        "{names}, of the WAL from {start} to {end} that a restore needs, {are} missing: {}",
                        remedy(archive, first, them)
                    ),
                );
            } else if !one.has_failed && !one.walk.is_complete() {
                outcome.damage("pg_wal", None, format!("the WAL ends before {end}"));
            }
            if one.walk.has_unknown_rest {
                outcome.gap(
                    format!("WAL after {end}, the end of the backup"),
                    "nothing to do for the WAL after the end of the backup: a restore becomes consistent without it",
                );
            }
        }
        // Without a manifest, nothing tells which ones a restore needs.
        let is_known = !self.ranges.is_empty();
        let others: Vec<&String> =
            self.others.iter().filter(|name| is_known && !self.is_needed(name)).collect();
        if let Some(first) = others.first() {
            outcome.gap(
                format!(
                    "{} in pg_wal beside those of the manifest: {first}{}",
                    counted(others.len() as u64, "file"),
                    if others.len() > 1 { " …" } else { "" }
                ),
                "nothing to do for other files in pg_wal: a restore becomes consistent without them",
            );
        }
    }
}

/// The answer of a range of WAL about a page.
struct Found {
    /// The beginning of the range.
    start: u64,
    /// Whether its replay replaces the page; none if no record names it.
    replaces: Option<bool>,
    /// Whether it was read to its end.
    is_read: bool,
}

/// The first answer in the order of the replay: a manifest lists the latest timeline first (backup_manifest.c: `AddWALInfoToBackupManifest`).
/// None if a range that was not read may have the answer.
fn first_found(mut ranges: Vec<Found>) -> Option<bool> {
    ranges.sort_by_key(|one| one.start);
    let deciding = ranges.iter().find(|one| one.replaces.is_some() || !one.is_read);
    deciding.map_or((!ranges.is_empty()).then_some(false), |one| one.replaces)
}

/// The way to the missing segments, of which this is the first one.
fn remedy(archive: Option<&Path>, first: &str, them: &str) -> String {
    let Some(archive) = archive else {
        return format!("copy {them} from the archive into pg_wal, or name the archive: --wal-directory DIR");
    };
    let shown = archive.display();
    match packed(archive, first) {
        Some(file) => format!(
            "{shown} has {file}, which is compressed or encrypted: restore {them} as the restore_command of the server does, and name the directory of \
             the result: --wal-directory DIR"
        ),
        None => {
            format!("{shown} does not have {them} either: name the directory that does: --wal-directory DIR")
        }
    }
}

/// The file of a segment in an archive that stores it in another form, under its name with an ending.
fn packed(archive: &Path, segment: &str) -> Option<String> {
    let names = fs::read_dir(archive).into_iter().flatten().flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.find(|name| {
        let ending = name.strip_prefix(segment).and_then(|rest| rest.strip_prefix('.'));
        // These two are PostgreSQL's own: a segment that is not complete, and the label of a backup.
        ending.is_some_and(|ending| !ending.is_empty() && ending != "partial" && !ending.ends_with("backup"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_record_of_a_page_decides_whatever_the_order_of_the_ranges() {
        let of = |ranges: &[(u64, Option<bool>, bool)]| {
            let found = |&(start, replaces, is_read)| Found { start, replaces, is_read };
            first_found(ranges.iter().map(found).collect())
        };
        assert_eq!(of(&[(9, Some(false), true), (3, Some(true), true)]), Some(true));
        assert_eq!(of(&[(9, Some(true), true), (3, Some(false), false)]), Some(false));
        assert_eq!(of(&[(9, Some(true), true), (3, None, false)]), None);
        assert_eq!(of(&[(9, None, true), (3, None, true)]), Some(false));
        assert_eq!(of(&[]), None);
    }

    /// GNU tar stores the files of a directory in any order.
    #[test]
    fn segments_that_no_manifest_lists_are_read_on_if_they_came_too_early() {
        let range = WalRange { timeline: 1, start: 1 << 24, end: wal::UNKNOWN };
        let mut segments = Segments::new((&[][..], Some(range)), None, None, BTreeSet::new());
        let name = |number: u64| wal::segment(1, number, DEFAULT).1;
        let mut outcome = Outcome::default();
        let mut read = |segments: &mut Segments, number| {
            segments.file(&name(number), Some(DEFAULT), &mut io::empty(), &mut outcome).unwrap()
        };
        assert!(!read(&mut segments, 2));
        assert!(!segments.lacks_some() && segments.first_unread().is_none());
        segments.walks[0].segments.push(wal::segment(1, 2, DEFAULT));
        segments.walks[0].next = 1;
        assert!(segments.lacks_some());
        assert_eq!(segments.first_unread(), Some(name(2)));
        // It is empty, so nothing goes on behind it.
        assert!(read(&mut segments, 2));
        assert!(!segments.lacks_some() && segments.first_unread().is_none());
    }
}
