//! Why a matrix was refused, or ended early.

use failure::{Class, Classified};
use std::path::PathBuf;

use crate::TpsError;
use connect::ConnectError;
use server::fault::Panicked;
use server::settings::{Record, SettingsError};

/// Why a matrix was refused, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// Axes that do not go together.
    #[error("{0}")]
    Request(String),
    /// A level that puts data of others at risk, on a server that is not pgrig's own.
    #[error(
        "pgrig refuses to {action} on a server that is not its own: during the run, {cost}. Give levels without \
         this risk (durability=normal,async), leave this axis out, use pgrig's own server (no -d, -h, -p, -U), or accept \
         the risk with --allow-dangerous-settings"
    )]
    Dangerous {
        /// The refused action, after "to".
        action: &'static str,
        /// The possible loss in a crash.
        cost: &'static str,
    },
    /// A setting makes the level "normal" impossible.
    #[error("the server runs with {name} = {shown}, so pgrig cannot measure durability=normal: {remedy}")]
    NotNormal {
        /// Name of the setting.
        name: String,
        /// Value that SHOW gives.
        shown: String,
        /// The remedy, as an imperative.
        remedy: String,
    },
    /// An unlogged table makes the level "normal" impossible.
    #[error(
        "table {table} is unlogged, so pgrig cannot measure durability=normal: run ALTER TABLE {table} SET LOGGED first, \
         or fill it without --unlogged"
    )]
    Unlogged {
        /// The table that is unlogged.
        table: String,
    },
    /// pgrig does not know the tables that the scripts write.
    #[error(
        "durability=unlogged needs the tables that your own scripts write: name them, for example with --tables orders,customers"
    )]
    WhichTables,
    /// Settings or tables cannot be changed.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A setting is not in force in a session.
    #[error("{name} is {shown} in a new session, not {wanted}: {remedy}")]
    NotInForce {
        /// Name of the setting.
        name: String,
        /// Value that was asked for.
        wanted: String,
        /// Value that SHOW gives.
        shown: String,
        /// The remedy, as an imperative.
        remedy: String,
    },
    /// The server does not start with the new settings.
    #[error("the server cannot be restarted{with}: {why}")]
    Restart {
        /// The settings, as ` with shared_buffers=1TB`, or nothing.
        with: String,
        /// Why the server does not start.
        why: String,
    },
    /// A trial failed.
    #[error(transparent)]
    Tps(#[from] TpsError),
    /// The code of pgrig panicked during the matrix.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The server does not answer.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Clients were lost in a trial.
    #[error("trial {trial}, {cell}: {why}")]
    Lost {
        /// Its number, from 1.
        trial: usize,
        /// Name of its cell.
        cell: String,
        /// Why the first client was lost.
        why: String,
        /// Whether its script or the server is the cause.
        class: Class,
    },
    /// The user wanted it to stop.
    #[error("interrupted in trial {trial} of {trials}")]
    Interrupted {
        /// The trial's number, from 1.
        trial: usize,
        /// Number of planned trials.
        trials: usize,
    },
    /// Settings or tables could not be restored.
    #[error("{}pgrig could not restore the server: {error}. {}", before(ended.as_deref()), left(record, path))]
    NotPutBack {
        /// Why they could not be restored.
        error: Box<SettingsError>,
        /// The error that had ended the matrix before, if any.
        ended: Option<Box<MatrixError>>,
        /// Settings that are still changed.
        record: Box<Record>,
        /// Path of its journal.
        path: PathBuf,
    },
}

impl Classified for MatrixError {
    fn class(&self) -> Class {
        match self {
            Self::Settings(error) => error.class(),
            Self::Tps(error) => error.class(),
            Self::Connect(error) => error.class(),
            Self::NotPutBack { ended: Some(ended), .. } if ended.is_interrupt() => Class::Interrupted,
            Self::Request(_)
            | Self::Dangerous { .. }
            | Self::NotNormal { .. }
            | Self::Unlogged { .. }
            | Self::WhichTables => Class::Request,
            Self::Lost { class, .. } => *class,
            Self::NotPutBack { .. } | Self::NotInForce { .. } | Self::Restart { .. } | Self::Panicked(_) => {
                Class::Machine
            }
            Self::Interrupted { .. } => Class::Interrupted,
        }
    }
}

fn before(ended: Option<&MatrixError>) -> String {
    ended.map_or(String::new(), |ended| format!("{ended}. Also, "))
}

/// The remedy for changes that are still there.
pub(super) fn left(record: &Record, path: &std::path::Path) -> String {
    format!(
        "The next pgrig command tries again (journal: {}). To restore it by hand, run as a superuser: {}",
        path.display(),
        record.remedy().join(" ")
    )
}
