//! Restores base backups: files are copied or unpacked, missing WAL is added, and a server is started on them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use connect::Target;

use super::outcome::Restored;
use super::read::{Databases, read};
use super::{Failed, RestoreError, Run};
use crate::check::format::wal;
use crate::check::recipe::Form;
use crate::error::OnPath;
use crate::run::SMALL;
use crate::run::base::{prepare, unpack};
use crate::run::scratch::undisturbed;
use crate::run::step::{Trouble, Watch};
use crate::run::tablespaces::{self, Tablespace};
use crate::run::tool::link_within;
use crate::way::{Compression, Format, Way};

/// Bytes of a restored server for each byte of a backup without a list of its files.
const GROWTH: u64 = 3;
const VERSION: &str = "PG_VERSION";
/// Would make the server create tablespaces elsewhere.
const MAP: &str = "tablespace_map";

impl Run<'_> {
    pub(super) async fn restore_base(&self, restored: &mut Restored) -> Result<(), Failed> {
        let place = self.scratch.base.place_for_restored().map_err(crate::BackupError::from)?;
        let watch = Watch {
            doing: "the restore".to_owned(),
            directories: vec![&self.scratch.work, &place],
            log: self.scratch.work.join("messages"),
            stop: self.stop,
            stuck: None,
            server: None,
            space: None,
        };
        let is_plain = self.found.recipe.form == Some(Form::Base);
        let read_bytes = self.plan.bytes.unwrap_or_default();
        let unlisted = if is_plain { read_bytes } else { read_bytes.saturating_mul(GROWTH) };
        watch.check_room(&place, self.found.recipe.bytes.unwrap_or(unlisted) + SMALL)?;
        prepare(&place).on("create", &place)?;
        let in_tar_files = self.tablespaces_in_tar_files()?;
        tablespaces::prepare(&in_tar_files, &place)?;
        let of_tablespaces = tablespaces::unpack(&tar_files(), &in_tar_files, &self.plan.path, &place);
        (self.tell)("restoring the base backup");
        let began = Instant::now();
        for commands in self.unpack_commands(&place)?.into_iter().chain(of_tablespaces) {
            watch.run(commands).await?;
        }
        if !place.join(VERSION).is_file() {
            return Err(RestoreError::Nested { path: self.plan.path.clone() }.into());
        }
        if let Some((path, _)) = link_within(&place)? {
            return Err(RestoreError::Link { path: self.plan.path.clone(), link: path }.into());
        }
        if is_plain && self.found.recipe.has_tablespaces {
            tablespaces::move_copied(&place)?;
        }
        if !in_tar_files.is_empty() {
            tablespaces::link(&in_tar_files, &place)?;
        }
        self.drop_later_wal(&place)?;
        self.add_wal(&place)?;
        if place.join(MAP).exists() {
            fs::remove_file(place.join(MAP)).on("delete", &place)?;
        }
        let running = match self.scratch.start_base().await {
            Ok(running) => running,
            Err(error) => {
                self.scratch.end_base(None).await?;
                return Err(Trouble::Way(error.of_restored()).into());
            }
        };
        restored.seconds = began.elapsed().as_secs_f64();
        let at = running.connection();
        let (directory, port) = (at.socket_dir.clone(), at.port);
        let superuser = &self.request.superuser;
        let of = |database: &str| undisturbed(Target::embedded(&directory, port, superuser, database));
        let done =
            read(&Databases { of: &of, first: "template1", is_base: true, tell: self.tell }, restored).await;
        match self.scratch.end_base(Some(running)).await {
            // The server has ended by itself, which the reading has noticed.
            Err(_) if !restored.is_sound() => {
                self.scratch.end_base(None).await?;
            }
            ended => ended?,
        }
        done
    }

    /// The commands that copy or unpack all files; each inner list is joined by pipes.
    fn unpack_commands(&self, place: &Path) -> Result<Vec<Vec<Command>>, RestoreError> {
        let path = &self.plan.path;
        match self.found.recipe.form {
            Some(Form::Base) => {
                // pg_wal may be a symbolic link: the copy must not write to the backup.
                let mut copy = Command::new("cp");
                copy.args(["-R", "-L", "--preserve=mode,timestamps"]).arg(path.join(".")).arg(place);
                Ok(vec![vec![copy]])
            }
            Some(Form::OneTar) => {
                let mut tar = Command::new("tar");
                tar.args(["--extract", "--no-same-owner", "--directory"]).arg(place).arg("--file");
                let unpack = self.unpack()?;
                tar.arg(if unpack.is_some() { Path::new("-") } else { path });
                Ok(vec![unpack.into_iter().chain([tar]).collect()])
            }
            _ => Ok(unpack(&tar_files(), path, place)),
        }
    }

    /// The tablespaces of a backup as several tar files.
    fn tablespaces_in_tar_files(&self) -> Result<Vec<Tablespace>, Failed> {
        if self.found.recipe.form != Some(Form::BaseTar) {
            return Ok(Vec::new());
        }
        Ok(tablespaces::of_tar_files(&self.plan.path)?)
    }

    /// Deletes segments of WAL in the copy that are not those of the backup: the check has not read them, and a server would replay them, too.
    fn drop_later_wal(&self, place: &Path) -> Result<(), Failed> {
        let (ranges, unread) = (&self.found.recipe.wal, &self.found.recipe.unread_wal);
        let directory = place.join("pg_wal");
        let size = segment_size(&directory);
        let needed: BTreeSet<String> =
            ranges.iter().flat_map(|range| wal::segments(range, size)).map(|(_, name)| name).collect();
        if needed.is_empty() && unread.is_none() {
            return Ok(());
        }
        let is_later = |name: &String| unread.as_ref().map_or(!needed.contains(name), |first| name >= first);
        for entry in fs::read_dir(&directory).on("read", &directory)? {
            let entry = entry.on("read", &directory)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if wal::is_segment(&name) && is_later(&name) {
                fs::remove_file(entry.path()).on("delete", &entry.path())?;
            }
        }
        Ok(())
    }

    /// Copies the WAL that the backup itself does not have.
    fn add_wal(&self, place: &Path) -> Result<(), Failed> {
        let Some(archive) = &self.plan.wal else { return Ok(()) };
        let ranges = &self.found.recipe.wal;
        if ranges.is_empty() {
            return Err(RestoreError::WalWithoutManifest { path: self.plan.path.clone() }.into());
        }
        let size = segment_size(archive);
        for (_, name) in ranges.iter().flat_map(|range| wal::segments(range, size)) {
            let (from, to): (PathBuf, PathBuf) = (archive.join(&name), place.join("pg_wal").join(&name));
            if !to.exists() {
                fs::copy(&from, &to).on("copy", &from)?;
            }
        }
        Ok(())
    }
}

/// Base backups as tar files. Their names tell how they are compressed.
fn tar_files() -> Way {
    Way { format: Format::BaseTar, compression: Compression::NONE, jobs: 1, tool: None }
}

/// Size of the segments in a directory.
fn segment_size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let segments = entries.filter(|entry| wal::is_segment(&entry.file_name().to_string_lossy()));
    let sizes = segments.filter_map(|entry| Some(entry.metadata().ok()?.len()));
    sizes.filter(|size| size.is_power_of_two()).max().unwrap_or(16 << 20)
}
