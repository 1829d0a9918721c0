//! Backups by another tool: its commands, and the checks before pgrig starts a server on the restored files.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use connect::{ConnectError, Target};
use server::Session;

use super::pitr::no_load;
use super::probe::beside;
use super::relay::Relay;
use super::step::{Measured, STUCK, Trouble, connected, size};
use super::{Restored, Run, SMALL, Subject, of_restore, remove, sequences, tablespaces, verify};
use crate::error::{BackupError, OnPath};
use crate::load::Load;
use crate::run::source::{Facts, Source};
use crate::tool::{Placeholder, Tool, of_path};
use crate::verified::{Verified, Witness};
use crate::way::Way;

/// Directory of the tool's temporary files, beside the backup.
const TEMPORARY: &str = "tmp";
/// Variables that belong to the tool, though they begin like those of libpq.
const OF_TOOLS: &str = "PGBACKREST_";
/// Hint for files that would fetch their WAL.
const NO_FETCH: &str = "; pgrig does not run the restored restore_command: the restore command of the tool has to put WAL into pg_wal, too";
/// Makes a server create tablespaces in other directories, and replay WAL there.
const MAP: &str = "tablespace_map";
/// Directory of restored tablespaces, beside the restored data directory.
const SPACES: &str = "tablespaces";
/// Why a tool is not rehearsed: its restore would write to the tablespaces of the original.
const TABLESPACES: &str = "the server has tablespaces, and the tool would restore them to the directories of the original: give {tablespaces} in \
                           --tool-restore, the directory into which the command then has to restore all of them, or rehearse --way base or base-tar";
/// Shortest line of a command that is hidden in messages. Shorter ones, such as `fi`, are parts of words.
const LEAST: usize = 4;
/// Why files of another server are refused.
const OTHER: &str = "the restored files are those of another server (its system identifier differs)";
/// Segment of WAL, of which the last one is filled up.
const SEGMENT: u64 = 16 << 20;

/// Why the tool cannot be used here, with the remedy.
pub(crate) fn hindrance(tool: &Tool, facts: &Facts, load: Option<&Load>) -> Option<String> {
    if tool.needs_data() && facts.data.is_none() {
        return Some(
            "it needs {data}, but the server's data directory is not on this machine, or the role may not ask for it: run pgrig on the \
             server's machine, with a superuser or a member of pg_monitor, or leave out {data}"
                .to_owned(),
        );
    }
    let has_no_load = if tool.recovers() { no_load(load) } else { None };
    let is_safe = facts.tablespaces.is_empty() || tool.maps_tablespaces();
    let has_tablespaces = || (!is_safe).then(|| TABLESPACES.to_owned());
    has_no_load.or_else(has_tablespaces).or_else(|| facts.no_restore())
}

/// A server's identity, and its position in WAL.
#[derive(Clone, Copy, Debug)]
struct Position {
    system: i64,
    bytes: i64,
}

impl Position {
    async fn of(target: &Target) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        let row = session.row(include_str!("../sql/server_position.sql"), &[]).await?;
        session.close().await;
        Ok(Self { system: row.get("system"), bytes: row.get("position") })
    }

    /// Why a server that is here cannot be a backup that was begun there.
    fn refuse(self, begun: Self) -> Option<String> {
        if self.system != begun.system {
            return Some(OTHER.to_owned());
        }
        (self.bytes < begun.bytes).then(|| {
            format!(
                "the restored files are those of an older backup: they end at {} in WAL, and this backup began at {}",
                lsn(self.bytes),
                lsn(begun.bytes)
            )
        })
    }
}

fn lsn(bytes: i64) -> String {
    format!("{:X}/{:X}", bytes >> 32, bytes & 0xFFFF_FFFF)
}

