//! `pgrig backup check --restore`: the backup is restored into a scratch server, and all of it is read.
//!
//! ```text
//! Plan and Outcome of the check ─▶ the programs' version ─▶ restore (dump, base) ─▶ read (tables, constraints, indexes) ─▶ Restored
//! ```
//!
//! The scratch servers are those of a rehearsal: they are removed at the end, and by the next run after a kill.

mod base;
mod dump;
mod error;
pub(crate) mod messages;
mod outcome;
pub(crate) mod read;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pgserver::{Home, Major};
use server::interruption::{Ended, until_stopped_alone};

pub use error::RestoreError;
pub use outcome::Restored;

use super::outcome::Outcome;
use super::plan::{Kind, Plan};
use super::recipe::{Form, Recipe};
use crate::error::{BackupError, OnPath};
use crate::programs::Programs;
use crate::run::STARTING;
use crate::run::scratch::Scratch;
use crate::run::source::Facts;
use crate::run::step::Trouble;

/// Prepared transactions for which a restored server has room.
const PREPARED: &str = "1000";
/// Most jobs of pg_restore.
const JOBS: u16 = 8;

/// The place and the programs of a restore.
pub struct Request<'a> {
    /// The home below which the scratch server is.
    pub home: &'a Home,
    /// Directory of the client programs, and of the scratch server's if it has them.
    pub bin: Option<PathBuf>,
    /// Major version of the scratch server; none for that of the backup.
    pub version: Option<u16>,
    /// A superuser of the server that was backed up.
    pub superuser: String,
    /// Processors of this machine.
    pub cores: u16,
}

/// Refuses a backup that can be read only once, and a directory without client programs, before the backup is read.
///
/// # Errors
/// [`RestoreError::Stdin`], or why the programs in `bin` cannot be used.
pub fn check_possible(plan: &Plan, bin: Option<&Path>) -> Result<(), RestoreError> {
    if plan.kind == Kind::Stream {
        return Err(RestoreError::Stdin);
    }
    if bin.is_some() {
        Programs::find(bin, 0)?;
    }
    Ok(())
}

/// Restores a backup in which the check found no damage, and reads all of it. `tell` hears of each stage. Whatever happens, it removes the
/// scratch server.
///
/// # Errors
/// If the backup cannot be tried here; a restore that fails is no error.
pub async fn restore(
    plan: &Plan,
    found: &Outcome,
    request: &Request<'_>,
    tell: &dyn Fn(&str),
    interrupt: impl Future<Output = ()>,
) -> Result<Restored, RestoreError> {
    check_possible(plan, request.bin.as_deref())?;
    let recipe = &found.recipe;
    let version = version(plan, found, request)?;
    // Those of one tar file are links without files, and SQL creates them anywhere.
    if recipe.has_tablespaces && !matches!(recipe.form, Some(Form::Base | Form::BaseTar)) {
        return Err(RestoreError::Tablespaces { path: plan.path.clone() });
    }
    if recipe.creates_tablespaces {
        return Err(RestoreError::NewTablespace { path: plan.path.clone() });
    }
    if let Some(link) = recipe.link.clone() {
        return Err(RestoreError::Link { path: plan.path.clone(), link });
    }
    if recipe.is_incremental {
        return Err(RestoreError::Incremental { path: plan.path.clone() });
    }
    let programs = if is_base(recipe) {
        None
    } else {
        let found = Programs::find(request.bin.as_deref(), version);
        Some(found.map_err(BackupError::of_fixed_version)?)
    };
    // No client program restores a base backup, so they may be older, or missing. Beside them may be the programs of its server.
    let beside = match (&programs, &request.bin) {
        (Some(programs), _) => Some(programs.clone()),
        (None, Some(bin)) => Some(Programs::find(Some(bin.as_path()), 0)?),
        (None, None) => Programs::find(None, version).ok(),
    };
    let server = beside.as_ref().and_then(|programs| programs.server(version));
    let mut facts = Facts::of_scratch(version, "postgres", 0);
    PREPARED.clone_into(&mut facts.prepared);
    facts.encoding = dump::encoding(recipe.encoding.as_deref());
    let mut scratch = Scratch::new(request.home, server, &facts, &[], (0, &[]))?;
    let stop = AtomicBool::new(false);
    // A program may take a relative path for an option (-x.dump), or for one on another machine (tar: a:b.tar).
    let path = std::path::absolute(&plan.path).on("read", &plan.path)?;
    let plan = &Plan { path, ..plan.clone() };
    let ended = {
        let mut work = Box::pin(async {
            tell(STARTING);
            scratch.start(None).await?;
            let run = Run {
                plan,
                found,
                request,
                facts: &facts,
                programs: programs.as_ref(),
                scratch: &scratch,
                stop: &stop,
                tell,
            };
            run.restore().await
        });
        until_stopped_alone(interrupt, work.as_mut(), || stop.store(true, Ordering::Relaxed)).await
    };
    let removed = tokio::task::spawn_blocking(|| scratch.end()).await;
    let removed = removed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    let restored = match ended {
        Ended::Done(done) => Some(done?),
        Ended::Stopped(_) => None,
    };
    removed?;
    restored.ok_or_else(|| BackupError::Interrupted.into())
}

/// Major version of the scratch server.
fn version(plan: &Plan, found: &Outcome, request: &Request<'_>) -> Result<u16, RestoreError> {
    let path = || plan.path.clone();
    let text = found.server.as_deref().unwrap_or_default();
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let own: Option<u16> = digits.parse().ok();
    let versions = || Major::all().map(Major::number);
    if is_base(&found.recipe) {
        return match (own, request.version) {
            (Some(own), Some(asked)) if own != asked => {
                Err(RestoreError::OtherVersion { path: path(), own, asked })
            }
            (Some(own), _) if request.bin.is_none() && !versions().any(|known| known == own) => {
                Err(RestoreError::UnknownVersion { path: path(), version: text.to_owned() })
            }
            (own, asked) => own.or(asked).ok_or_else(|| RestoreError::NoVersion { path: path() }),
        };
    }
    // A later server restores the dump of an earlier one.
    let oldest = versions().min().unwrap_or_default();
    let version = request.version.or(own.map(|own| own.max(oldest)));
    version.ok_or_else(|| RestoreError::NoVersion { path: path() })
}

fn is_base(recipe: &Recipe) -> bool {
    matches!(recipe.form, Some(Form::Base | Form::BaseTar | Form::OneTar))
}

/// A restore that is under way.
struct Run<'a> {
    plan: &'a Plan,
    found: &'a Outcome,
    request: &'a Request<'a>,
    facts: &'a Facts,
    /// The client programs for a dump; none for a base backup.
    programs: Option<&'a Programs>,
    scratch: &'a Scratch,
    stop: &'a AtomicBool,
    tell: &'a dyn Fn(&str),
}

impl Run<'_> {
    async fn restore(&self) -> Result<Restored, RestoreError> {
        let mut restored = Restored::default();
        let done = match self.programs {
            None => self.restore_base(&mut restored).await,
            Some(programs) => self.restore_dump(programs, &mut restored).await,
        };
        match done {
            Ok(()) => Ok(restored),
            Err(Failed::Trouble(Trouble::Way(why))) => {
                restored.fail(why);
                Ok(restored)
            }
            Err(Failed::Trouble(Trouble::Run(error))) => Err(error.into()),
            Err(Failed::Restore(error)) => Err(error),
        }
    }
}

/// Why a restore did not come to its end.
enum Failed {
    Trouble(Trouble),
    Restore(RestoreError),
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl<E: Into<RestoreError>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Restore(error.into())
    }
}
