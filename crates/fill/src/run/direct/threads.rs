//! Threads that work beside the event loop, and end before the future that waits for them.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Failure;
use super::pieces::Stop;

/// The work of a thread.
pub(super) type Task = Box<dyn FnOnce(&Stop, &UnboundedSender<u64>) -> Result<(), Failure> + Send>;

/// Running threads. Dropping this makes them stop and waits for them: they must not write files any
/// more when the server begins to remove those.
pub(super) struct Threads {
    stop: Arc<Stop>,
    running: Vec<JoinHandle<Result<(), Failure>>>,
    told: UnboundedReceiver<u64>,
}

impl Threads {
    /// Starts a thread for each task.
    pub(super) fn start(tasks: Vec<Task>) -> Self {
        let stop = Arc::new(Stop::default());
        let (tell, told) = unbounded_channel();
        let start = |task: Task| {
            let (stop, tell) = (Arc::clone(&stop), tell.clone());
            thread::spawn(move || {
                // If it ends without success, in whichever way, the others need not continue.
                let unfinished = Unfinished(&stop);
                task(&stop, &tell)?;
                std::mem::forget(unfinished);
                Ok(())
            })
        };
        let running = tasks.into_iter().map(start).collect();
        Self { stop, running, told }
    }

    /// Waits for all of them; calls `sent` for rows that were written.
    pub(super) async fn finish(mut self, sent: &(dyn Fn(u64) + Sync)) -> Result<(), Failure> {
        while let Some(rows) = self.told.recv().await {
            sent(rows);
        }
        // All threads have dropped their senders, so all have ended or are about to.
        let running = std::mem::take(&mut self.running);
        running.into_iter().try_for_each(joined)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.set();
        for thread in std::mem::take(&mut self.running) {
            // The fill has failed already, so the thread's error does not matter.
            let _ = thread.join();
        }
    }
}

/// Has all stop if it is dropped.
struct Unfinished<'a>(&'a Stop);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

fn joined(thread: JoinHandle<Result<(), Failure>>) -> Result<(), Failure> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
