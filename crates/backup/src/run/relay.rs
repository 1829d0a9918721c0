//! A relay between client programs and a server: it passes on all bytes in both directions, and counts them.
//!
//! Programs connect to it as they connect to the server: through a Unix socket, or by TCP on this machine. They keep the name of the
//! server's host, so that they verify the server's certificate as before.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use connect::{ResolvedAddress, Target};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use super::step::LOOK;
use crate::error::{BackupError, OnPath};
use crate::network::Network;

/// Bytes of the buffer of one direction of a connection.
const BUFFER: usize = 256 << 10;
/// Time in which the connections of programs that have ended are closed.
const CLOSES: Duration = Duration::from_secs(10);
/// Time after which the relay tries again to accept a connection.
const AGAIN: Duration = Duration::from_millis(50);
/// Directory of the Unix socket.
const DIRECTORY: &str = "relay";
/// Port of the Unix socket, which is only a part of its name.
const PORT: u16 = 5432;
/// Name of the Unix socket (libpq: `UNIXSOCK_PATH` in pqcomm.h).
const FILE: &str = ".s.PGSQL.5432";
/// Length of the longest path that fits into `sockaddr_un`, without the final zero byte.
const MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// A relay. Its connections end when it is dropped.
pub(super) struct Relay {
    counter: Arc<Counter>,
    place: Place,
    task: JoinHandle<()>,
    /// Removed with its socket.
    _directory: Option<SocketDirectory>,
}

/// The place at which programs reach it.
struct Place {
    /// Directory of its Unix socket, or the name of the server's host.
    host: OsString,
    /// Its address; none for a Unix socket.
    address: Option<IpAddr>,
    port: u16,
}

/// Bytes so far.
#[derive(Default)]
struct Counter {
    received: AtomicU64,
    sent: AtomicU64,
    /// Connections that are open.
    open: AtomicU64,
}

impl Relay {
    /// Begins to accept connections to the server at this address. If it needs a Unix socket, it creates it below `work`, a directory of
    /// this user.
    pub(super) async fn start(server: &ResolvedAddress, work: &Path) -> Result<Self, BackupError> {
        match server {
            ResolvedAddress::Unix(path) => Self::on_unix_socket(path, work),
            ResolvedAddress::Tcp { host, socket } => Self::on_tcp(host, *socket).await,
        }
    }

    fn on_unix_socket(server: &Path, work: &Path) -> Result<Self, BackupError> {
        let directory = SocketDirectory::create(work)?;
        let path = directory.0.join(FILE);
        let listener = UnixListener::bind(&path).on("create", &path)?;
        let ends = UnixEnds { listener, server: server.to_owned() };
        let place = Place { host: directory.0.clone().into_os_string(), address: None, port: PORT };
        Ok(Self::between(ends, place, Some(directory)))
    }

    async fn on_tcp(host: &str, server: SocketAddr) -> Result<Self, BackupError> {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let shown = here.to_string();
        let shown = Path::new(&shown);
        let listener = TcpListener::bind((here, 0)).await.on("listen on", shown)?;
        let port = listener.local_addr().on("listen on", shown)?.port();
        let ends = TcpEnds { listener, server };
        let place = Place { host: OsString::from(host), address: Some(here), port };
        Ok(Self::between(ends, place, None))
    }

    fn between(ends: impl Ends, place: Place, directory: Option<SocketDirectory>) -> Self {
        let counter = Arc::new(Counter::default());
        let task = tokio::spawn(accept(ends, Arc::clone(&counter)));
        Self { counter, place, task, _directory: directory }
    }

    /// Variables of libpq's that lead a program to the relay, in place of those of the server.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let Place { host, address, port } = &self.place;
        let mut variables = vec![("PGHOST", host.clone()), ("PGPORT", OsString::from(port.to_string()))];
        variables.extend(address.map(|address| ("PGHOSTADDR", OsString::from(address.to_string()))));
        variables
    }

    /// The URL that leads a program to the relay, in place of that of the server's database. Without the password.
    pub(super) fn url(&self, target: &Target) -> String {
        let Place { host, address, port } = &self.place;
        target.url_through(&host.to_string_lossy(), *address, *port)
    }

    /// Waits until all connections are closed, and returns their bytes; none if one stays open. The programs must have ended.
    pub(super) async fn counted(&self) -> Option<Network> {
        let began = Instant::now();
        // Whoever reads that a connection is closed also reads all of its bytes.
        while self.counter.open.load(Ordering::Acquire) > 0 {
            if began.elapsed() > CLOSES {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
        let [received, sent] =
            [&self.counter.received, &self.counter.sent].map(|bytes| bytes.load(Ordering::Relaxed));
        Some(Network { received, sent, is_partial: false })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The connections are tasks of this one.
        self.task.abort();
    }
}

/// A socket for programs, and the server's address, both of the same kind.
trait Ends: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Send + 'static;

    /// The next connection of a program.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
    /// A new connection to the server.
    fn connect(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

struct UnixEnds {
    listener: UnixListener,
    server: PathBuf,
}

struct TcpEnds {
    listener: TcpListener,
    server: SocketAddr,
}

impl Ends for UnixEnds {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }

    async fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(&self.server).await
    }
}

