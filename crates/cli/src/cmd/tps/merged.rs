//! `--merge`: part 1 makes one run of all parts, whose documents travel through the server.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use measure::{Run, Status};
use tps::{Exchange, Part, Plan};

use crate::app::failure::{BadResult, Failure, MachineFailure, Usage};
use crate::app::interrupt::interrupted;
use crate::app::json;
use crate::app::merged::merge_parts;
use crate::app::output::{Existing, refuse_unwritable};
use crate::app::printer::Printer;
use crate::app::target::Chosen;
use crate::cmd::tps::args::TpsArgs;

/// Level of compression: documents are sent once.
const LEVEL: i32 = 3;

/// Refuses requests whose results cannot be merged, before the run.
pub(crate) fn check(arguments: &TpsArgs, part: Option<&Part>) -> Result<(), Usage> {
    let Some(file) = &arguments.merge else { return Ok(()) };
    let Some(part) = part else {
        return Err(Usage("--merge makes one run of several parts: give --part I/N, too".to_owned()));
    };
    if file == "-" && arguments.save.is_to_stdout() {
        return Err(Usage(
            "only one document can go to standard output: give a file to --merge or to --json".to_owned(),
        ));
    }
    match part.number {
        1 if file != "-" => refuse_unwritable("--merge", Path::new(file), Existing::Replaced),
        _ => Ok(()),
    }
}

/// The session by which the documents will travel, if they will.
pub(crate) async fn open(
    arguments: &TpsArgs,
    plan: &Plan,
    chosen: &Chosen,
) -> Result<Option<Exchange>, Failure> {
    match (&arguments.merge, &plan.request.part) {
        (Some(_), Some(part)) => Ok(Some(Exchange::open(&chosen.target, part).await?)),
        _ => Ok(None),
    }
}

/// Sends the run to part 1; in part 1, receives those of the others, and merges all.
pub(crate) async fn exchange(
    exchange: &Exchange,
    part: &Part,
    run: Run,
    arguments: &TpsArgs,
    printer: &Printer,
) -> Result<(), Failure> {
    if run.status != Status::Done {
        return Ok(());
    }
    if part.number != 1 {
        return Ok(exchange.send(&packed(&run)?).await?);
    }
    printer.say("waiting for the documents of the other parts");
    let documents = tokio::select! {
        biased;
        () = interrupted(printer) => return Err(BadResult::Interrupted.into()),
        documents = exchange.receive() => documents?,
    };
    let others = documents.iter().map(|document| unpacked(document));
    let runs = std::iter::once(Ok(run)).chain(others).collect::<Result<Vec<Run>, Failure>>()?;
    merge_parts(runs, arguments.merge.as_deref(), None, printer)
}

fn packed(run: &Run) -> Result<String, Failure> {
    let small = zstd::encode_all(json::pretty(run)?.as_bytes(), LEVEL)?;
    Ok(STANDARD_NO_PAD.encode(small))
}

fn unpacked(document: &str) -> Result<Run, Failure> {
    let broken = |why: &dyn std::fmt::Display| MachineFailure(format!("a part sent no run document: {why}"));
    let small = STANDARD_NO_PAD.decode(document).map_err(|error| broken(&error))?;
    let text = zstd::decode_all(&small[..]).map_err(|error| broken(&error))?;
    Ok(serde_json::from_slice(&text).map_err(|error| broken(&error))?)
}
