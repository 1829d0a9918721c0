//! Interruption of work by the user, which is the same for every verb.

use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::sync::watch;

use connect::{ConnectError, SqlState, Target};

/// Time that work has to end once its statements are cancelled. Part of the two seconds within
/// which pgrig ends.
pub const GRACE: Duration = Duration::from_millis(1500);

/// End of work that could be interrupted.
pub enum Ended<T> {
    /// It ended by itself.
    Done(T),
    /// The user stopped it. Holds its result; none if the server did not answer in time.
    Stopped(Option<T>),
}

/// Does the work until it ends or `interrupt` resolves. Then it calls `stop` and cancels the statements of the
/// target's sessions until the work ends. Between two statements there is nothing to cancel, so it cancels again and again.
pub async fn until_stopped<T>(
    target: &Target,
    interrupt: impl Future<Output = ()>,
    mut work: Pin<&mut impl Future<Output = T>>,
    stop: impl FnOnce(),
) -> Ended<T> {
    tokio::select! {
        biased;
        () = interrupt => {}
        result = &mut work => return Ended::Done(result),
    }
    stop();
    Ended::Stopped(tokio::select! {
        biased;
        result = &mut work => Some(result),
        never = target.cancel_repeatedly() => match never {},
        () = tokio::time::sleep(GRACE) => None,
    })
}

/// Does the work until it ends or `interrupt` resolves. Then it calls `stop`, which the work sees, and waits for its end for [`GRACE`]. For work
/// on servers that pgrig stops afterwards, so that no statement has to be cancelled.
pub async fn until_stopped_alone<T>(
    interrupt: impl Future<Output = ()>,
    mut work: Pin<&mut impl Future<Output = T>>,
    stop: impl FnOnce(),
) -> Ended<T> {
    tokio::select! {
        biased;
        () = interrupt => {}
        result = &mut work => return Ended::Done(result),
    }
    stop();
    Ended::Stopped(tokio::time::timeout(GRACE, work).await.ok())
}

/// The user's wish to stop a run, as the parts of the run see it.
#[derive(Clone, Debug)]
pub struct Stopped(watch::Receiver<bool>);

/// Tells every [`Stopped`] that it belongs to.
#[derive(Debug)]
pub struct Stop(watch::Sender<bool>);

/// A wish that is not there yet, and the way to tell it.
pub fn stop() -> (Stop, Stopped) {
    let (stop, stopped) = watch::channel(false);
    (Stop(stop), Stopped(stopped))
}

impl Stop {
    /// Tells that the user wants to stop.
    pub fn tell(&self) {
        self.0.send_replace(true);
    }
}

impl Stopped {
    /// Whether the user wants to stop.
    pub fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when the user wants to stop, or when the sender was dropped.
    pub fn told(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopped = self.0.clone();
        async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }
    }

    /// Does the work, and drops it when the user wants to stop: none then.
    pub async fn unless_told<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.told() => None,
            done = work => Some(done),
        }
    }
}

/// Does the work until it ends by itself. When `interrupt` resolves, it tells the work by its [`Stopped`], wherever the
/// work is, and cancels nothing.
pub async fn told_to_stop<T>(
    interrupt: impl Future<Output = ()>,
    stop: &Stop,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    tokio::select! {
        // So that signals are caught before anything is made.
        biased;
        () = interrupt => stop.tell(),
        done = &mut work => return done,
    }
    work.await
}

/// Time to clear up after a failure.
const CLEAR_DEADLINE: Duration = Duration::from_mins(1);

/// Drops the objects that a run has created, after a failure or an interruption. Runs `clear` again as long as
/// it is hit by a cancel request that was still under way, and for a minute at most.
///
/// # Errors
/// Why something could not be dropped.
pub async fn clear_up(clear: impl AsyncFn() -> Result<(), ConnectError>) -> Result<(), String> {
    let clearing = async {
        loop {
            match clear().await {
                Err(error) if error.sqlstate() == Some(&SqlState::QUERY_CANCELED) => {}
                cleared => break cleared,
            }
        }
    };
    match tokio::time::timeout(CLEAR_DEADLINE, clearing).await {
        Ok(cleared) => cleared.map_err(|error| error.to_string()),
        Err(_) => Err("the server does not drop it in time".to_owned()),
    }
}
