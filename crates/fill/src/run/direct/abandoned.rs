//! Removes the files that a crash of the server leaves of fills by direct pages.
//!
//! A file is removed only if a [record](super::record) names it and all of the following is proved:
//! the server has crashed or was started since, and is out of recovery; the data directory is this
//! server's; a file that the recorded transaction made still exists under its name, by inode and
//! time of birth, so that no other relation can have its number; that transaction did not commit;
//! and no relation of its database has the number. If one of these is in doubt, nothing is removed.

use futures_util::future::LocalBoxFuture;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::record::{Files, Record, Recorded};
use connect::{Connection, Target};
use server::Survey;

/// Outcome for a record that pgrig reports to the user.
#[derive(Debug)]
pub enum Abandoned {
    /// Files were removed.
    Removed {
        /// The process that wrote them.
        pid: u32,
        /// Number of files.
        files: usize,
        /// Their size, bytes.
        bytes: u64,
    },
    /// Files may be left.
    Left {
        /// Path of the record.
        record: PathBuf,
        /// Why the files stay.
        why: String,
    },
}

/// Decision on a record.
enum Verdict {
    /// The record is not needed any more: its files belong to the server, or do not exist.
    Settled,
    /// Not to be decided now: it belongs to another server, or its transaction is still being
    /// ended.
    Later,
    /// These files belong to no relation.
    Nobodys(Vec<Files>),
}

/// Checks the records in `directory`, and removes the files that provably belong to no relation of
/// this server.
pub fn remove_abandoned<'a>(
    target: &'a Target,
    connection: &'a Connection,
    survey: &'a Survey,
    directory: &'a Path,
) -> LocalBoxFuture<'a, Vec<Abandoned>> {
    Box::pin(async move {
        let left = |record: &Path, why: String| Abandoned::Left { record: record.to_owned(), why };
        let (found, unreadable) = match Recorded::all(directory) {
            Ok(all) => all,
            Err(error) => return vec![left(directory, error.to_string())],
        };
        let mut told: Vec<Abandoned> =
            unreadable.into_iter().map(|(path, error)| left(&path, error.to_string())).collect();
        for recorded in found {
            let path = recorded.path.clone();
            match settle(target, connection, survey, recorded).await {
                Ok(done) => told.extend(done),
                Err(why) => told.push(left(&path, why)),
            }
        }
        told
    })
}

async fn settle(
    target: &Target,
    connection: &Connection,
    survey: &Survey,
    recorded: Recorded,
) -> Result<Option<Abandoned>, String> {
    let record = &recorded.record;
    let Some(data) = &survey.data_directory else { return Ok(None) };
    let verdict = look(target, connection, data, record).await.map_err(|error| error.to_string())?;
    let (mut files, mut bytes) = (0, 0);
    match verdict {
        Verdict::Later => return Ok(None),
        Verdict::Settled => {}
        Verdict::Nobodys(relations) => {
            for relation in relations {
                let removed = remove(data, &relation).map_err(|error| error.to_string())?;
                files += removed.len();
                bytes += removed.iter().sum::<u64>();
            }
        }
    }
    let pid = record.pid;
    recorded.close().map_err(|error| error.to_string())?;
    Ok((files > 0).then_some(Abandoned::Removed { pid, files, bytes }))
}

async fn look(
    target: &Target,
    connection: &Connection,
    data: &Path,
    record: &Record,
) -> Result<Verdict, Box<dyn std::error::Error>> {
    let is_gone =
        matches!(fs::metadata(&record.data_directory), Err(error) if error.kind() == ErrorKind::NotFound);
    let row = connection.client.query_one(include_str!("../../sql/direct_server.sql"), &[]).await?;
    let is_this = row.get::<_, i64>("system_identifier") == record.system_identifier;
    let is_there = record.relations.iter().any(|files| files.are_there(data));
    if !is_this || !is_there {
        // Of a copy of the server the files are others; where its own are gone, so is the need for the record.
        let same_place =
            fs::canonicalize(data)? == fs::canonicalize(&record.data_directory).unwrap_or_default();
        return Ok(if is_gone || same_place { Verdict::Settled } else { Verdict::Later });
    }
    // Without a crash the server removes the files itself. It keeps the first one, empty, until a checkpoint: were
    // that gone, another relation could get the number, and the replay of the removal would empty it (`mdunlink`, md.c).
    if row.get("recovers") || row.get::<_, String>("lifetime") == record.lifetime {
        return Ok(Verdict::Later);
    }
    let query = "SELECT datname::text, datname = current_database() FROM pg_database WHERE oid = $1";
    let Some(row) = connection.client.query_opt(query, &[&record.database]).await? else {
        // DROP DATABASE removes its directories.
        return Ok(Verdict::Settled);
    };
    if row.get(1) {
        return in_database(&connection.client, data, record).await;
    }
    let there = target.clone().with_database(row.get(0)).connect().await?;
    in_database(&there.client, data, record).await
}