impl Ends for TcpEnds {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Accepts connections without end.
async fn accept<E: Ends>(ends: E, counter: Arc<Counter>) {
    let ends = Arc::new(ends);
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = ends.accept() => match accepted {
                Ok(client) => {
                    counter.open.fetch_add(1, Ordering::Relaxed);
                    open.spawn(attend(client, Arc::clone(&ends), Arc::clone(&counter)));
                }
                // The program has gone, or descriptors are used up.
                Err(_) => tokio::time::sleep(AGAIN).await,
            },
            Some(_) = open.join_next(), if !open.is_empty() => {}
        }
    }
}

/// Attends to a connection until both directions have ended.
async fn attend<E: Ends>(client: E::Stream, ends: Arc<E>, counter: Arc<Counter>) {
    // Without a server, the program finds its connection closed.
    if let Ok(server) = ends.connect().await {
        let (from_client, to_client) = tokio::io::split(client);
        let (from_server, to_server) = tokio::io::split(server);
        tokio::join!(
            pass(from_client, to_server, &counter.sent),
            pass(from_server, to_client, &counter.received),
        );
    }
    counter.open.fetch_sub(1, Ordering::Release);
}

/// Passes on bytes of one direction until its sender ends it, then ends it for the receiver, too.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, count: &AtomicU64) {
    let mut buffer = vec![0; BUFFER];
    // A sender that is gone has ended; a receiver that is gone gets no more.
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        count.fetch_add(read as u64, Ordering::Relaxed);
        if to.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    // An error means that the receiver is gone.
    let _ = to.shutdown().await;
}

/// A directory that only this user can enter, for a Unix socket. Removed in the end.
struct SocketDirectory(PathBuf);

impl SocketDirectory {
    /// Creates it, after it has removed that of a killed run.
    fn create(work: &Path) -> Result<Self, BackupError> {
        let user = fs::metadata(work).on("read", work)?.uid();
        let path = place(work, user);
        if let Ok(found) = fs::symlink_metadata(&path) {
            if !found.is_dir() || found.uid() != user {
                let source = io::Error::other("it is not a directory of this user");
                return Err(BackupError::Io { action: "use", path, source });
            }
            fs::remove_dir_all(&path).on("delete", &path)?;
        }
        DirBuilder::new().mode(0o700).create(&path).on("create", &path)?;
        Ok(Self(path))
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        // The next run removes the rest.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The directory below `work`, or a short one in /tmp if libpq cannot use it.
fn place(work: &Path, user: u32) -> PathBuf {
    let own = work.join(DIRECTORY);
    let bytes = own.as_os_str().as_encoded_bytes();
    // A comma in PGHOST separates two hosts.
    if bytes.len() + "/".len() + FILE.len() <= MAX && !bytes.contains(&b',') {
        return own;
    }
    // /tmp and not TMPDIR, which may be long, too. Each run of this home has the same one.
    Path::new("/tmp").join(format!("pgrig-{DIRECTORY}-{user}-{:08x}", crc32c::crc32c(bytes)))
}

#[cfg(test)]
mod tests {
    use testkit::until_async;

    use super::*;

    /// Reads until the client ends its direction. Only then it answers: the same bytes, twice.
    async fn answer_twice(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await?;
        stream.write_all(&read).await?;
        stream.write_all(&read).await
    }

    /// A server that answers twice.
    async fn serve(listener: UnixListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer_twice(stream));
        }
    }