/// The commands of a tool in a trial, and the values of their placeholders.
pub(super) struct Commands<'a> {
    tool: &'a Tool,
    subject: &'a Subject,
    /// Directory of the backup.
    backup: PathBuf,
    /// Directory of the tool's temporary files.
    temporary: PathBuf,
    /// Directory into which the tool restores.
    pub(super) place: PathBuf,
    /// Directory into which it restores tablespaces.
    spaces: PathBuf,
    /// The relay to which the commands connect, if they do not connect to the server.
    relay: Option<&'a Relay>,
    /// The commands as the shell gets them.
    filled: RefCell<Vec<String>>,
}

impl<'a> Commands<'a> {
    /// Creates empty directories for the backup and for temporary files. The commands connect through the relay, if there is one.
    pub(super) fn prepare(
        run: &Run<'_>,
        way: &'a Way,
        subject: &'a Subject,
        directory: &Path,
        relay: Option<&'a Relay>,
    ) -> Result<Self, Trouble> {
        let Some(tool) = &way.tool else { return Err(Trouble::Way("it has no commands".to_owned())) };
        let temporary = run.scratch.work.join(TEMPORARY);
        let place = run.scratch.base.place_for_restored()?;
        // On the disk of the place, into which they are moved.
        let spaces = place.with_file_name(SPACES);
        for path in [directory, &temporary, &spaces] {
            remove(path)?;
            fs::DirBuilder::new().mode(0o700).create(path).on("create", path)?;
        }
        let filled = RefCell::default();
        let backup = directory.to_owned();
        Ok(Self { tool, subject, backup, temporary, place, spaces, relay, filled })
    }

    /// Without the lines of the commands, which a shell may print, and which may contain secrets.
    pub(super) fn hidden(&self, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::Way(why) => Trouble::Way(without(&self.filled.borrow(), &why)),
            Trouble::Run(BackupError::Lost(why)) => {
                BackupError::Lost(without(&self.filled.borrow(), &why)).into()
            }
            run @ Trouble::Run(_) => run,
        }
    }

    fn value(&self, asked: Placeholder, time: &str) -> String {
        match asked {
            Placeholder::Backup => of_path(&self.backup),
            Placeholder::Restore => of_path(&self.place),
            Placeholder::Url => self.url(),
            Placeholder::Data => self.subject.facts.data.as_deref().map_or(String::new(), of_path),
            Placeholder::Time => time.to_owned(),
            Placeholder::Tablespaces => of_path(&self.spaces),
        }
    }

    /// The URL of the database, without a password.
    fn url(&self) -> String {
        let target = &self.subject.target;
        self.relay.map_or_else(|| target.url_without_password(), |relay| relay.url(target))
    }

    /// A command with these placeholders as variables, too.
    fn command(&self, text: &str, places: &[Placeholder], time: &str) -> Command {
        self.filled.borrow_mut().push(text.to_owned());
        let mut command = shell(text, &self.subject.target);
        command.envs(self.relay.map(Relay::variables).unwrap_or_default());
        command.env("TMPDIR", &self.temporary);
        for place in Placeholder::ALL {
            command.env_remove(place.variable());
        }
        command.envs(places.iter().map(|place| (place.variable(), self.value(*place, time))));
        command
    }

    /// The command that backs up.
    pub(super) fn back_up(&self) -> Command {
        let text = self.tool.backup(&|place| self.value(place, ""));
        self.command(&text, &Placeholder::OF_BACKUP, "")
    }

    /// The command that stores WAL; none if the restore needs none.
    pub(super) fn store_wal(&self) -> Option<Command> {
        let text = self.tool.wal(&|place| self.value(place, ""))?;
        Some(self.command(&text, &Placeholder::OF_BACKUP, ""))
    }

    /// The command that restores, to this time if there is one.
    fn restore(&self, time: Option<&str>) -> Command {
        let time = time.unwrap_or_default();
        let text = self.tool.restore(&|place| self.value(place, time));
        let mut places = Placeholder::ALL.to_vec();
        places.retain(|place| *place != Placeholder::Time || !time.is_empty());
        self.command(&text, &places, time)
    }

    /// Bytes of the backup. Fails if there are none.
    pub(super) fn size(&self) -> Result<u64, Trouble> {
        let size = size(&self.backup);
        if size == 0 || !self.backup.is_dir() {
            return Err(Trouble::Way(
                "its backup command succeeded, but there are no data in the directory {backup}".to_owned(),
            ));
        }
        Ok(size)
    }

    /// Moves restored tablespaces into the data directory. Returns why no server can be started there; it has to have this identifier.
    fn adopt(&self, system: i64) -> Result<Option<String>, BackupError> {
        let place = &self.place;
        let taken = if self.tool.maps_tablespaces() {
            tablespaces::take_in(place, &self.spaces)?
        } else {
            Ok(Vec::new())
        };
        let taken = match taken {
            Ok(taken) => taken,
            Err(why) => return Ok(Some(why)),
        };
        if let Some(why) = unfit(place, system)? {
            return Ok(Some(why));
        }
        tablespaces::relink(&taken, place)?;
        Ok(None)
    }

    /// Deletes the temporary files.
    pub(super) fn clean(&self) -> Result<(), BackupError> {
        remove(&self.temporary)?;
        remove(&self.spaces)
    }
}