/// Decides on a record in a session of the record's database.
async fn in_database(
    client: &Client,
    data: &Path,
    record: &Record,
) -> Result<Verdict, Box<dyn std::error::Error>> {
    let status = client.query_one("SELECT pg_xact_status($1::text::xid8)", &[&record.transaction]).await;
    let status = match status {
        Ok(row) => row.get::<_, Option<String>>(0),
        // The number was never given in this server's history, so nothing of that transaction can have committed.
        Err(error) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => Some("aborted".to_owned()),
        Err(error) => return Err(error.into()),
    };
    match status.as_deref() {
        // Too old to be told: no running transaction has such a number, and what it committed is in the catalog.
        Some("aborted") | None => {}
        Some("committed") => return Ok(Verdict::Settled),
        Some(_) => return Ok(Verdict::Later),
    }
    let mut nobodys = Vec::new();
    for files in &record.relations {
        let query = "SELECT pg_filenode_relation($1, $2)::text";
        let owner: Option<String> =
            client.query_one(query, &[&files.tablespace, &files.filenode]).await?.get(0);
        if owner.is_none() && files.are_there(data) {
            nobodys.push(files.clone());
        }
    }
    Ok(Verdict::Nobodys(nobodys))
}

/// Removes all forks and segments, the main fork's first segment last: as long as it exists, the
/// server gives its number to no other relation. Returns the sizes of the removed files, bytes.
fn remove(data: &Path, files: &Files) -> io::Result<Vec<u64>> {
    let first = data.join(&files.path);
    let name = files.filenode.to_string();
    let is_right = first.file_name().is_some_and(|end| end.to_str() == Some(&*name))
        && files.path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let Some(directory) = first.parent().filter(|_| is_right) else {
        return Err(io::Error::other("the record names a file that is no relation's"));
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_of_it =
            entry.file_name().to_str().and_then(|text| text.strip_prefix(&*name)).is_some_and(is_suffix);
        if is_of_it {
            paths.push(entry.path());
        }
    }
    paths.sort_by_key(|path| *path == first);
    let mut sizes = Vec::new();
    for path in paths {
        match fs::symlink_metadata(&path).and_then(|file| fs::remove_file(&path).map(|()| file.len())) {
            Ok(size) => sizes.push(size),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    fs::File::open(directory)?.sync_all()?;
    Ok(sizes)
}

/// Whether this may follow a relation's number in a file's name: a fork and a segment.
fn is_suffix(text: &str) -> bool {
    let rest = ["_fsm", "_vm", "_init"].iter().find_map(|fork| text.strip_prefix(fork)).unwrap_or(text);
    rest.is_empty()
        || rest
            .strip_prefix('.')
            .is_some_and(|number| !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_forks_and_segments_of_the_number_are_removed() {
        let data = tempfile::tempdir().unwrap();
        let ours = ["16384", "16384.1", "16384.12", "16384_vm", "16384_fsm.1", "16384_init"];
        let others = ["163840", "16384_other", "1638", "16384.x", "16384.", "t3_16384"];
        for name in ours.iter().chain(&others) {
            fs::write(data.path().join(name), "1234").unwrap();
        }
        let files = |path: &str| Files {
            name: "t".to_owned(),
            tablespace: 0,
            filenode: 16384,
            path: path.into(),
            made: Vec::new(),
        };
        assert!(remove(data.path(), &files("../16384")).is_err());
        assert!(remove(data.path(), &files("16385")).is_err());
        assert_eq!(remove(data.path(), &files("16384")).unwrap(), [4; 6]);
        let mut left: Vec<_> =
            fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let mut others = others.to_vec();
        others.sort_unstable();
        assert_eq!(left, others);
    }
}
