//! Base backups without a manifest, as a script around `pg_backup_start` makes them.

use std::fs;
use std::path::Path;

use testkit::{Server, block_on};

/// Copies a data directory without these names.
fn copy(from: &Path, to: &Path, without: &[&str]) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if without.iter().any(|one| name == *one) {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name), &[]);
        } else if let Err(error) = fs::copy(&path, to.join(name)) {
            // The server has deleted it meanwhile.
            assert!(!path.exists(), "{}: {error}", path.display());
        }
    }
}

/// Copies the files of a server, of version 15 or later, after these statements, which come after the begin of the backup.
pub(crate) fn back_up(server: &Server, backup: &Path, statements: &[&str]) {
    let data = server.data_dir();
    block_on(async {
        let connection = server.connect("postgres").await;
        let client = &connection.client;
        client.batch_execute("SELECT pg_backup_start('by hand', true)").await.unwrap();
        for statement in statements {
            client.batch_execute(statement).await.unwrap();
        }
        copy(&data, backup, &["pg_wal", "postmaster.pid"]);
        let label = client.query_one("SELECT labelfile FROM pg_backup_stop(false)", &[]).await.unwrap();
        fs::write(backup.join("backup_label"), label.get::<_, &str>(0)).unwrap();
        copy(&data.join("pg_wal"), &backup.join("pg_wal"), &[]);
        connection.close().await;
    });
}
