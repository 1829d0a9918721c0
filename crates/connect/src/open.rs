//! The open sessions of this process: the requests that the server has not answered, and how to cancel them.
//! One list for the whole process, because the handler of Ctrl-C does not know the sessions.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};

use super::connection::Canceller;
use super::observe::Observed;
use super::route::Route;

/// Cancel requests that are sent at the same time.
const CANCELLED_AT_ONCE: usize = 16;
/// Time between two rounds of cancel requests: a request has no effect if it arrives before the
/// statement that it is meant for.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two checks whether the cancelled statements have ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Sessions that are open in this process.
static OPEN: Mutex<Vec<Arc<Open>>> = Mutex::new(Vec::new());
/// Route of the session that was opened last.
static LAST_ROUTE: Mutex<Option<Arc<Route>>> = Mutex::new(None);
/// Time of the last message of any server, in milliseconds since [`BEGAN`].
static LAST_RECEIVED: AtomicU64 = AtomicU64::new(0);
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// The next family number. Sessions of one target and its clones have the same number.
static FAMILIES: AtomicU64 = AtomicU64::new(1);

/// Number of [`Ending`] values.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// While it lives, pgrig stops a server of its own or deletes its files. That no server answers means nothing meanwhile.
#[derive(Debug)]
#[must_use = "servers are expected to answer once it is dropped"]
pub struct Ending(());

struct Open {
    canceller: Canceller,
    /// None for a session that runs without the driver (see `handover`).
    observed: Option<Arc<Observed>>,
}

/// A session's place in the list; dropped when the session has ended.
pub(super) struct Registered(Arc<Open>);

/// A server that has been silent for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Time since the last byte.
    pub lasts: Duration,
    /// The beginning of the statement that it has not answered.
    pub statement: String,
}

impl Ending {
    /// Begins to stop a server, or to delete its files.
    #[expect(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Self {
        ENDING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Registered {
    pub(super) fn new(canceller: Canceller, observed: Option<Arc<Observed>>) -> Self {
        *lock(&LAST_ROUTE) = Some(Arc::clone(&canceller.route));
        let open = Arc::new(Open { canceller, observed });
        lock(&OPEN).push(Arc::clone(&open));
        Self(open)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&OPEN).retain(|open| !Arc::ptr_eq(open, &self.0));
    }
}

impl Open {
    /// Whether the server may be doing something for it.
    fn may_be_busy(&self) -> bool {
        self.observed.as_ref().is_none_or(|observed| observed.traffic.is_busy())
    }

    /// Whether the server is known to do something that a cancel request ends.
    fn is_to_end(&self) -> bool {
        let traffic = self.observed.as_ref().map(|observed| &observed.traffic);
        traffic.is_some_and(|traffic| traffic.is_busy() && !traffic.is_in_copy())
    }
}

/// A number for the sessions of a new target.
pub(super) fn new_family() -> u64 {
    FAMILIES.fetch_add(1, Ordering::Relaxed)
}

/// A server sent something.
pub(super) fn note_received() {
    let now = u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX);
    LAST_RECEIVED.store(now, Ordering::Relaxed);
}

/// Time since any server sent something to any session.
pub fn silent_for() -> Duration {
    BEGAN.elapsed().saturating_sub(Duration::from_millis(LAST_RECEIVED.load(Ordering::Relaxed)))
}

/// Whether pgrig stops a server of its own, or deletes its files.
pub fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst) > 0
}

/// Sessions that wait for their server, the longest silence first.
pub fn silences() -> Vec<Silence> {
    let now = Instant::now();
    let open = lock(&OPEN);
    let silent = open.iter().filter_map(|open| {
        let (lasts, statement) = open.observed.as_ref()?.traffic.silence(now)?;
        Some(Silence { lasts, statement })
    });
    let mut silent: Vec<Silence> = silent.collect();
    silent.sort_by_key(|silence| std::cmp::Reverse(silence.lasts));
    silent
}

/// Cancels the statements of all sessions, once.
pub async fn cancel_everything() {
    cancel(|_| true).await;
}

/// Cancels the statements of all sessions again and again until all have ended, or until `within`
/// has passed. The caller must begin no statement meanwhile. Returns whether all have ended.
pub async fn stop_everything(within: Duration) -> bool {
    let ended = async {
        while lock(&OPEN).iter().any(|open| open.is_to_end()) {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    };
    tokio::select! {
        biased;
        () = ended => true,
        never = cancel_repeatedly(|_| true) => match never {},
        () = tokio::time::sleep(within) => false,
    }
}

/// Cancels the statements of this family's sessions, again and again.
pub(super) async fn cancel_family(family: u64) -> std::convert::Infallible {
    cancel_repeatedly(move |open| open.canceller.route.family == family).await
}

/// Cancels the statements of this family's sessions, once.
pub(super) async fn cancel_family_once(family: u64) {
    cancel(move |open| open.canceller.route.family == family).await;
}

async fn cancel_repeatedly(which: impl Fn(&Open) -> bool + Copy) -> std::convert::Infallible {
    loop {
        cancel(which).await;
        tokio::time::sleep(CANCEL_INTERVAL).await;
    }
}

async fn cancel(which: impl Fn(&Open) -> bool) {
    let open: Vec<Arc<Open>> =
        lock(&OPEN).iter().filter(|open| which(open) && open.may_be_busy()).cloned().collect();
    let each = stream::iter(open).for_each_concurrent(CANCELLED_AT_ONCE, async |open| {
        // A server that cannot be reached is not asked a second way.
        let _ = open.canceller.cancel().await;
    });
    each.await;
}

/// Whether the server of the session that was opened last answers within this time, i.e. whether
/// its postmaster lives. Starts no session there.
pub async fn answers(within: Duration) -> bool {
    let route = lock(&LAST_ROUTE).clone();
    let Some(route) = route else { return false };
    tokio::time::timeout(within, route.is_answered()).await.unwrap_or(false)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
