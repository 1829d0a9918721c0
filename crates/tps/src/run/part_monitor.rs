//! Monitors the other parts during a run: whether their sessions are still present, and the server's clock.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use server::ClockReading;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::outcome::Parted;
use crate::run::lock;
use crate::run::start_barrier::StartBarrier;
use crate::signals::{Sign, Signs};

/// Time between two looks at the other parts.
const LOOKS: Duration = Duration::from_secs(2);
/// Time between two readings of the clock.
const READINGS: Duration = Duration::from_mins(1);
/// The same between two looks of a part that has ended.
const LAST_LOOKS: Duration = Duration::from_millis(100);
/// A part that has ended stays until the others have, and at most for this time: each other part looks twice meanwhile.
const STAY: Duration = Duration::from_secs(5);

/// Handle of the task that monitors the other parts.
pub(super) struct PartMonitor {
    readings: Arc<Mutex<Vec<ClockReading>>>,
    parted: Option<oneshot::Receiver<Parted>>,
    over: oneshot::Sender<()>,
    task: JoinHandle<()>,
    /// The second of the server's clock that the parts agreed on, since 1970.
    pub(super) agreed: i64,
}

impl PartMonitor {
    /// Starts the task. `reading` is the reading of the clock at the start.
    pub(super) fn watch(barrier: StartBarrier, reading: ClockReading, agreed: i64) -> Self {
        let readings = Arc::new(Mutex::new(vec![reading]));
        let (tell, parted) = oneshot::channel();
        let (over, ended) = oneshot::channel();
        let monitor_task = MonitorTask { barrier, readings: Arc::clone(&readings), done: BTreeSet::new() };
        Self {
            readings,
            parted: Some(parted),
            over,
            task: tokio::spawn(monitor_task.keep(tell, ended)),
            agreed,
        }
    }

    /// Resolves when another part leaves before its end, or when pgrig can no longer observe the parts. Never resolves a second time.
    pub(super) async fn parted(&mut self) -> Parted {
        let parted = match self.parted.as_mut() {
            Some(parted) => parted.await.ok(),
            None => None,
        };
        self.parted = None;
        match parted {
            Some(parted) => parted,
            None => std::future::pending().await,
        }
    }

    /// Ends the session after the run ended in order: the other parts first see that this part is done.
    pub(super) async fn leave(self) {
        let _ = self.over.send(());
        let _ = self.task.await;
    }

    /// Ends the session at once: the other parts see that this part is gone.
    pub(super) fn abandon(self) {
        self.task.abort();
    }

    /// All readings of the clock.
    pub(super) fn readings(&self) -> Vec<ClockReading> {
        lock(&self.readings).clone()
    }
}

/// The task of [`PartMonitor`].
struct MonitorTask {
    barrier: StartBarrier,
    readings: Arc<Mutex<Vec<ClockReading>>>,
    /// Parts that have ended in order.
    done: BTreeSet<usize>,
}

impl MonitorTask {
    async fn keep(mut self, tell: oneshot::Sender<Parted>, ended: oneshot::Receiver<()>) {
        let mut ended = pin!(ended);
        let looking = tokio::select! {
            biased;
            _ = &mut ended => None,
            parted = self.look_on() => Some(parted),
        };
        if let Some(parted) = looking {
            let _ = tell.send(parted);
        }
        self.stay().await;
    }

    /// Observes the other parts until one is gone.
    async fn look_on(&mut self) -> Parted {
        let mut looks = tokio::time::interval(LOOKS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut read = Instant::now();
        loop {
            looks.tick().await;
            match self.barrier.signals.said(self.barrier.signals.signs()).await {
                Ok(signs) => {
                    let gone = self.gone(&signs);
                    if !gone.is_empty() {
                        return Parted::Left(gone);
                    }
                }
                Err(error) => return Parted::Unseen(error.to_string()),
            }
            if read.elapsed() >= READINGS {
                read = Instant::now();
                match self.barrier.signals.said(self.barrier.read_clock()).await {
                    Ok(reading) => lock(&self.readings).push(reading),
                    Err(error) => return Parted::Unseen(error.to_string()),
                }
            }
        }
    }

    /// Parts that are neither there nor have ended in order.
    fn gone(&mut self, signs: &Signs) -> Vec<usize> {
        let of = self.barrier.part.of;
        self.done.extend((1..=of).filter(|number| signs.has(Sign::Done(*number))));
        let missing = signs.without(of, Sign::Present);
        missing.into_iter().filter(|number| !self.done.contains(number)).collect()
    }

    /// Signals to the other parts that this part has ended, and stays connected until they have ended or have seen the signal.
    async fn stay(mut self) {
        let since = Instant::now();
        let own = self.barrier.part.number;
        if !matches!(self.barrier.signals.said(self.barrier.signals.take(Sign::Done(own))).await, Ok(true)) {
            return;
        }
        while since.elapsed() < STAY {
            let Ok(signs) = self.barrier.signals.said(self.barrier.signals.signs()).await else { return };
            let gone = self.gone(&signs);
            self.done.extend(gone);
            if self.done.len() >= self.barrier.part.of {
                return;
            }
            tokio::time::sleep(LAST_LOOKS).await;
        }
    }
}