    /// Sends so many bytes, ends its direction, and compares the answer.
    async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: usize) {
        let sent: Vec<u8> = (0..=250).cycle().take(bytes).collect();
        stream.write_all(&sent).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.unwrap();
        assert!(read == sent.repeat(2), "{} bytes came back", read.len());
    }

    async fn ask_at(socket: &Path, bytes: usize) {
        ask(UnixStream::connect(socket).await.unwrap(), bytes).await;
    }

    fn variable(relay: &Relay, name: &str) -> String {
        let found = relay.variables().into_iter().find(|(known, _)| *known == name);
        found.unwrap().1.into_string().unwrap()
    }

    /// Bytes from the server, and to it.
    async fn counted(relay: &Relay) -> (u64, u64) {
        let network = relay.counted().await.unwrap();
        (network.received, network.sent)
    }

    fn socket(relay: &Relay) -> PathBuf {
        Path::new(&variable(relay, "PGHOST")).join(format!(".s.PGSQL.{}", variable(relay, "PGPORT")))
    }

    #[tokio::test]
    async fn all_bytes_of_all_connections_are_passed_on_and_counted() {
        let home = testkit::directory();
        let server = home.path().join("server");
        tokio::spawn(serve(UnixListener::bind(&server).unwrap()));
        let relay = Relay::start(&ResolvedAddress::Unix(server), home.path()).await.unwrap();
        let socket = socket(&relay);
        tokio::join!(ask_at(&socket, 3_000_000), ask_at(&socket, 1), ask_at(&socket, 0));
        assert_eq!(counted(&relay).await, (6_000_002, 3_000_001));
    }

    #[tokio::test]
    async fn tcp_keeps_the_name_of_the_host() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { answer_twice(listener.accept().await.unwrap().0).await });
        let server = ResolvedAddress::Tcp { host: "db.example".to_owned(), socket: address };
        let relay = Relay::start(&server, Path::new("/nonexistent")).await.unwrap();
        let [host, place, port] = ["PGHOST", "PGHOSTADDR", "PGPORT"].map(|name| variable(&relay, name));
        assert_eq!([host, place], ["db.example", "127.0.0.1"]);
        let port: u16 = port.parse().unwrap();
        assert_ne!(port, address.port());
        let expected =
            format!("postgresql://alice@db.example:{port}/shop?sslmode=disable&hostaddr=127.0.0.1");
        assert_eq!(relay.url(&Target::tcp("db.example", address.port(), "alice", "shop")), expected);
        ask(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap(), 1_000_000).await;
        assert_eq!(counted(&relay).await, (2_000_000, 1_000_000));
    }

    #[tokio::test]
    async fn a_server_that_has_ended_its_direction_still_reads() {
        let home = testkit::directory();
        let path = home.path().join("server");
        let listener = UnixListener::bind(&path).unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.shutdown().await.unwrap();
            let mut read = Vec::new();
            stream.read_to_end(&mut read).await.unwrap();
            read
        });
        let relay = Relay::start(&ResolvedAddress::Unix(path), home.path()).await.unwrap();
        let mut client = UnixStream::connect(socket(&relay)).await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
        client.write_all(b"later").await.unwrap();
        drop(client);
        assert_eq!(server.await.unwrap(), b"later");
        assert_eq!(counted(&relay).await, (0, 5));
    }

    #[tokio::test]
    async fn it_ends_with_its_connections_and_its_socket_when_it_is_dropped() {
        let home = testkit::directory();
        let server = home.path().join("server");
        tokio::spawn(serve(UnixListener::bind(&server).unwrap()));
        let relay = Relay::start(&ResolvedAddress::Unix(server), home.path()).await.unwrap();
        let socket = socket(&relay);
        let mut client = UnixStream::connect(&socket).await.unwrap();
        client.write_all(b"begun").await.unwrap();
        until_async("the bytes are passed on", async || relay.counter.sent.load(Ordering::Relaxed) == 5)
            .await;
        assert_eq!(fs::metadata(socket.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        drop(relay);
        assert!(!socket.parent().unwrap().exists());
        // Its end, or an error.
        assert!(!matches!(client.read(&mut [0; 8]).await, Ok(1..)));
        UnixStream::connect(&socket).await.unwrap_err();
    }

    #[tokio::test]
    async fn what_a_killed_run_has_left_is_replaced() {
        let home = testkit::directory();
        let left = home.path().join(DIRECTORY);
        fs::create_dir(&left).unwrap();
        fs::write(left.join(FILE), "").unwrap();
        let server = ResolvedAddress::Unix(home.path().join("server"));
        drop(Relay::start(&server, home.path()).await.unwrap());
        std::os::unix::fs::symlink("/", &left).unwrap();
        let refused = Relay::start(&server, home.path()).await.err().unwrap();
        assert!(refused.to_string().contains("is not a directory of this user"), "{refused}");
    }

    #[test]
    fn every_path_of_a_socket_fits() {
        for length in [1, 80, 87, 88, 200] {
            let work = PathBuf::from(format!("/{}", "x".repeat(length)));
            let found = place(&work, u32::MAX);
            assert!(found.join(FILE).as_os_str().len() <= MAX, "{found:?}");
            assert_eq!(found.starts_with(&work), length <= 86, "{found:?}");
        }
        assert!(place(Path::new("/a,b"), 0).starts_with("/tmp"));
    }
}
