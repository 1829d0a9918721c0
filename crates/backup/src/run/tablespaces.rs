//! Tablespaces in base backups. A plain backup has their files beside its data directory; a restored data directory has them within it, so that
//! its server writes nowhere else.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use connect::ConnectError;
use server::Session;
use server::quote::shown;

use super::base::unpack_tar;
use super::step::{Trouble, size};
use super::{Subject, remove};
use crate::error::{BackupError, OnPath};
use crate::way::{Format, Way};

/// Directory of the files of all tablespaces in a restored data directory.
pub(super) const OWN: &str = "pgrig_tablespaces";
/// Symbolic links to the tablespaces, by their OIDs.
const LINKS: &str = "pg_tblspc";
/// Names the directories of the original, in which the server would create the tablespaces.
const MAP: &str = "tablespace_map";

/// A tablespace of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tablespace {
    oid: u32,
    name: String,
    /// Its directory on the server's machine.
    location: String,
}

/// Reads them from the catalog.
pub(super) async fn read(session: &Session) -> Result<Vec<Tablespace>, ConnectError> {
    let rows = session.rows(include_str!("../sql/tablespaces.sql"), &[]).await?;
    let of_row = |row: &tokio_postgres::Row| Tablespace {
        oid: row.get("oid"),
        name: row.get("name"),
        location: row.get("location"),
    };
    Ok(rows.iter().map(of_row).collect())
}

/// Refuses the way if the server has tablespaces that it had not when the plan was made: the WAL of the backup would create them in a restored
/// server, in the directories of the original.
pub(super) async fn refuse_new(subject: &Subject) -> Result<(), Trouble> {
    let session = Session::open(&subject.target).await?;
    let all = read(&session).await?;
    session.close().await;
    match all.iter().find(|one| !subject.facts.tablespaces.contains(one)) {
        Some(new) => Err(Trouble::Way(format!(
            "tablespace {} was created in the server during the rehearsal, and a restored server would write into its directory: run pgrig again",
            shown(&new.name)
        ))),
        None => Ok(()),
    }
}

/// Those of a backup as tar files, each of which has the OID as its name. Their directories on the server's machine do not matter.
pub(crate) fn of_tar_files(backup: &Path) -> Result<Vec<Tablespace>, BackupError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(backup).on("read", backup)? {
        let name = entry.on("read", backup)?.file_name().to_string_lossy().into_owned();
        let oid = name.split_once(".tar").and_then(|(stem, _)| stem.parse::<u32>().ok());
        let of_oid = |oid| Tablespace { oid, name: String::new(), location: String::new() };
        found.extend(oid.map(of_oid));
    }
    Ok(found)
}

/// Why these tablespaces are not restored; none if they are.
pub(super) fn hindrance(all: &[Tablespace]) -> Option<String> {
    let inside = all.iter().find(|one| !one.location.starts_with('/'))?;
    Some(format!(
        "tablespace {} is within the data directory (allow_in_place_tablespaces), and pgrig does not restore such tablespaces",
        shown(&inside.name)
    ))
}

/// The directory with the tablespaces of a plain backup.
pub(super) fn beside(backup: &Path) -> PathBuf {
    let mut path = backup.to_owned().into_os_string();
    path.push(".tablespaces");
    path.into()
}

/// Bytes of a backup with its tablespaces.
pub(super) fn size_with(backup: &Path) -> u64 {
    size(backup) + size(&beside(backup))
}

/// Deletes a backup with its tablespaces, as far as they are there.
pub(super) fn remove_with(backup: &Path) -> Result<(), BackupError> {
    remove(backup)?;
    remove(&beside(backup))
}

/// The options by which pg_basebackup stores the tablespaces of a plain backup beside it. Tar files have names of their own.
pub(super) fn of_backup(way: &Way, all: &[Tablespace], backup: &Path) -> Vec<OsString> {
    if way.format == Format::BaseTar {
        return Vec::new();
    }
    let beside = beside(backup);
    let option = |one: &Tablespace| mapping(Path::new(&one.location), &beside.join(one.oid.to_string()));
    all.iter().map(option).collect()
}

/// The options by which pg_combinebackup stores the tablespaces of the last backup within the place.
pub(super) fn of_combination(all: &[Tablespace], last: &Path, place: &Path) -> Vec<OsString> {
    let (from, to) = (beside(last), place.join(OWN));
    let option = |one: &Tablespace| mapping(&from.join(one.oid.to_string()), &to.join(one.oid.to_string()));
    all.iter().map(option).collect()
}

/// `--tablespace-mapping=OLD=NEW`, in which the programs need a backslash before other equals signs.
fn mapping(old: &Path, new: &Path) -> OsString {
    let escaped = |path: &Path| path.to_string_lossy().replace('=', "\\=");
    format!("--tablespace-mapping={}={}", escaped(old), escaped(new)).into()
}

