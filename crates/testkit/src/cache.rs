//! One place for the PostgreSQL that tests fetch.

use std::path::PathBuf;

use pgserver::Home;

/// Directory in which PostgreSQL is unpacked for all test programs: below the target directory, or where a home there
/// is relocated to if the server's account cannot reach that.
pub fn cache() -> PathBuf {
    if let Some(directory) = std::env::var_os("PGRIG_TEST_CACHE") {
        return directory.into();
    }
    // target/debug/deps/it-0123456789abcdef
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap();
    Home::at(&target.join("tmp/pgrig")).unwrap().server_root().join("postgresql")
}
