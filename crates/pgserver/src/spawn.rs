//! Starts child processes, and decides whether they survive this process.

use nix::sys::signal::{SigHandler, Signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Effect on a child of the end of the thread that started it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OnParentDeath {
    Send(Signal),
    Nothing,
}

/// Puts the child into a session of its own, so that Ctrl-C and hang-up of a terminal reach only
/// pgrig. Makes the kernel send the child a signal when its parent dies, even by kill -9.
#[expect(unsafe_code, reason = "the kernel's parent-death signal is set in the child")]
pub(crate) fn detach(command: &mut Command, on_death: OnParentDeath) {
    let parent = nix::unistd::getpid();
    let in_child = move || {
        nix::unistd::setsid()?;
        if let OnParentDeath::Send(signal) = on_death {
            // A shell's background job inherits an ignored SIGINT, which would lose that signal until
            // the server has a handler of its own.
            // SAFETY: no handler is installed, only the default restored.
            unsafe { nix::sys::signal::signal(Signal::SIGINT, SigHandler::SigDfl) }?;
            #[cfg(target_os = "linux")]
            {
                nix::sys::prctl::set_pdeathsig(signal)?;
                // The parent may have died before the line above.
                if nix::unistd::getppid() != parent {
                    return Err(io::ErrorKind::Interrupted.into());
                }
            }
        }
        let _ = parent;
        Ok(())
    };
    // SAFETY: after fork only async-signal-safe functions may be called: setsid, signal, prctl and
    // getppid are; nothing here allocates, locks or panics. Std runs this after it has changed the
    // user id, which matters: that would clear the parent-death signal.
    unsafe { command.pre_exec(in_child) };
}

/// The thread that forked a child, and waits until this is dropped.
///
/// The parent-death signal is tied to the *thread* that forked: a server started from a short-lived
/// thread of some pool would be stopped when that thread ends.
#[derive(Debug)]
pub(crate) struct ParentThread {
    release: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the child from a thread that ends when the [`ParentThread`] is dropped.
pub(crate) fn spawn_with_parent_thread(mut command: Command) -> io::Result<(Child, ParentThread)> {
    let (started, starts) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let keep = move || {
        if started.send(command.spawn()).is_ok() {
            // Nothing is ever sent: it ends when the sender is dropped.
            let _ = released.recv();
        }
    };
    let thread = std::thread::Builder::new().name("pgserver-parent".to_owned()).spawn(keep)?;
    let child = starts.recv().map_err(io::Error::other)??;
    let parent = ParentThread { release: Some(release), thread: Some(thread) };
    Ok((child, parent))
}

impl Drop for ParentThread {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
