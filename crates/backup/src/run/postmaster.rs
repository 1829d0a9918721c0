//! The process of the server that is backed up, if it runs on this machine: its CPU time, and that of its children, can be read.

use std::fs;
use std::path::Path;

use connect::{ConnectError, ResolvedAddress};
use server::Session;
use server::process::Stat;
use tokio::net::UnixStream;

/// The first line of this file in the data directory is the process id.
const FILE: &str = "postmaster.pid";
/// Why the time is not known.
const ELSEWHERE: &str = "pgrig cannot see its processes, because it runs on another machine or in another container, or /proc hides them";

/// The process id of the server, or the reason why it is not known here. `data` is the server's data directory, if it is on this machine.
pub(super) async fn find(
    session: &Session,
    data: Option<&Path>,
) -> Result<Result<u32, &'static str>, ConnectError> {
    let session_pid = session.pid().await?.unsigned_abs();
    let mut candidates: Vec<u32> = data.and_then(of_data).into_iter().collect();
    candidates.extend(of_socket(session.connection.address()).await);
    let found = candidates.into_iter().find(|pid| is_parent(*pid, session_pid));
    Ok(found.ok_or(ELSEWHERE))
}

/// The process that listens on a Unix socket. The kernel tells only processes of this machine.
async fn of_socket(address: &ResolvedAddress) -> Option<u32> {
    let ResolvedAddress::Unix(path) = address else { return None };
    let stream = UnixStream::connect(path).await.ok()?;
    u32::try_from(stream.peer_cred().ok()?.pid()?).ok()
}

/// The process that the server has written into its data directory.
fn of_data(data: &Path) -> Option<u32> {
    fs::read_to_string(data.join(FILE)).ok()?.lines().next()?.trim().parse().ok()
}

/// Whether the process of a session is a child of this one, with the same name. A pooler is not the parent, and a process of another container
/// has another id here.
fn is_parent(pid: u32, session: u32) -> bool {
    let Some((parent, child)) = Stat::read(pid).zip(Stat::read(session)) else { return false };
    child.parent == pid && child.name == parent.name
}

#[cfg(test)]
mod tests {
    use testkit::{RELEASES, block_on, shared};

    use super::*;

    #[test]
    fn the_server_is_found_by_its_socket_and_by_its_data_directory() {
        let server = shared(RELEASES[0]);
        block_on(async {
            let session = Session::open(&server.target("postgres")).await.unwrap();
            let own = session.pid().await.unwrap().unsigned_abs();
            assert_eq!(find(&session, None).await.unwrap(), Ok(server.pid()));
            assert_eq!(of_data(&server.data_dir()), Some(server.pid()));
            assert!(
                is_parent(server.pid(), own) && !is_parent(own, own) && !is_parent(std::process::id(), own)
            );
            session.close().await;
        });
    }
}
