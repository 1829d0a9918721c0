//! The files of a base backup against its manifest.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read};

use crate::check::format::blocks::Block;
use crate::check::format::manifest::{Checksum, Listed, Manifest, WalRange, lsn_of};
use crate::check::format::own_sums::{self, Summed};
use crate::check::format::pages::{self, Pages, WrongPage};
use crate::check::format::wal;
use crate::check::format::wrong;
use crate::check::outcome::Outcome;
use crate::check::run::BUFFER;
use crate::check::run::segments::Segments;
use measure::human::counted;

/// Files that a manifest does not list, or that may differ from it (`src/bin/pg_verifybackup/pg_verifybackup.c`).
const OWN: [&str; 4] = ["backup_manifest", "recovery.signal", "standby.signal", SETTINGS];
const SETTINGS: &str = "postgresql.auto.conf";
const VERSION: &str = "PG_VERSION";
const CONTROL: &str = "global/pg_control";
const LABEL: &str = "backup_label";
const MAP: &str = "tablespace_map";
const TABLESPACES: &str = "pg_tblspc/";
/// Last part of the paths of relation maps.
const FILENODES: &str = "/pg_filenode.map";
const PREPARED: &str = "pg_twophase/";
const ORIGINS: &str = "pg_logical/replorigin_checkpoint";
/// Bytes that are kept of some files.
const KEPT: usize = 4096;
/// Line of the label of a backup that was made of a standby, whose WAL has no record of the end.
const OF_STANDBY: &str = "BACKUP FROM: standby";
/// Line of the label of an incremental backup.
const INCREMENTAL: &str = "INCREMENTAL FROM LSN: ";
/// Directories without which a server does not start, and which are empty in a backup (src/bin/initdb/initdb.c). Copies through object
/// stores and git lose them.
const DIRECTORIES: [&str; 9] = [
    "pg_commit_ts",
    "pg_dynshmem",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat",
    "pg_tblspc",
    "pg_twophase",
];
const REMEDY: &str =
    "make the next base backup with a manifest (pg_basebackup without --no-manifest, from PostgreSQL 13 on)";

/// See the module's documentation.
pub(super) struct ManifestCheck {
    pub(super) manifest: Option<Manifest>,
    places: HashMap<String, usize>,
    seen: Vec<bool>,
    directories: BTreeSet<String>,
    /// Links in a tar file.
    links: BTreeSet<String>,
    /// Beginnings of files that tell something of the server.
    kept: HashMap<&'static str, Vec<u8>>,
    /// Relation maps, with the directories that they are in.
    maps: Vec<(String, Vec<u8>)>,
    /// Pages of files without a checksum in a manifest, with a wrong checksum of their own, if the server had checksums.
    wrong_pages: Vec<(String, WrongPage)>,
    /// First pages of unlogged relations.
    unlogged: BTreeSet<Block>,
    unchecked: u64,
}

impl ManifestCheck {
    pub(super) fn new(manifest: Option<Manifest>) -> Self {
        let files = manifest.as_ref().map_or(&[][..], |manifest| &manifest.files);
        let places: HashMap<String, usize> =
            files.iter().enumerate().map(|(place, file)| (file.path(), place)).collect();
        let seen = vec![false; files.len()];
        let (directories, links) = (BTreeSet::new(), BTreeSet::new());
        Self {
            manifest,
            places,
            seen,
            directories,
            links,
            kept: HashMap::new(),
            maps: Vec::new(),
            wrong_pages: Vec::new(),
            unlogged: BTreeSet::new(),
            unchecked: 0,
        }
    }

    /// Paths of all listed files.
    pub(super) fn paths(&self) -> Vec<String> {
        let files = self.manifest.as_ref().map_or(&[][..], |manifest| &manifest.files);
        files.iter().map(Listed::path).collect()
    }

    pub(super) fn directory(&mut self, path: &str) {
        self.directories.insert(path.to_owned());
    }

    /// A link in a tar file, which has no content of its own.
    pub(super) fn link(&mut self, path: &str) {
        self.links.insert(path.to_owned());
    }