/// Creates the directories into which tablespaces are unpacked.
pub(crate) fn prepare(all: &[Tablespace], place: &Path) -> Result<(), BackupError> {
    for one in all {
        let path = place.join(OWN).join(one.oid.to_string());
        fs::create_dir_all(&path).on("create", &path)?;
    }
    Ok(())
}

/// The commands that unpack the tablespaces; each inner list is joined by pipes.
pub(crate) fn unpack(way: &Way, all: &[Tablespace], backup: &Path, place: &Path) -> Vec<Vec<Command>> {
    let own = place.join(OWN);
    if all.is_empty() {
        return Vec::new();
    }
    if way.format == Format::BaseTar {
        let name = |one: &Tablespace| one.oid.to_string();
        return all.iter().filter_map(|one| unpack_tar(backup, &name(one), &own.join(name(one)))).collect();
    }
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(beside(backup).join(".")).arg(own);
    vec![vec![copy]]
}

/// Replaces the links to tablespaces by links to the directories within the place. They are relative, because the place is renamed.
///
/// # Errors
/// If there is another tablespace: a server would write to its directory.
pub(crate) fn link(all: &[Tablespace], place: &Path) -> Result<(), Trouble> {
    let links = place.join(LINKS);
    for one in all {
        let path = links.join(one.oid.to_string());
        remove(&path)?;
        symlink(Path::new("..").join(OWN).join(one.oid.to_string()), &path).on("create", &path)?;
    }
    for entry in fs::read_dir(&links).on("read", &links)? {
        let found = entry.on("read", &links)?.file_name();
        if !all.iter().any(|one| found == *one.oid.to_string()) {
            let oid = found.to_string_lossy();
            return Err(Trouble::Way(format!(
                "the backup has a tablespace (OID {oid}) that was created during the rehearsal: run pgrig again"
            )));
        }
    }
    Ok(())
}

/// Moves tablespaces that were copied to the places of the links to them.
pub(crate) fn move_copied(place: &Path) -> Result<(), BackupError> {
    let (links, own) = (place.join(LINKS), place.join(OWN));
    fs::create_dir_all(&own).on("create", &own)?;
    let entries: Vec<_> = fs::read_dir(&links).on("read", &links)?.collect();
    for entry in entries {
        let path = entry.on("read", &links)?.path();
        let Some(name) = path.file_name() else { continue };
        fs::rename(&path, own.join(name)).on("move", &path)?;
        symlink(Path::new("..").join(OWN).join(name), &path).on("create", &path)?;
    }
    Ok(())
}

/// A tablespace that a tool has restored: the name of the link to it, and its directory within [`OWN`].
pub(super) struct Taken {
    name: OsString,
    path: PathBuf,
}

/// Moves the tablespaces that a tool has restored below this directory into the place, and deletes the links to them, which [`relink`]
/// creates anew. The inner error says why a server would change files elsewhere.
pub(super) fn take_in(place: &Path, from: &Path) -> Result<Result<Vec<Taken>, String>, BackupError> {
    let links = place.join(LINKS);
    let is_own = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let mut taken = Vec::new();
    // A link could lead to the original: nothing there is touched.
    if !is_own(place) || !is_own(&links) {
        return Ok(Ok(taken));
    }
    let whole = fs::canonicalize(from).on("read", from)?;
    for entry in fs::read_dir(&links).on("read", &links)? {
        let entry = entry.on("read", &links)?;
        let name = entry.file_name();
        let Ok(led) = fs::read_link(entry.path()) else { continue };
        let found = fs::canonicalize(entry.path()).ok();
        match found.as_deref().and_then(|found| found.strip_prefix(&whole).ok()) {
            Some(path) => taken.push(Taken { name, path: path.to_owned() }),
            None => {
                return Ok(Err(format!(
                    "tablespace {} leads to {}, and not into the directory {{tablespaces}}: its command has to restore each tablespace there",
                    name.to_string_lossy(),
                    led.display()
                )));
            }
        }
    }
    if taken.is_empty() {
        return Ok(Ok(taken));
    }
    for one in &taken {
        remove(&links.join(&one.name))?;
    }
    fs::rename(from, place.join(OWN)).on("move", from)?;
    forget_places(place)?;
    Ok(Ok(taken))
}

/// Links the tablespaces. The links are relative, because the place is renamed.
pub(super) fn relink(all: &[Taken], place: &Path) -> Result<(), BackupError> {
    for one in all {
        let path = place.join(LINKS).join(&one.name);
        symlink(Path::new("..").join(OWN).join(&one.path), &path).on("create", &path)?;
    }
    Ok(())
}

