//! The volumes that a server writes to, as this machine sees them.
//!
//! Only for a data directory that was proved to be this server's ([`crate::machine::data_directory`]):
//! of a remote server's volumes nothing can be known, so there are no [`Volumes`] of it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use serde::Serialize;
use tokio_postgres::{Client, Error};

use crate::machine;

/// Tablespaces that are no symbolic links (`pg_tablespace_d.h`).
const PG_DEFAULT: u32 = 1663;
const PG_GLOBAL: u32 = 1664;

/// Free and used space of a volume, bytes, as `df` counts it. Space that is reserved for root is in `size` only: the server
/// cannot have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Size of the file system, including the space that is reserved for root.
    pub size: u64,
    /// Space that files take.
    pub used: u64,
    /// Space that is free for an ordinary user.
    pub free: u64,
}

impl Space {
    /// Used, in percent of the space that an ordinary user could use: `df`'s `Use%` before it rounds up.
    pub fn used_percent(&self) -> f64 {
        let usable = self.used.saturating_add(self.free);
        if usable == 0 { 100.0 } else { self.used as f64 * 100.0 / usable as f64 }
    }
}

/// Writes everything to disk that the system still has in memory for the file system of this directory. Blocks until then. Does nothing on
/// systems other than Linux.
///
/// # Errors
/// If the directory cannot be opened, or writing fails.
pub fn write_out(directory: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(fs::File::open(directory)?)?;
    #[cfg(not(target_os = "linux"))]
    let _ = directory;
    Ok(())
}

/// The volume that a directory is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    directory: PathBuf,
    device: u64,
    mount: String,
    file_system: String,
}

impl Volume {
    /// The volume that holds `directory`, symbolic links followed; none if pgrig cannot see it.
    pub fn of(directory: &Path) -> Option<Self> {
        let directory = fs::canonicalize(directory).ok()?;
        let device = fs::metadata(&directory).ok()?.dev();
        let disk = machine::volume_of(&directory)?;
        Some(Self { directory, device, mount: disk.mount, file_system: disk.file_system })
    }

    /// The space now: one system call. Sizes may differ from call to call, volumes grow and shrink.
    ///
    /// # Errors
    /// If the directory is gone or may no longer be seen.
    pub fn space(&self) -> io::Result<Space> {
        let found = statvfs(&self.directory)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Space {
            size: bytes(found.f_blocks),
            used: bytes(found.f_blocks.saturating_sub(found.f_bfree)),
            free: bytes(found.f_bavail),
        })
    }

    /// Whether both are one file system. Two file systems that share a pool (btrfs, ZFS) count as
    /// different, although they share free space.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.device == other.device
    }

    /// The directory it was found by, without symbolic links.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory on which it is mounted.
    pub fn mount(&self) -> &str {
        &self.mount
    }

    /// File system type, `unknown` where the system does not tell.
    pub fn file_system(&self) -> &str {
        &self.file_system
    }
}

/// The volumes that matter to a fill. Several may be the same.
#[derive(Clone, Debug)]
pub struct Volumes {
    /// Volume of catalogs, commit status and checkpoints' small files: without room here the server
    /// cannot go on.
    pub data: Volume,
    /// `pg_wal`, which may be a symbolic link; none if its place cannot be seen.
    pub wal: Option<Volume>,
    /// Volume of the tables.
    pub heap: Volume,
    /// Volume of the indexes.
    pub index: Volume,
    /// The first volume that temporary files may go to; none if pgrig cannot see it.
    pub temporary: Option<Volume>,
}

impl Volumes {
    /// The volumes of the server whose data directory this is. Tables go to `tablespace`, indexes to
    /// `index_tablespace`; none means where the session's go by default. None if data, tables or indexes cannot be
    /// seen.
    ///
    /// # Errors
    /// If the server cannot be asked for its tablespaces.
    pub async fn of(
        client: &Client,
        data_directory: &Path,
        tablespace: Option<&str>,
        index_tablespace: Option<&str>,
    ) -> Result<Option<Self>, Error> {
        let query = include_str!("sql/tablespaces.sql");
        let row = client.query_one(query, &[&tablespace, &index_tablespace]).await?;
        let volume = |oid: u32| Volume::of(&tablespace_directory(data_directory, oid));
        let (Some(data), Some(heap), Some(index)) =
            (Volume::of(data_directory), volume(row.get("heap")), volume(row.get("index")))
        else {
            return Ok(None);
        };
        let wal = Volume::of(&data_directory.join("pg_wal"));
        Ok(Some(Self { data, wal, heap, index, temporary: volume(row.get("temporary")) }))
    }
}

/// Directory of a tablespace (documentation, "Database File Layout").
fn tablespace_directory(data_directory: &Path, oid: u32) -> PathBuf {
    match oid {
        PG_DEFAULT => data_directory.join("base"),
        PG_GLOBAL => data_directory.join("global"),
        _ => data_directory.join("pg_tblspc").join(oid.to_string()),
    }
}

/// Bytes that the segments in `pg_wal` take on disk, recycled ones included.
///
/// # Errors
/// If the directory cannot be read.
pub fn wal_held(pg_wal: &Path) -> io::Result<u64> {
    /// Unit of `st_blocks`, bytes, regardless of the file system's block size.
    const STAT_BLOCK: u64 = 512;
    let mut held = 0;
    for entry in fs::read_dir(pg_wal)? {
        // A segment may be removed while we look.
        match entry?.metadata() {
            Ok(metadata) if metadata.is_file() => held += metadata.blocks() * STAT_BLOCK,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_of_what_an_ordinary_user_could_have() {
        // 5 of 100 are root's.
        let space = Space { size: 100, used: 76, free: 19 };
        assert!((space.used_percent() - 80.0).abs() < 1e-9);
        assert!((Space { size: 0, used: 0, free: 0 }.used_percent() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn symbolic_links_are_followed() {
        let data = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let elsewhere = elsewhere.path().canonicalize().unwrap();
        fs::create_dir(data.path().join("pg_tblspc")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, data.path().join("pg_tblspc/16384")).unwrap();
        let volume = Volume::of(&tablespace_directory(data.path(), 16384)).unwrap();
        assert_eq!(volume.directory(), elsewhere);
        assert!(Volume::of(&tablespace_directory(data.path(), 16385)).is_none());
    }

    #[test]
    fn only_segments_count_as_wal() {
        let pg_wal = tempfile::tempdir().unwrap();
        assert_eq!(wal_held(pg_wal.path()).unwrap(), 0);
        fs::create_dir(pg_wal.path().join("archive_status")).unwrap();
        fs::write(pg_wal.path().join("archive_status/000000010000000000000001.ready"), [1; 9000]).unwrap();
        assert_eq!(wal_held(pg_wal.path()).unwrap(), 0);
        fs::write(pg_wal.path().join("000000010000000000000001"), vec![1; 1 << 20]).unwrap();
        assert!(wal_held(pg_wal.path()).unwrap() >= 1 << 20);
    }
}
