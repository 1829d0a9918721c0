//! The program `pgrig`: arguments in, a verb run, an exit status out.
//!
//! Start reading at `run` below, then at `cmd/<verb>/mod.rs` of a verb and at `app/conduct.rs`, which conducts the runs of
//! all measuring verbs. `cmd/` has a folder for each verb: its arguments, progress and text. `app/` has the code that
//! verbs share.
//! This crate must not know how anything is filled, measured or judged: it makes requests of arguments, and texts of
//! outcomes.

mod app;
mod cmd;

use std::process::ExitCode;

use crate::app::args::SaveArgs;
use crate::app::printer::Printer;
use crate::app::questions::questions;
use crate::app::{exit, fault, interrupt, recovery};
use crate::cmd::line::{self, Verb};

fn main() -> ExitCode {
    fault::guarded(run)
}

fn run() -> ExitCode {
    let arguments = std::env::args_os().collect::<Vec<_>>();
    if arguments.len() <= 1 {
        return exit::printed(&questions());
    }
    let cli = match line::parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() && line::is_for_eval(&arguments) {
                cmd::testdb::fail_in_eval();
            }
            return exit::usage(&error);
        }
    };
    let printer = Printer::new(cli.quiet, cli.verb.json_to_stdout());
    let writable = cli.verb.save().map_or(Ok(()), SaveArgs::refuse_unwritable);
    if let Err(refused) = writable.and_then(|()| cli.verb.files().refuse_overlaps()) {
        return exit::status(Err(refused.into()), &printer);
    }
    if !cli.verb.is_background() {
        interrupt::listen(&printer);
    }
    if cli.verb.uses_a_server() {
        recovery::sweep(cli.verb.server().as_ref(), &printer);
    }
    if interrupt::was_asked() {
        return exit::interrupted();
    }
    let result = match cli.verb {
        Verb::Fill(arguments) => cmd::fill::run(&arguments, &printer),
        Verb::Blockio(arguments) => cmd::blockio::run(&arguments, &printer),
        Verb::Micro(arguments) => cmd::micro::run(&arguments, &printer),
        Verb::Tps(arguments) => cmd::tps::run(&arguments, &printer),
        Verb::Ddl(arguments) => cmd::ddl::run(&arguments, &printer),
        Verb::Backup(arguments) => cmd::backup::run(&arguments, &printer),
        Verb::Testdb(arguments) => cmd::testdb::run(&arguments, &printer),
        Verb::Ab(arguments) => cmd::ab::run(&arguments, &printer),
        Verb::Compare(arguments) => cmd::compare::run(&arguments, &printer),
        Verb::Merge(arguments) => cmd::merge::run(&arguments, &printer),
        Verb::Report(arguments) => cmd::report::run(&arguments, &printer),
        Verb::Runs(arguments) => cmd::runs::run(&arguments, &printer),
        Verb::Model(arguments) => cmd::model::run(&arguments, &printer),
        Verb::Size(arguments) => cmd::size::run(&arguments, &printer),
        Verb::Server(arguments) => cmd::server::run(&arguments, &printer),
        Verb::Doctor(arguments) => cmd::doctor::run(&arguments, &printer),
        Verb::Completions(arguments) => cmd::completions::run(&arguments, &printer),
        Verb::Man(arguments) => cmd::man::run(&arguments, &printer),
    };
    exit::status(result, &printer)
}