impl Run<'_> {
    pub(super) async fn tool(
        &self,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<Restored, Trouble> {
        let commands = Commands::prepare(self, way, subject, directory, None)?;
        let tried = self.tool_by(way, subject, &commands).await;
        commands.clean()?;
        tried.map_err(|trouble| commands.hidden(trouble))
    }

    /// Runs the command that backs up and, for a restore to a point in time, the one that stores the WAL of one more load, both through the
    /// relay. Returns the bytes of the backup.
    pub(super) async fn tool_through(
        &self,
        relay: &Relay,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<u64, Trouble> {
        let commands = Commands::prepare(self, way, subject, directory, Some(relay))?;
        let backed_up = async {
            if way.recovers() {
                return self.tool_stored(way, subject, &commands).await.map(|made| made.size);
            }
            self.watch_backup(way, subject).run_group(commands.back_up()).await?;
            commands.size()
        };
        let size = backed_up.await;
        commands.clean()?;
        size.map_err(|trouble| commands.hidden(trouble))
    }

    async fn tool_by(
        &self,
        way: &Way,
        subject: &Subject,
        commands: &Commands<'_>,
    ) -> Result<Restored, Trouble> {
        let Subject { target: original, facts, source, .. } = subject;
        let begun = Position::of(original).await?;
        let watch = self.watch_backup(way, subject);
        watch.check_room(&self.scratch.work, facts.server_bytes + SEGMENT + SMALL)?;
        let work = watch.run_group(commands.back_up());
        let (backup, beside) = match beside(self.prober.as_ref(), original, source, work).await {
            Ok(made) => made,
            Err(trouble) => return Err(subject.of_backup(way, trouble).await),
        };
        let witness = witness(source, original).await?;
        let size = commands.size()?;
        let needs = facts.server_bytes + SEGMENT;
        let mut restore = self.restored_by(way, commands, (None, needs)).await?;
        let verified = self.started((way, subject), (witness, begun), &commands.place, &mut restore).await?;
        Ok(Restored { backup, restore, size, verified, increment: None, recovery: None, beside })
    }

    /// Runs the restore command, to this time if there is one, and checks that a server can be started on its files. They need so many
    /// bytes.
    pub(super) async fn restored_by(
        &self,
        way: &Way,
        commands: &Commands<'_>,
        (time, needs): (Option<&str>, u64),
    ) -> Result<Measured, Trouble> {
        let place = &commands.place;
        let directories: Vec<&Path> = vec![&self.scratch.work, place, &commands.spaces];
        let watch = self.watch(format!("the restore of {way}"), directories, Some(STUCK));
        watch.check_room(place, needs + SMALL)?;
        tablespaces::refuse_new(commands.subject).await?;
        let restore = watch.run_group(commands.restore(time)).await.map_err(of_restore)?;
        let Position { system, .. } = Position::of(&commands.subject.target).await?;
        if let Some(why) = commands.adopt(system)? {
            // Not the files to which it may lead.
            remove(place)?;
            return Err(Trouble::Way(format!("its restore command succeeded, but {why}")));
        }
        Ok(restore)
    }

    /// Starts a server on the restored files, compares its content, and reads its other databases.
    async fn started(
        &self,
        (way, subject): (&Way, &Subject),
        (witness, first): (Witness, Position),
        place: &Path,
        restore: &mut Measured,
    ) -> Result<Verified, Trouble> {
        let Subject { target: original, facts, source, .. } = subject;
        // The restore command may have fetched WAL from after the backup.
        tablespaces::refuse_new(subject).await?;
        let later = sequences::later(original).await?;
        let fetches = place.join("recovery.signal").exists();
        let started = self.start_restored(facts, restore).await;
        let (running, target) = started.map_err(|trouble| match trouble {
            Trouble::Way(why) if fetches => Trouble::Way(format!("{why}{NO_FETCH}")),
            other => other,
        })?;
        let compared = async {
            if let Some(why) = Position::of(&target).await?.refuse(first) {
                return Err(Trouble::Way(why));
            }
            let verified = verify::verify(&target, (&source.content, &later), witness, true).await;
            let verified = verified.map_err(|trouble| self.of_reading(trouble))?;
            Box::pin(self.with_others(way, &target, verified)).await
        };
        let verified = compared.await;
        self.end_restored(running, verified).await
    }
}

async fn witness(source: &Source, original: &Target) -> Result<Witness, ConnectError> {
    Ok(if source.is_unchanged(original).await? { Witness::Unchanged } else { Witness::Changed })
}

/// `sh -c`, with standard output among the messages. A tool may also connect to other servers, so it has no address that would hold for
/// them, too.
fn shell(text: &str, target: &Target) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec 1>&2\n{text}"));
    connected(&mut command, target, |name| Target::is_in_the_way(name) && !name.starts_with(OF_TOOLS));
    command.env_remove("PGHOSTADDR");
    command
}

