//! The server's data directory, once its format and permissions are proved to allow that pages are
//! written into it.

use std::fs::File;
use std::io::Read;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use page::{Geometry, Segments};
use tokio_postgres::{Client, Row};

use super::NotDirect;
use server::ServerInfo;

/// The newest major version whose files pgrig's pages have been compared with.
const NEWEST: u32 = 18;
/// Alignment of everything on a page (`MAXIMUM_ALIGNOF`), bytes.
const MAX_ALIGN: i32 = 8;
/// `PG_PAGE_LAYOUT_VERSION` since 8.3.
const LAYOUT_VERSION: u16 = 4;
/// Offset of `pd_pagesize_version` in `PageHeaderData`.
const PAGE_SIZE_VERSION: usize = 18;
/// Encodings that texts can be stored in as they are made.
const ENCODINGS: [&str; 2] = ["UTF8", "SQL_ASCII"];

/// The data directory of a server whose tables' pages can be written from here.
#[derive(Clone, Debug)]
pub(crate) struct DataDirectory {
    /// Its path on this machine.
    pub(super) path: PathBuf,
    /// The server's blocks.
    pub(super) geometry: Geometry,
    /// Division of forks into files.
    pub(super) segments: Segments,
    /// Whether pages have checksums.
    pub(super) checksums: bool,
}

impl DataDirectory {
    /// Asks the server, and checks that its files are as it says.
    ///
    /// # Errors
    /// If the server cannot be asked. `Ok` may hold the reason why pages cannot be written here.
    pub(crate) async fn of(
        client: &Client,
        server: &ServerInfo,
        data_directory: Option<&Path>,
    ) -> Result<Result<Self, NotDirect>, tokio_postgres::Error> {
        let Some(directory) = data_directory else { return Ok(Err(NotDirect::Unseen)) };
        let row = client.query_one(include_str!("../../sql/direct_data_directory.sql"), &[]).await?;
        Ok(Self::proved(&row, server, directory))
    }

    fn proved(row: &Row, server: &ServerInfo, directory: &Path) -> Result<Self, NotDirect> {
        refuse_unknown_release(server.major())?;
        let alignment: i32 = row.get("max_data_alignment");
        if alignment != MAX_ALIGN {
            return Err(NotDirect::Format {
                what: "alignment",
                found: alignment.to_string(),
                known: "8 bytes",
            });
        }
        let encoding: String = row.get("encoding");
        if !ENCODINGS.contains(&encoding.as_str()) {
            return Err(NotDirect::Encoding { encoding });
        }
        let access_method: String = row.get("access_method");
        if access_method != "heap" {
            return Err(NotDirect::AccessMethod { found: access_method });
        }
        refuse_other_pages(&directory.join(row.get::<_, String>("a_catalog")), server.geometry)?;
        if access(directory, AccessFlags::W_OK).is_err() {
            return Err(NotDirect::ReadOnly { path: directory.display().to_string() });
        }
        let blocks: i32 = row.get("blocks_per_segment");
        let Some(blocks) = u32::try_from(blocks).ok().and_then(NonZeroU32::new) else {
            let (what, found, known) = ("segment size", blocks.to_string(), "more than 0 blocks");
            return Err(NotDirect::Format { what, found, known });
        };
        Ok(Self {
            path: directory.to_owned(),
            geometry: server.geometry,
            segments: Segments::new(server.geometry, blocks),
            checksums: row.get::<_, i32>("data_page_checksum_version") > 0,
        })
    }
}

/// Refuses a major version whose files have not been compared with pgrig's.
fn refuse_unknown_release(major: u32) -> Result<(), NotDirect> {
    if major <= NEWEST {
        return Ok(());
    }
    Err(NotDirect::Format { what: "release", found: major.to_string(), known: "PostgreSQL 13 to 18" })
}

/// Looks at a page that the server itself has written.
fn refuse_other_pages(path: &Path, geometry: Geometry) -> Result<(), NotDirect> {
    let mut header = [0; PAGE_SIZE_VERSION + 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    if read.is_err() {
        return Err(NotDirect::Unseen);
    }
    let found = u16::from_le_bytes([header[PAGE_SIZE_VERSION], header[PAGE_SIZE_VERSION + 1]]);
    let expected = u16::try_from(geometry.block_size()).unwrap_or(0) | LAYOUT_VERSION;
    if found == expected {
        return Ok(());
    }
    Err(NotDirect::Format {
        what: "page layout",
        found: format!("{found:#06x}"),
        known: "version 4, little-endian",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_that_nobody_has_compared_is_refused() {
        assert!(refuse_unknown_release(18).is_ok());
        let refused = refuse_unknown_release(19).unwrap_err().to_string();
        assert!(refused.contains("release is 19") && refused.contains("13 to 18"), "{refused}");
    }
}
