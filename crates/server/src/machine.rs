//! The machine that pgrig runs on, and whether the server is on it too.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use measure::{Disk, Machine};
use rustix::fs::statvfs;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::info::ServerInfo;
use connect::{Connection, Transport};

/// Describes this machine. Facts that the system does not report are `unknown` or 0.
pub(crate) fn this_machine() -> Machine {
    let wanted = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let (cpu, memory) = System::new_with_specifics(wanted).map_or((None, 0), |system| {
        let model = system.cpus().first().map(|cpu| cpu.brand().trim().to_owned());
        (model, system.total_memory())
    });
    let unknown = || "unknown".to_owned();
    let name = System::long_os_version().unwrap_or_else(|_| unknown());
    let kernel = System::kernel_long_version().unwrap_or_else(|_| unknown());
    let cpu = cpu.filter(|model| !model.is_empty()).unwrap_or_else(unknown);
    Machine { system: format!("{name}, {kernel}"), cpu, cores: cores(), memory }
}

/// Memory of this machine, bytes; 0 if the system does not tell it.
pub fn memory() -> u64 {
    this_machine().memory
}

/// Logical processors that this process may use.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// The volume that holds `path`, with its free space for an ordinary user.
pub fn volume_of(path: &Path) -> Option<Disk> {
    let path = fs::canonicalize(path).ok()?;
    let device = fs::metadata(&path).ok()?.dev();
    let on_it = |path: &&Path| fs::metadata(path).is_ok_and(|metadata| metadata.dev() == device);
    let mount = path.ancestors().take_while(on_it).last()?.to_owned();
    let space = statvfs(&path).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    Some(Disk {
        file_system: file_system(&mount).unwrap_or_else(|| "unknown".to_owned()),
        mount: mount.display().to_string(),
        size: bytes(space.f_blocks),
        free: bytes(space.f_bavail),
    })
}

/// Type of the file system mounted there, where the system has Linux's list of them.
fn file_system(mount: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let fields = |line: &str| {
        let mut fields = line.split(' ').map(str::to_owned);
        Some((fields.nth(1)?, fields.next()?))
    };
    // The last mount on a directory hides the earlier ones.
    let found = mounts.lines().rev().filter_map(fields).find(|(at, _)| Path::new(at) == mount);
    found.map(|(_, kind)| kind)
}

/// Whether the server runs on this machine; none where it cannot be known (a TCP connection to
/// localhost may be a tunnel or a container).
pub fn is_local(connection: &Connection) -> Option<bool> {
    match connection.transport {
        Transport::UnixSocket { .. } => Some(true),
        Transport::Tcp { .. } => None,
    }
}

/// Whether the connection stays on this machine, as far as pgrig can tell: a tunnel may begin at
/// its other end.
pub(crate) fn is_loopback(transport: &Transport) -> bool {
    match transport {
        Transport::UnixSocket { .. } => true,
        Transport::Tcp { host, .. } => {
            host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
    }
}

/// The server's data directory as a path of this machine, proved to be this server's: the system
/// identifier it tells must stand at the start of its `global/pg_control`.
///
/// None where it cannot be seen or proved.
pub async fn data_directory(connection: &Connection, server: &ServerInfo) -> Option<std::path::PathBuf> {
    let path = Path::new(server.data_directory.as_ref()?);
    let of_server = is_data_directory(connection, path).await;
    matches!(of_server, Ok(Ok(true))).then(|| path.to_owned())
}

/// Whether the server's data directory is at this path: its control file has the server's system identifier. False
/// too where that cannot be asked or read.
pub async fn runs_on(connection: &Connection, path: &Path) -> bool {
    matches!(is_data_directory(connection, path).await, Ok(Ok(true)))
}

/// Whether the path is this server's data directory: see [`data_directory`].
///
/// # Errors
/// If the server cannot be asked. `Ok` holds an error if the directory cannot be read or is not
/// PostgreSQL's.
pub(crate) async fn is_data_directory(
    connection: &Connection,
    path: &Path,
) -> Result<io::Result<bool>, tokio_postgres::Error> {
    let query = "SELECT system_identifier FROM pg_control_system()";
    let identifier: i64 = connection.client.query_one(query, &[]).await?.get(0);
    let mut told = [0; 8];
    let read = fs::File::open(path.join("global/pg_control")).and_then(|mut file| file.read_exact(&mut told));
    Ok(read.map(|()| identifier.to_ne_bytes() == told))
}