/// The text without the lines of these commands.
fn without(commands: &[String], text: &str) -> String {
    let lines = commands.iter().flat_map(|command| command.lines()).map(str::trim);
    let mut lines: Vec<&str> = lines.filter(|line| line.len() >= LEAST).collect();
    // One line may be a part of another.
    lines.sort_by_key(|line| Reverse(line.len()));
    lines.into_iter().fold(text.to_owned(), |text, line| text.replace(line, "***"))
}

/// Why no server can be started in this directory, or why it would change files elsewhere. Its files have to be those of the server with
/// this identifier.
fn unfit(place: &Path, system: i64) -> Result<Option<String>, BackupError> {
    let found = fs::symlink_metadata(place);
    if !found.is_ok_and(|found| found.is_dir()) {
        return Ok(Some("the directory {restore} is gone, or is a symbolic link".to_owned()));
    }
    if !place.join("PG_VERSION").is_file() {
        return Ok(Some("there is no data directory in {restore}: it has no file PG_VERSION".to_owned()));
    }
    if let Some((name, link)) = link_within(place)? {
        return Ok(Some(match link {
            Link::Symbolic => format!("{name} is a symbolic link, so its server would change other files"),
            Link::Hard => format!("{name} is a hard link, so its server would change another file, too"),
        }));
    }
    if fs::metadata(place.join(MAP)).is_ok_and(|map| map.len() > 0) {
        return Ok(Some(format!(
            "the restored files have a {MAP}, so their server would change the tablespaces that it names"
        )));
    }
    // Without that file, no server starts.
    let is_other = pgserver::system_identifier(place).is_some_and(|found| found != system);
    Ok(is_other.then(|| OTHER.to_owned()))
}

