//! Arguments of `pgrig doctor`.

use clap::Args;

use crate::app::args::ServerChoice;

/// Show which commands work on this machine and with this server
///
/// doctor prints the directory of pgrig's files, the free disk space, the downloaded versions of PostgreSQL, the server
/// that other commands would use with the same options, and the commands that work on it. It changes nothing, creates
/// no instance, and starts no server, also with --instance.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig doctor\n  \
    pgrig doctor -d postgresql://me@db.example.com/mydb")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) server: ServerChoice,
}