    /// Reads a file. The outer error is one of the stream, the inner one of the file.
    pub(super) fn file(
        &mut self,
        path: &str,
        content: &mut dyn Read,
        outcome: &mut Outcome,
    ) -> io::Result<io::Result<()>> {
        let place = self.places.get(path).copied();
        let listed = place.and_then(|place| Some(&self.manifest.as_ref()?.files[place]));
        let mut sum = match listed.map_or(Ok(None), Listed::checksum) {
            Ok(sum) => sum,
            Err(error) => return Ok(Err(error)),
        };
        let kept = [VERSION, CONTROL, LABEL, MAP].into_iter().find(|name| *name == path);
        let mut pages = if sum.is_none() { Pages::of(path, self.start()) } else { None };
        if pages.is_some() {
            self.unlogged.extend(pages::unlogged(path));
        }
        let (bytes, beginning) = read(content, sum.as_mut(), pages.as_mut())?;
        let room = pages::MOST.saturating_sub(self.wrong_pages.len());
        let wrong_pages = pages.into_iter().flat_map(Pages::wrong).take(room);
        self.wrong_pages.extend(wrong_pages.map(|page| (path.to_owned(), page)));
        let own = summed(path).and_then(|kind| own_sums::sum(kind, &beginning, bytes));
        let prepared = path.strip_prefix(PREPARED).and_then(|name| own_sums::prepared(name, &beginning));
        if let Some(name) = kept {
            self.kept.insert(name, beginning);
        } else if let Some(directory) = path.strip_suffix(FILENODES) {
            self.maps.push((directory.to_owned(), beginning));
        } else if path == ORIGINS && bytes > own_sums::NO_ORIGINS && matches!(sum, Some(Checksum::Crc32c(_)))
        {
            outcome.gap(
                format!("{ORIGINS}, of which all versions have the same CRC32C"),
                "make the next base backup with another checksum: pg_basebackup --manifest-checksums=SHA256",
            );
        }
        let (Some(place), Some(listed)) = (place, listed) else {
            let found = self.unlisted(path);
            return Ok(found.and_then(|()| own.map_or(Ok(()), |damage| Err(wrong(damage)))));
        };
        self.seen[place] = true;
        let is_right = bytes == listed.size;
        let has_sum = sum.is_some();
        let agrees = sum.is_none_or(|sum| listed.agrees(sum));
        if path == SETTINGS && !(is_right && agrees) {
            // pg_basebackup --write-recovery-conf and ALTER SYSTEM write it.
            outcome.gap(
                format!("{SETTINGS}, which was changed after the backup"),
                "check the settings in postgresql.auto.conf",
            );
            return Ok(Ok(()));
        }
        if !is_right {
            return Ok(Err(wrong(format!(
                "its size is {bytes} B; in the manifest, it is {} B",
                listed.size
            ))));
        }
        if !agrees {
            return Ok(Err(wrong("its checksum differs from the one in the manifest")));
        }
        if let Some(damage) = own.or(prepared) {
            return Ok(Err(wrong(damage)));
        }
        self.unchecked += u64::from(!has_sum);
        Ok(Ok(()))
    }

    fn unlisted(&self, path: &str) -> io::Result<()> {
        if self.manifest.is_none() || OWN.contains(&path) || path.starts_with("pg_wal/") {
            return Ok(());
        }
        Err(wrong("the manifest does not list it"))
    }

