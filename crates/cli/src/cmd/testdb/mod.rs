//! `pgrig testdb`.

pub(crate) mod args;
pub(crate) mod bench;
#[cfg(feature = "serve")]
mod lend;
mod unlog;

use crate::app::failure::Failure;
use crate::app::printer::Printer;
use crate::cmd::testdb::args::{TestdbAction, TestdbArgs};

/// Runs the subcommand.
pub(crate) fn run(arguments: &TestdbArgs, printer: &Printer) -> Result<(), Failure> {
    match &arguments.action {
        TestdbAction::Unlog(arguments) => unlog::run(arguments, printer),
        TestdbAction::Bench(arguments) => bench::run(arguments, printer),
        #[cfg(feature = "serve")]
        TestdbAction::Lend(action) => lend::run(action, printer),
    }
}

/// Prints a failing command for the shell's eval: an eval of nothing would succeed, and the script
/// would continue with another database.
pub(crate) fn fail_in_eval() {
    // Without an output nobody evaluates it.
    let _ = Printer::json("false");
}
