//! Arguments of `pgrig doctor`.

use clap::Args;

use crate::app::args::ServerChoice;

const INSTANCE: &str = "Report on this instance of pgrig's own PostgreSQL, even if PGHOST or another variable names a server \
                        [default: the instance called default]";

const VERSION: &str = "Report as if the instance were created with this major version of PostgreSQL, 13 to 18 [default: the \
                       version of the instance, else 18]";

const PROGRAMS: &str =
    "Report on the PostgreSQL whose programs (initdb, postgres) are in DIR, instead of a download";

const PROFILE: &str =
    "Report as if the instance started with this profile of settings: stock, bulk or dangerous";

const SETTING: &str =
    "Report as if the instance started with this setting, for example work_mem=64MB; may be repeated";

/// Show which verbs work on this machine and with this server
///
/// doctor prints the directory of pgrig's files, the free disk space, the downloaded versions of PostgreSQL, the
/// server that other verbs would use with the same options, and the verbs that work on it. It changes nothing, creates
/// no instance, and starts no server, even with --instance.
#[derive(Debug, Args)]
#[command(mut_arg("instance", |instance| instance.help(INSTANCE)),
    mut_arg("pg_version", |version| version.help(VERSION)), mut_arg("pg_bin", |programs| programs.help(PROGRAMS)),
    mut_arg("profile", |profile| profile.help(PROFILE)), mut_arg("set", |setting| setting.help(SETTING)), after_help = "Examples:\n  \
    pgrig doctor\n  \
    pgrig doctor -d postgresql://me@db.example.com/mydb")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) server: ServerChoice,
}