    /// Identifier of the server, from `pg_control`.
    pub(super) fn system(&self) -> Option<u64> {
        let bytes = self.kept.get(CONTROL)?.get(..8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The segment with which recovery begins, by `backup_label`; none if a manifest lists the WAL.
    pub(super) fn first_segment(&self) -> Option<String> {
        let label = self.kept.get(LABEL).filter(|_| self.manifest.is_none())?;
        let label = String::from_utf8_lossy(label);
        let start = label.lines().find_map(|line| line.strip_prefix("START WAL LOCATION: "))?;
        let name = start.split_once("(file ")?.1.strip_suffix(')')?;
        wal::is_segment(name).then(|| name.to_owned())
    }

    /// The place in the WAL at which the backup began, by `backup_label`, if that was read.
    fn start(&self) -> Option<u64> {
        let label = String::from_utf8_lossy(self.kept.get(LABEL)?);
        let start = label.lines().find_map(|line| line.strip_prefix("START WAL LOCATION: "))?;
        lsn_of(start.split_whitespace().next()?)
    }

    /// The WAL that a restore reads, by `backup_label`; none if a manifest lists it.
    pub(super) fn untold_wal(&self) -> Option<WalRange> {
        let timeline = u32::from_str_radix(self.first_segment()?.get(..8)?, 16).ok()?;
        let label = String::from_utf8_lossy(self.kept.get(LABEL)?);
        let is_of_standby = label.lines().any(|line| line == OF_STANDBY);
        let end = if is_of_standby { own_sums::least_end(self.kept.get(CONTROL)?)? } else { wal::UNKNOWN };
        Some(WalRange { timeline, start: self.start()?, end })
    }

    /// Pages that [`Self::name_pages`] looks for in the WAL.
    pub(super) fn sought(&self) -> BTreeSet<Block> {
        self.doubtful_pages().map(|(_, page)| page.block).collect()
    }

    /// Pages with a wrong checksum, if the server had checksums. Those of unlogged relations count only if the server was shut down: recovery
    /// empties these relations.
    fn doubtful_pages(&self) -> impl Iterator<Item = &(String, WrongPage)> {
        let start = self.start();
        let have_checksums = self.kept.get(CONTROL).is_some_and(|control| pages::have_checksums(control));
        self.wrong_pages.iter().filter(move |(_, page)| {
            let is_unlogged = self.unlogged.contains(&Block { number: 0, ..page.block });
            have_checksums && page.counts(start) && !(is_unlogged && start.is_some())
        })
    }

    /// Adds pages with a wrong checksum as damages, unless the WAL of the backup replaces them: they were written while they were read.
    pub(super) fn name_pages(&self, segments: &Segments, outcome: &mut Outcome) {
        let was_running = self.start().is_some();
        let mut open = Vec::new();
        for (path, page) in self.doubtful_pages() {
            let is_replaced = if was_running { segments.replaces(&page.block) } else { Some(false) };
            match is_replaced {
                Some(true) => {}
                Some(false) => {
                    outcome.damage(
                        path,
                        Some(page.place),
                        "the checksum of the page that begins there is wrong",
                    );
                }
                None => open.push(format!("{path}, byte {}", page.place)),
            }
        }
        let Some(first) = open.first() else { return };
        let (them, more) = if open.len() == 1 { ("it", "") } else { ("them", " …") };
        outcome.gap(
            format!(
                "{} with a wrong checksum, unless the WAL of the backup replaces {them}: {first}{more}",
                counted(open.len() as u64, "page")
            ),
            "restore the backup: --restore",
        );
    }

    /// Adds the damages and gaps that show once all files were read; `is_read` says that they were.
    pub(super) fn end(&self, is_read: bool, outcome: &mut Outcome) {
        let text = |name: &str| {
            self.kept.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
        };
        let version = text(VERSION).trim().to_owned();
        outcome.server = (!version.is_empty()).then_some(version);
        let mut places = self.directories.iter().chain(&self.links);
        outcome.recipe.has_tablespaces =
            places.any(|path| path.starts_with(TABLESPACES)) || !text(MAP).trim().is_empty();
        self.name_links(outcome);
        if let Some(manifest) = &self.manifest {
            outcome.recipe.bytes = Some(manifest.files.iter().map(|file| file.size).sum());
            outcome.recipe.wal.clone_from(&manifest.wal);
        }
        self.missing(is_read, outcome);
        if let Some(from) = text(LABEL).lines().find_map(|line| line.strip_prefix(INCREMENTAL)) {
            outcome.recipe.is_incremental = true;
            outcome.kind = format!("incremental {}", outcome.kind);
            outcome.gap(
                format!("the earlier backup on which it depends, which ends at {from}"),
                "check the earlier backup, too; pg_combinebackup makes one full backup of the two",
            );
        }
        let Some(manifest) = &self.manifest else {
            outcome.gap("all files: there is no backup_manifest", REMEDY);
            return;
        };
        if self.unchecked > 0 {
            outcome.gap(
                format!("{} without a checksum in the manifest", counted(self.unchecked, "file")),
                "make the next base backup with checksums: pg_basebackup --manifest-checksums=CRC32C, the default",
            );
        }
        if let (Some(listed), Some(own)) = (manifest.system_identifier, self.system())
            && listed != own
        {
            outcome.damage("backup_manifest", None, "it belongs to another server than global/pg_control");
        }
        let of_other = |bytes: &Vec<u8>| own_sums::control(bytes, &text(LABEL), &manifest.wal);
        if let Some(damage) = self.kept.get(CONTROL).and_then(of_other) {
            outcome.damage(CONTROL, None, damage);
        }
    }

    /// Compares the relation maps with the files that they name. If the replay of WAL may write maps (`may_be_replayed`), those of the backup
    /// need not fit.
    pub(super) fn compare_maps(&self, may_be_replayed: bool, outcome: &mut Outcome) {
        if self.manifest.is_none() {
            return;
        }
        for (directory, bytes) in &self.maps {
            // Parts of incremental backups have a name of their own.
            let has_file = |file: u32| {
                let names = [format!("{directory}/{file}"), format!("{directory}/INCREMENTAL.{file}")];
                names.iter().any(|name| self.places.contains_key(name))
            };
            let Some(damage) = own_sums::map(bytes, has_file) else { continue };
            let path = format!("{directory}{FILENODES}");
            if may_be_replayed {
                outcome.gap(
                    format!("{path}: {damage}, unless the WAL of the backup replaces it"),
                    "restore the backup: --restore",
                );
            } else {
                outcome.damage(path, None, damage);
            }
        }
    }

    /// Names the links outside of the tablespaces.
    fn name_links(&self, outcome: &mut Outcome) {
        let mut links = self.links.iter().filter(|path| !path.starts_with(TABLESPACES));
        let Some(first) = links.next() else { return };
        outcome.recipe.link = Some(first.clone());
        let more = links.count() as u64;
        let more = if more > 0 { format!(" and {}", counted(more, "other link")) } else { String::new() };
        outcome.gap(
            format!("{first}{more}: a tar file has only the link, not the files to which it leads"),
            "make the next backup with pg_basebackup, or let tar follow links: tar --dereference",
        );
    }

    fn missing(&self, is_read: bool, outcome: &mut Outcome) {
        let missing: Vec<String> = self
            .paths()
            .into_iter()
            .zip(&self.seen)
            .filter(|(path, seen)| !**seen && !path.starts_with("pg_wal/"))
            .map(|(path, _)| path)
            .collect();
        if !is_read {
            // The rest of the damaged tar file has them, or had them.
            if !missing.is_empty() {
                let are = if missing.len() == 1 { "is" } else { "are" };
                let files = counted(missing.len() as u64, "file");
                outcome.damage("backup_manifest", None, format!("it lists {files} that {are} missing"));
            }
            return;
        }
        for path in missing {
            outcome.damage(path, None, "it is missing");
        }
        if self.manifest.is_none() {
            for needed in [VERSION, CONTROL] {
                if !self.kept.contains_key(needed) {
                    outcome.damage(needed, None, "it is missing");
                }
            }
            let is_shut_down = self.kept.get(CONTROL).and_then(|bytes| own_sums::is_shut_down(bytes));
            if is_shut_down == Some(false) && !self.kept.contains_key(LABEL) {
                outcome.damage(
                    LABEL,
                    None,
                    "it is missing, and the server was running: without it, a restore begins at a later point of the WAL than it has to, and may lose \
                     changes without an error; copy it from the backup again",
                );
            }
        }
        for needed in DIRECTORIES {
            if !self.directories.contains(needed) {
                outcome.damage(
                    needed,
                    None,
                    "the directory is missing, and a server needs it: create it, empty",
                );
            }
        }
    }
}

/// The kind of a file with a sum of its own, by its path.
fn summed(path: &str) -> Option<Summed> {
    if path == CONTROL {
        Some(Summed::Control)
    } else if path.ends_with(FILENODES) {
        Some(Summed::Map)
    } else if path == ORIGINS || path.starts_with(PREPARED) {
        Some(Summed::Whole)
    } else {
        None
    }
}

/// Reads to the end: number of bytes, and the first ones.
fn read(
    content: &mut dyn Read,
    mut sum: Option<&mut Checksum>,
    mut pages: Option<&mut Pages>,
) -> io::Result<(u64, Vec<u8>)> {
    let mut piece = vec![0; BUFFER];
    let (mut bytes, mut beginning) = (0, Vec::new());
    loop {
        let read = content.read(&mut piece)?;
        if read == 0 {
            return Ok((bytes, beginning));
        }
        let piece = &piece[..read];
        if let Some(sum) = &mut sum {
            sum.update(piece);
        }
        if let Some(pages) = &mut pages {
            pages.feed(piece);
        }
        beginning.extend_from_slice(&piece[..read.min(KEPT - beginning.len())]);
        bytes += read as u64;
    }
}
