//! The servers that clients work on, and how a client gets from one that is lost to the next.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::request::Request;
use crate::run::CONNECTING_AT_ONCE;
use connect::{ConnectError, RawConnection, Target};

/// Pause before a client connects again if no transaction has succeeded since it moved: a script may end its own session.
const PAUSE: Duration = Duration::from_millis(200);

/// The targets of a run, at least one. pgrig observes the first one, and parts synchronise on it.
pub(crate) struct Targets {
    all: Arc<[Target]>,
    /// Number of this process's first client among the clients of all parts.
    first_client: usize,
    /// Where clients connect to another target; none with one target.
    reconnect: Option<Reconnect>,
}

struct Reconnect {
    runtime: Handle,
    room: Arc<Semaphore>,
}

/// A client that connects to another target. It is given up when this is dropped.
pub(crate) struct Attempt(JoinHandle<Result<(usize, RawConnection), ConnectError>>);

impl Targets {
    /// To be called in the runtime that drives the run.
    pub(crate) fn new(targets: &[Target], request: &Request) -> Self {
        let is_one = targets.len() == 1;
        let reconnect = (!is_one).then(|| Reconnect {
            runtime: Handle::current(),
            room: Arc::new(Semaphore::new(CONNECTING_AT_ONCE)),
        });
        let part = request.part.as_ref();
        let first_client = part.map_or(0, |part| (part.number - 1) * request.clients);
        Self { all: targets.into(), first_client, reconnect }
    }

    pub(crate) fn first(&self) -> &Target {
        &self.all[0]
    }

    pub(crate) fn get(&self, number: usize) -> &Target {
        &self.all[number]
    }

    /// The target on which a client begins: the clients of all parts are divided evenly.
    pub(crate) fn of_client(&self, client: usize) -> usize {
        (self.first_client + client) % self.all.len()
    }

    /// Connects a client that lost its session to the next target that takes it; last, to the same target again.
    /// None with one target. `in_vain`: since it moved the last time, nothing has succeeded.
    pub(crate) fn leave(&self, from: usize, in_vain: bool) -> Option<Attempt> {
        let Reconnect { runtime, room } = self.reconnect.as_ref()?;
        let (all, room) = (Arc::clone(&self.all), Arc::clone(room));
        Some(Attempt(runtime.spawn(async move {
            if in_vain {
                tokio::time::sleep(PAUSE).await;
            }
            let _place = room.acquire().await;
            let mut step = 1;
            loop {
                let to = (from + step) % all.len();
                match all[to].connect_raw().await {
                    Ok(connection) => return Ok((to, connection)),
                    Err(error) if step == all.len() => return Err(error),
                    Err(_) => step += 1,
                }
            }
        })))
    }
}

impl Attempt {
    /// The result, once: the target's number, and the connection.
    pub(crate) fn take(&mut self) -> Option<Result<(usize, RawConnection), ConnectError>> {
        let ended = (&mut self.0).now_or_never()?;
        Some(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())))
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.abort();
    }
}
