//! `pgrig testdb unlog`: of a live database, or of a dump.

pub(crate) mod args;
mod dump;
mod live;

use crate::app::failure::{Failure, Usage};
use crate::app::printer::Printer;
use crate::cmd::testdb::args::UnlogArgs;

/// Runs the verb.
pub(crate) fn run(arguments: &UnlogArgs, printer: &Printer) -> Result<(), Failure> {
    if arguments.is_live() {
        let for_dumps = [
            ("FILE", arguments.file.is_some()),
            ("--output", arguments.output.is_some()),
            ("--compress", arguments.compress.is_some()),
        ];
        refuse(
            &for_dumps,
            "for a dump, and -d, -h, -p, -U, --instance, --pg-version, --pg-bin, --profile and --set are for a live database: give \
             one or the other",
        )?;
        live::run(arguments, printer)
    } else {
        let for_databases = [
            ("--schema", !arguments.schema.is_empty()),
            ("--back", arguments.back),
            ("--explain", arguments.explain),
            ("--lock-timeout", arguments.lock_timeout.is_some()),
        ];
        let why = match &arguments.file {
            Some(_) => "for a live database, and FILE is a dump: leave out FILE, and give -d DBNAME",
            None => "for a live database: give it with -d, -h, -p, -U or --instance",
        };
        refuse(&for_databases, why)?;
        dump::run(arguments, printer)
    }
}

/// Refuses options that have no meaning here.
fn refuse(options: &[(&str, bool)], why: &str) -> Result<(), Usage> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Usage(format!("{option} is {why}"))),
        None => Ok(()),
    }
}
