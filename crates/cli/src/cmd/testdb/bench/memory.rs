//! A server of `pgrig testdb bench` in memory. It is started in a home of its own, and deleted with
//! it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use connect::Target;
use pgserver::{Home, Instance, Running, Spec};
use testdb::bench::{Tmpfs, Volatile, has_room, places};

use crate::app::failure::Failure;
use crate::app::printer::Printer;
use crate::app::recovery::journals;
use crate::cmd::testdb::args::BenchArgs;

/// Assumed `max_wal_size` of a server without that setting: the space that WAL may take, bytes.
const MAX_WAL_SIZE: u64 = 1 << 30;

/// Starts the server when a variant needs it.
pub(crate) struct Memory<'a> {
    home: &'a Home,
    spec: Spec,
    printer: &'a Printer,
    started: Mutex<Option<Started>>,
}

struct Started {
    home: Home,
    instance: Instance,
    running: Running,
}

impl<'a> Memory<'a> {
    /// A server with the properties of `spec`, but in memory.
    pub(crate) fn new(home: &'a Home, spec: Spec, printer: &'a Printer) -> Self {
        let spec = Spec { name: BenchArgs::INSTANCE.to_owned(), ..spec };
        Self { home, spec, printer, started: Mutex::new(None) }
    }

    /// Deletes the servers that killed benches have left.
    pub(crate) fn clear(home: &Home, printer: &Printer) {
        for place in places() {
            let Ok(twin) = home.twin(&place) else { continue };
            if !twin.root().exists() {
                continue;
            }
            let spec = Spec { name: BenchArgs::INSTANCE.to_owned(), ..Spec::default() };
            let destroyed = Instance::open(&twin, spec).and_then(|instance| instance.destroy(&|_| ()));
            match destroyed {
                Ok(()) | Err(pgserver::Error::NotCreated { .. }) => remove(twin.root(), printer),
                // It is a living bench's.
                Err(pgserver::Error::InUse { .. }) => {}
                Err(error) => {
                    printer
                        .warn(format!("could not remove the server in {}: {error}", twin.root().display()));
                }
            }
        }
    }

    /// Stops the server and deletes it, if it was started.
    pub(crate) fn destroy(self) -> Result<(), Failure> {
        let started = self.started.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some(Started { home, instance, running }) = started else { return Ok(()) };
        // Its data go in any case.
        let stopped = running.stop();
        instance.destroy(&|_| ())?;
        remove(home.root(), self.printer);
        Ok(stopped?)
    }

    fn start_at(&self, place: &Path) -> pgserver::Result<Option<Volatile>> {
        let home = self.home.twin(place)?;
        if home.relocated().is_some() {
            return Ok(None);
        }
        let instance = Instance::open(&home, self.spec.clone())?;
        let running = instance.attach_or_start(&|_| ())?;
        let at = running.connection();
        let target = Target::embedded(&at.socket_dir, at.port, at.user, at.database);
        let journals = journals(&home);
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        *started = Some(Started { home, instance, running });
        Ok(Some(Volatile { target, journals }))
    }
}

impl Tmpfs for Memory<'_> {
    fn start(&self, template_size: u64) -> Result<Volatile, String> {
        let mut why = "/dev/shm is not a tmpfs: mount one there".to_owned();
        for place in places() {
            if let Err(short) = has_room(&place, template_size, MAX_WAL_SIZE) {
                why = short;
                continue;
            }
            match self.start_at(&place) {
                Ok(Some(volatile)) => return Ok(volatile),
                Ok(None) => why = format!("the server's account cannot enter {}", place.display()),
                Err(pgserver::Error::InUse { pid, .. }) => {
                    why = format!(
                        "another bench (pgrig process {pid}) has its server in memory: wait until it ends"
                    );
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}

fn remove(directory: &Path, printer: &Printer) {
    if let Err(error) = std::fs::remove_dir_all(directory) {
        printer.warn(format!("cannot delete {}: {error}", directory.display()));
    }
}
