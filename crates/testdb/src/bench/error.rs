//! Why a bench was refused, or ended early.

use failure::{Class, Classified};
use std::io;
use std::path::PathBuf;

use crate::bench::variant::{Missing, Variant};
use crate::clone::CloneError;
use crate::load::LoadError;
use crate::source::SourceError;
use crate::unlog::UnlogError;
use connect::ConnectError;
use server::fault::Panicked;
use server::settings::{Record, SettingsError};
use tps::TpsError;

/// Why a bench was refused, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A variant that was asked for cannot be tried.
    #[error("{variant} cannot be tried here: {}", .missing.why)]
    Missing {
        /// The variant that was asked for.
        variant: Variant,
        /// The means that cannot be used, with the reason.
        missing: Missing,
    },
    /// The normal variant failed, so there is nothing to compare with.
    #[error(
        "the command fails with variant normal ({how}), so there is nothing to compare with: correct the command; its \
         output is in the log"
    )]
    NormalFailed {
        /// Exit status or signal.
        how: String,
    },
    /// SHOW does not return the value that was set.
    #[error("{variant}: {name} is {shown} in the command's sessions, not {wanted}: {remedy}")]
    NotActive {
        /// In which variant.
        variant: Variant,
        /// Name of the setting.
        name: &'static str,
        /// Value that SHOW gives.
        shown: String,
        /// Value that was asked for.
        wanted: String,
        /// How to remove the value.
        remedy: String,
    },
    /// The unlogged copy has no unlogged tables.
    #[error("{variant}: no table of the database is unlogged: leave out the variant")]
    NoneUnlogged {
        /// In which variant.
        variant: Variant,
    },
    /// The databases have no tables of pgbench's, or empty ones.
    #[error(
        "{content} has no pgbench tables with rows, which the built-in scripts need: give --from FILE, a pg_dump \
         of a database that pgrig fill --scale 10 filled, or a script of your own (--tps FILE)"
    )]
    NoTables {
        /// The source of the databases.
        content: String,
    },
    /// Standard input cannot be read for each trial anew.
    #[error("pgrig loads the script several times: give a file, not standard input or a pipe")]
    ReadOnce,
    /// The command's log.
    #[error("cannot write the commands' output to {path}: {error}")]
    Log {
        /// Path of the log.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The command cannot be started or waited for.
    #[error("cannot run the command: {0}")]
    Command(io::Error),
    /// A database cannot be copied.
    #[error(transparent)]
    Clone(#[from] CloneError),
    /// The schema or dump cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The script cannot be loaded.
    #[error("{script}: {error}")]
    Load {
        /// File with the script.
        script: String,
        /// Why it cannot be loaded.
        error: LoadError,
    },
    /// A copy's tables cannot be made unlogged.
    #[error(transparent)]
    Unlog(#[from] UnlogError),
    /// Settings cannot be changed.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The script of transactions cannot be run.
    #[error(transparent)]
    Tps(#[from] TpsError),
    /// The code of pgrig panicked during the bench.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The server does not answer.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Changed settings or created databases could not be restored or dropped.
    #[error("pgrig could not restore everything: {error}. To restore the rest, run pgrig server status{by_hand}", by_hand = by_hand(.record.as_deref()))]
    NotPutBack {
        /// Why it could not be restored or dropped.
        error: Box<BenchError>,
        /// Settings that are still changed.
        record: Option<Box<Record>>,
        /// The error that had ended the bench before, if any.
        ended: Option<Box<BenchError>>,
    },
    /// The user wanted it to stop.
    #[error("interrupted: the results so far are above")]
    Interrupted,
    /// The user stopped it before a judged trial was complete.
    #[error("interrupted before the first trial that counts")]
    InterruptedEarly,
}

impl Classified for BenchError {
    fn class(&self) -> Class {
        match self {
            Self::Clone(error) => error.class(),
            Self::Source(error) => error.class(),
            // As of `testdb new`: a statement that fails is the script's.
            Self::Load { error: LoadError::Statement { .. }, .. }
            | Self::Missing { .. }
            | Self::NoTables { .. }
            | Self::ReadOnce => Class::Request,
            Self::Load { error, .. } => error.class(),
            Self::Unlog(error) => error.class(),
            Self::Settings(error) => error.class(),
            Self::Tps(error) => error.class(),
            Self::Connect(error) => error.class(),
            Self::NotPutBack { ended: Some(ended), .. } if ended.is_interrupt() => Class::Interrupted,
            Self::NotPutBack { .. }
            | Self::NormalFailed { .. }
            | Self::NotActive { .. }
            | Self::NoneUnlogged { .. }
            | Self::Log { .. }
            | Self::Command(_)
            | Self::Panicked(_) => Class::Machine,
            Self::Interrupted | Self::InterruptedEarly => Class::Interrupted,
        }
    }
}

fn by_hand(record: Option<&Record>) -> String {
    record.map_or(String::new(), |record| {
        format!(". To restore the settings by hand, run: {}", record.remedy().join(" "))
    })
}