/// Deletes the list of the original's directories, once the files have been compared with the manifest, in which it is.
pub(super) fn forget_places(place: &Path) -> Result<(), BackupError> {
    remove(&place.join(MAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(oid: u32, location: &str) -> Tablespace {
        Tablespace { oid, name: "fast".to_owned(), location: location.to_owned() }
    }

    #[test]
    fn equals_signs_in_paths_are_escaped() {
        let (plain, tar): (Way, Way) = ("base".parse().unwrap(), "base-tar".parse().unwrap());
        let all = [at(7, "/disk=1/a")];
        let expected = "--tablespace-mapping=/disk\\=1/a=/b.tablespaces/7";
        assert_eq!(of_backup(&plain, &all, Path::new("/b")), [expected]);
        assert!(of_backup(&tar, &all, Path::new("/b")).is_empty());
        let expected = "--tablespace-mapping=/b.tablespaces/7=/place/pgrig_tablespaces/7";
        assert_eq!(of_combination(&all, Path::new("/b"), Path::new("/place")), [expected]);
    }

    #[test]
    fn only_links_within_the_place_are_left() {
        let directory = testkit::directory();
        let place = directory.path();
        let all = [at(7, "/a")];
        fs::create_dir(place.join(LINKS)).unwrap();
        symlink("/elsewhere", place.join(LINKS).join("7")).unwrap();
        prepare(&all, place).unwrap();
        assert!(link(&all, place).is_ok());
        let led = fs::canonicalize(place.join(LINKS).join("7")).unwrap();
        assert_eq!(led, fs::canonicalize(place.join(OWN).join("7")).unwrap());
        symlink("/elsewhere", place.join(LINKS).join("8")).unwrap();
        assert!(matches!(link(&all, place), Err(Trouble::Way(why)) if why.contains("(OID 8)")));
    }

    #[test]
    fn tablespaces_that_a_tool_has_restored_are_moved_into_the_place() {
        let directory = testkit::directory();
        let [place, from, other] = ["place", "spaces", "other"].map(|name| directory.path().join(name));
        fs::create_dir_all(place.join(LINKS)).unwrap();
        for path in [from.join("fast"), other.clone()] {
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("PG"), "").unwrap();
        }
        assert!(take_in(&place, &from).unwrap().is_ok_and(|taken| taken.is_empty()));
        symlink(&other, place.join(LINKS).join("7")).unwrap();
        let why = take_in(&place, &from).unwrap().err().unwrap();
        assert!(why.starts_with("tablespace 7 leads to /") && other.join("PG").is_file(), "{why}");
        fs::remove_file(place.join(LINKS).join("7")).unwrap();
        symlink(from.join("fast"), place.join(LINKS).join("8")).unwrap();
        fs::write(place.join(MAP), "8 /fast\n").unwrap();
        // Through a link, nothing is changed.
        let led = directory.path().join("led");
        symlink(&place, &led).unwrap();
        assert!(take_in(&led, &from).unwrap().is_ok_and(|taken| taken.is_empty()));
        assert!(place.join(LINKS).join("8").is_symlink());
        let taken = take_in(&place, &from).unwrap().unwrap();
        assert!(!place.join(LINKS).join("8").is_symlink() && !place.join(MAP).exists() && !from.exists());
        relink(&taken, &place).unwrap();
        let led = fs::canonicalize(place.join(LINKS).join("8")).unwrap();
        assert_eq!(led, fs::canonicalize(place.join(OWN).join("fast")).unwrap());
        assert!(led.join("PG").is_file());
    }

    #[test]
    fn copied_files_are_moved_and_found_by_a_link() {
        let directory = testkit::directory();
        let place = directory.path();
        fs::create_dir_all(place.join(LINKS).join("7")).unwrap();
        fs::write(place.join(LINKS).join("7/PG"), "").unwrap();
        move_copied(place).unwrap();
        assert!(place.join(LINKS).join("7").is_symlink() && place.join(LINKS).join("7/PG").is_file());
        assert!(place.join(OWN).join("7/PG").is_file());
    }

    #[test]
    fn tar_files_of_tablespaces_are_those_with_a_number() {
        let directory = testkit::directory();
        for name in ["base.tar.gz", "16384.tar.gz", "16385.tar", "pg_wal.tar", "backup_manifest"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let mut found: Vec<u32> = of_tar_files(directory.path()).unwrap().iter().map(|one| one.oid).collect();
        found.sort_unstable();
        assert_eq!(found, [16384, 16385]);
    }

    #[test]
    fn one_within_the_data_directory_is_a_hindrance() {
        assert_eq!(hindrance(&[at(7, "/a")]), None);
        assert!(
            hindrance(&[at(7, "/a"), at(8, "pg_tblspc/8")]).unwrap().contains("tablespace fast is within")
        );
    }
}
