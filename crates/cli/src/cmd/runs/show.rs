//! `pgrig runs show`: one run.

use std::fmt::Write;

use measure::human::{self, bytes};
use measure::{Figure, Run, figures, judged_figures, unmeasurable};

use crate::app::failure::Failure;
use crate::app::plain::plain;
use crate::app::printer::{OutputPosition, Printer, first_paragraph};
use crate::app::runs::{Labelled, Selection};
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::runs::args::ShowArgs;
use crate::cmd::runs::subject::subject;

/// Prints the run.
pub(crate) fn run(arguments: &ShowArgs, printer: &Printer) -> Result<(), Failure> {
    let found = Selection::new(Labelled::All, printer)?.document(&arguments.run)?;
    if arguments.json {
        return Ok(Printer::json(found.text.trim_end())?);
    }
    let place = OutputPosition::here();
    let shown = text(&found.run, found.text.len());
    printer.result(&shown)?;
    for note in &found.run.notes {
        printer.say(format!("note: {}", plain(&note.text)));
    }
    Ok(printer.remind(place, first_paragraph(&shown))?)
}

fn text(run: &Run, size: usize) -> String {
    let environment = &run.environment;
    let server = environment.server.release();
    let machine = &environment.client;
    let mut lines = vec![("run", run.id.clone())];
    lines.extend(run.label.clone().map(|label| ("label", label)));
    lines.extend([
        ("verb", run.verb.clone()),
        ("measured", subject(&run.verb, &run.request)),
        ("started", run.started_at.clone()),
        ("status", run.status.name().to_owned()),
        ("trials", run.trials.len().to_string()),
        ("server", format!("{server}, {}, database {}", environment.transport, environment.database)),
        (
            "machine",
            format!(
                "{}, {}, {}, {}",
                machine.system,
                human::counted(machine.cores.into(), "processor"),
                bytes(machine.memory),
                machine.cpu
            ),
        ),
        ("pgrig", environment.pgrig.clone()),
        ("document", bytes(size as u64)),
    ]);
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{name:10}{}", plain(&value));
    }
    text + "\n" + &of_figures(run)
}

/// All figures of a run with one configuration; otherwise those that `compare` judges.
fn of_figures(run: &Run) -> String {
    let all = figures(run);
    let Some((first, _)) = all.first() else { return without_figures(run) };
    let is_one = all.iter().all(|(figure, _)| figure.config == first.config);
    let judged = judged_figures(run, &[]);
    let shown = if is_one || judged.is_empty() { &all } else { &judged };
    let mut table = new_table(&["figure", "value"]);
    for (figure, value) in shown {
        let name = if is_one { figure.name.clone() } else { Figure::full_name(figure) };
        table.add_row([plain(&name).into_owned(), human::figure(figure.unit, *value)]);
    }
    align_right(&mut table, 1..2);
    let more = match all.len() - shown.len() {
        0 => String::new(),
        1 => "\n1 more figure is in the document (--json)".to_owned(),
        more => format!("\n{more} more figures are in the document (--json)"),
    };
    let unmeasurable = match unmeasurable(run).as_slice() {
        [] => String::new(),
        names => format!("\nnot measurable: {}", plain(&names.join(", "))),
    };
    trimmed(&table) + &more + &unmeasurable
}

/// The text on a run without figures: of `model check`, the share of the statistics that agree.
fn without_figures(run: &Run) -> String {
    let of_copy =
        run.trials.iter().find_map(|trial| Some((trial.value("fields-within")?, trial.value("fields")?)));
    match of_copy {
        Some((within, fields)) if run.verb == "model" => format!(
            "statistics  {:.1} % of {fields} fields are as in the original",
            within / fields.max(1.0) * 100.0
        ),
        _ => "no figure: no trial is complete".to_owned(),
    }
}
