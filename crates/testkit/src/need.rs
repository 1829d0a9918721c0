//! Requirements of a test on the machine.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::clients;
use crate::mount::Mount;
use crate::program::does;

/// A requirement that a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// The effective user is root.
    Root,
    /// A tmpfs, and an ext4 on a loop device, can be mounted.
    Mounts,
    /// A pid namespace can be made.
    Namespaces,
    /// pgbench is installed.
    Pgbench,
    /// psql, pg_dump, pg_restore and pg_dumpall are installed.
    Clients,
    /// Client programs of PostgreSQL 17 are there, or can be fetched by pip.
    Clients17,
    /// A PostgreSQL server is installed.
    Installation,
    /// node is installed.
    Node,
    /// Go is installed.
    Go,
    /// python3 is installed.
    Python,
    /// python3 is installed, with pytest.
    Pytest,
    /// PgBouncer is installed, and root may run it as another user.
    PgBouncer,
    /// bash, fish, zsh and man are installed.
    Shells,
    /// pgBackRest is installed.
    PgBackRest,
    /// barman is installed, with the client programs that it calls.
    Barman,
}

impl Need {
    fn is_met(self) -> bool {
        let installed = |program: &&str| does(program, &["--version"]);
        match self {
            Self::Root => nix::unistd::Uid::effective().is_root(),
            Self::Mounts => {
                let directory = tempfile::tempdir().unwrap();
                [Mount::try_tmpfs(directory.path(), 1), Mount::try_ext4(directory.path(), 8)]
                    .iter()
                    .all(Option::is_some)
            }
            Self::Namespaces => does("unshare", &["--pid", "--fork", "--mount-proc", "--kill-child", "true"]),
            Self::Pgbench => installed(&"pgbench"),
            Self::Clients => ["psql", "pg_dump", "pg_restore", "pg_dumpall"].iter().all(installed),
            Self::Clients17 => clients::are_there(),
            Self::Installation => !pgserver::Binaries::system().is_empty(),
            Self::Node => installed(&"node"),
            Self::Go => does("go", &["version"]),
            Self::Python => installed(&"python3"),
            Self::Pytest => does("python3", &["-m", "pytest", "--version"]),
            Self::PgBouncer => Self::Root.is_met() && installed(&"pgbouncer"),
            Self::Shells => ["bash", "fish", "zsh", "man"].iter().all(installed),
            Self::PgBackRest => does("pgbackrest", &["version"]),
            Self::Barman => ["barman", "psql", "pg_receivewal", "pg_basebackup"].iter().all(installed),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Root => "root",
            Self::Mounts => "the right to mount a tmpfs and an ext4",
            Self::Namespaces => "the right to make a pid namespace",
            Self::Pgbench => "pgbench",
            Self::Clients => "psql, pg_dump, pg_restore and pg_dumpall",
            Self::Clients17 => "client programs of PostgreSQL 17 (.ci/clients fetches them by pip)",
            Self::Installation => "an installed PostgreSQL server",
            Self::Node => "node",
            Self::Go => "Go",
            Self::Python => "python3",
            Self::Pytest => "python3 with pytest",
            Self::PgBouncer => "pgbouncer, as root",
            Self::Shells => "bash, fish, zsh and man",
            Self::PgBackRest => "pgBackRest",
            Self::Barman => "barman, with psql, pg_receivewal and pg_basebackup",
        })
    }
}

/// Whether the test that runs may go on. If the machine lacks what it needs, the test fails under `CI`; elsewhere
/// it must return, and a line on stderr and in a file says what was skipped and why.
#[must_use]
pub fn require(need: Need) -> bool {
    static MET: LazyLock<Mutex<HashMap<Need, bool>>> = LazyLock::new(|| {
        // Of an earlier run.
        let _ = fs::remove_file(skipped());
        Mutex::default()
    });
    let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    if *met.entry(need).or_insert_with(|| need.is_met()) {
        return true;
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let is_ci = std::env::var_os("CI").is_some_and(|ci| !["", "0", "false"].iter().any(|no| ci == *no));
    // Else the lock would be poisoned.
    drop(met);
    assert!(!is_ci, "{test} needs {need}, and may not be skipped in CI");
    let file = skipped();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut file = File::options().create(true).append(true).open(file).unwrap();
    writeln!(file, "{test} needs {need}").unwrap();
    // Not by eprintln!, which libtest captures.
    let _ = writeln!(
        std::io::stderr(),
        "skipped: {test} needs {need} (all that is skipped: {})",
        skipped().parent().unwrap().display()
    );
    false
}

/// A file for each test program.
fn skipped() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap();
    let name = program.file_name().unwrap();
    target.join("tmp/skipped").join(name)
}