/// A link to a file, which may be outside of the directory that has the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Symbolic,
    Hard,
}

/// The first link in the directory or below it, by its path from there.
pub(crate) fn link_within(place: &Path) -> Result<Option<(String, Link)>, BackupError> {
    let mut left: Vec<PathBuf> = vec![place.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).on("read", &directory)? {
            let path = entry.on("read", &directory)?.path();
            let found = fs::symlink_metadata(&path).on("read", &path)?;
            let name = || path.strip_prefix(place).unwrap_or(&path).display().to_string();
            if found.is_symlink() {
                return Ok(Some((name(), Link::Symbolic)));
            }
            if found.is_dir() {
                left.push(path);
            } else if found.nlink() > 1 {
                return Ok(Some((name(), Link::Hard)));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_directory_is_a_copy_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let (place, other) = (directory.path().join("place"), directory.path().join("other"));
        let why = || unfit(&place, 7).unwrap().unwrap();
        assert!(why().contains("is gone"));
        fs::create_dir_all(place.join("base/1")).unwrap();
        assert!(why().contains("no file PG_VERSION"));
        fs::write(place.join("PG_VERSION"), "15\n").unwrap();
        assert_eq!(unfit(&place, 7).unwrap(), None);
        fs::create_dir(place.join("global")).unwrap();
        fs::write(place.join("global/pg_control"), 7_i64.to_ne_bytes()).unwrap();
        fs::write(place.join(MAP), "").unwrap();
        assert_eq!(unfit(&place, 7).unwrap(), None);
        assert!(unfit(&place, 8).unwrap().unwrap().contains("another server"));
        fs::write(place.join(MAP), "16384 /fast\n").unwrap();
        assert!(why().contains("have a tablespace_map"));
        fs::remove_file(place.join(MAP)).unwrap();
        fs::write(&other, "data").unwrap();
        fs::hard_link(&other, place.join("base/1/1259")).unwrap();
        assert!(why().starts_with("base/1/1259 is a hard link"));
        fs::remove_file(place.join("base/1/1259")).unwrap();
        std::os::unix::fs::symlink(&other, place.join("base/1/1249")).unwrap();
        assert!(why().starts_with("base/1/1249 is a symbolic link"));
        fs::remove_dir_all(&place).unwrap();
        std::os::unix::fs::symlink(directory.path(), &place).unwrap();
        assert!(why().contains("is a symbolic link"));
    }

    #[test]
    fn a_tool_has_the_variables_of_the_server_without_its_address() {
        let command = shell("true", &Target::tcp("192.0.2.1", 5432, "alice", "shop"));
        let set = |name: &str| {
            command.get_envs().any(|(known, value)| known.to_str() == Some(name) && value.is_some())
        };
        assert!(set("PGHOST") && set("PGSSLMODE") && !set("PGHOSTADDR"));
    }

    #[test]
    fn lines_of_a_command_are_hidden_in_messages() {
        let commands = ["  tool --key s3cret (\nfi\n".to_owned(), "tool --key s3cret ( && more".to_owned()];
        let said = "sh: -c: line 2: `  tool --key s3cret ('; sh: `tool --key s3cret ( && more': file";
        assert_eq!(without(&commands, said), "sh: -c: line 2: `  ***'; sh: `***': file");
    }

    #[test]
    fn an_older_backup_and_that_of_another_server_are_refused() {
        let at = |system, bytes| Position { system, bytes };
        assert_eq!(at(1, 10).refuse(at(1, 10)), None);
        let why = at(1, 0x1_0000_0028).refuse(at(1, 0x1_0300_0028)).unwrap();
        assert!(why.contains("they end at 1/28 in WAL, and this backup began at 1/3000028"), "{why}");
        assert!(at(2, 10).refuse(at(1, 5)).unwrap().contains("another server"));
    }
}
