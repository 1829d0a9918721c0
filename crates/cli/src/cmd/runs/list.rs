//! `pgrig runs list`: one line for each run.

use console::{measure_text_width, truncate_str};
use glob::Pattern;
use jiff::Timestamp;
use measure::{Better, Figure, FigureUnit, human, judged_among};
use serde_json::{Value, json};

use crate::app::failure::{Failure, Usage};
use crate::app::json;
use crate::app::plain::plain;
use crate::app::printer::Printer;
use crate::app::runs::{Saved, Store, figures};
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::runs::args::ListArgs;
use crate::cmd::runs::status;
use crate::cmd::runs::subject::subject;

/// Length of the time in an id, which is enough to name most runs.
const TIME: usize = "20261124T081827Z".len();
/// The titles of the columns.
const COLUMNS: [&str; 7] = ["run", "verb", "label", "measured", "result", "status", "size"];
/// The ways to fit the table into a narrow terminal, the first one first.
const NARROWER: [Narrower; 5] = [
    Narrower::LeaveOut("size"),
    Narrower::LeaveOut("measured"),
    Narrower::Shorten("result", 14),
    Narrower::Shorten("label", 10),
    Narrower::LeaveOut("label"),
];
/// The configuration of a fill of several tables that contains those of the tables.
const ALL_TABLES: &str = "all tables";
/// Most judged figures that are shown for a run with one configuration.
const MOST_FIGURES: usize = 2;

/// A way to make the table narrower.
#[derive(Clone, Copy)]
enum Narrower {
    /// Without this column.
    LeaveOut(&'static str),
    /// With shorter cells in this column, but no shorter than this.
    Shorten(&'static str, usize),
}

impl Narrower {
    fn column(self) -> &'static str {
        let (Self::LeaveOut(title) | Self::Shorten(title, _)) = self;
        title
    }
}

/// Prints the list.
pub(crate) fn run(arguments: &ListArgs, printer: &Printer) -> Result<(), Failure> {
    let all = Store::locate()?.all(printer)?;
    let shown = chosen(arguments, &all)?;
    if arguments.json {
        let listed: Vec<Value> = shown.iter().map(|saved| document(saved)).collect();
        return Ok(Printer::json(&json::pretty(listed)?)?);
    }
    if shown.is_empty() {
        printer.say(if all.is_empty() {
            "no saved run yet: each measuring command saves its runs"
        } else {
            "no saved run matches"
        });
        return Ok(());
    }
    show(&shown, &all, printer)?;
    let future = shown.iter().filter(|saved| saved.is_in_the_future()).count();
    if future > 0 {
        let (start, those) = if future == 1 { ("starts", "that run") } else { ("start", "those runs") };
        printer.say(format!(
            "note: {future} of these runs {start} in the future: the clock was set back after {those}"
        ));
    }
    Ok(())
}

/// The runs that the arguments ask for.
fn chosen<'s>(arguments: &ListArgs, all: &'s [Saved]) -> Result<Vec<&'s Saved>, Usage> {
    let pattern = arguments.label.as_deref().map(Pattern::new).transpose();
    let pattern = pattern.map_err(|error| Usage(format!("--label is not a pattern: {error}")))?;
    let is_asked = |saved: &&Saved| {
        let head = &saved.head;
        let label = head.label.as_deref();
        let start = || head.started_at.parse::<Timestamp>().ok();
        arguments.verb.as_ref().is_none_or(|verb| head.verb == *verb)
            && pattern.as_ref().is_none_or(|pattern| label.is_some_and(|label| pattern.matches(label)))
            && arguments.since.is_none_or(|since| start().is_some_and(|start| start >= since))
    };
    Ok(all.iter().filter(is_asked).take(arguments.limit.unwrap_or(usize::MAX)).collect())
}

/// Prints a line for each run. `all` are the runs from which the shown ids must differ.
pub(super) fn show(shown: &[&Saved], all: &[Saved], printer: &Printer) -> Result<(), Failure> {
    let (table, spared) = text(shown, all, Printer::width());
    printer.result(table)?;
    if !spared.is_empty() {
        printer.say(format!(
            "left out on this narrow terminal: {} (pgrig runs list --json has all)",
            spared.join(", ")
        ));
    }
    Ok(())
}

/// A line for each run of at most `width` columns, as far as that can be, and the columns that are left out for it.
fn text(shown: &[&Saved], all: &[Saved], width: Option<usize>) -> (String, Vec<&'static str>) {
    let mut ids: Vec<&str> = all.iter().map(|saved| saved.head.id.as_str()).collect();
    ids.sort_unstable();
    let has_labels = shown.iter().any(|saved| saved.head.label.is_some());
    fitted(shown.iter().map(|saved| row(saved, &ids)).collect(), has_labels, width)
}

/// The table of these rows, and the columns that are left out of it.
fn fitted(mut rows: Vec<[String; 7]>, has_labels: bool, width: Option<usize>) -> (String, Vec<&'static str>) {
    let is_there = |title: &str| has_labels || title != "label";
    let mut ways = NARROWER.into_iter().filter(|way| is_there(way.column()));
    let mut left_out = Vec::new();
    loop {
        let chosen: Vec<usize> = (0..COLUMNS.len())
            .filter(|at| is_there(COLUMNS[*at]) && !left_out.contains(&COLUMNS[*at]))
            .collect();
        let table = table(&rows, &chosen);
        let widest = table.lines().map(measure_text_width).max().unwrap_or_default();
        let excess = width.map_or(0, |width| widest.saturating_sub(width));
        match ways.next().filter(|_| excess > 0) {
            Some(Narrower::LeaveOut(title)) => left_out.push(title),
            Some(Narrower::Shorten(title, least)) => shorten(&mut rows, title, least, excess),
            None => return (table, left_out),
        }
    }
}

/// Makes a column narrower by `excess`, but not narrower than `least`.
fn shorten(rows: &mut [[String; 7]], title: &str, least: usize, excess: usize) {
    let at = COLUMNS.iter().position(|column| *column == title).unwrap_or_default();
    let widest = rows.iter().map(|row| measure_text_width(&row[at])).max().unwrap_or_default();
    let most = widest.saturating_sub(excess).max(least);
    for row in rows {
        row[at] = truncate_str(&row[at], most, "…").into_owned();
    }
}

/// The cells of a run, as [`COLUMNS`] has them.
fn row(saved: &Saved, ids: &[&str]) -> [String; 7] {
    let head = &saved.head;
    [
        short(&head.id, ids).to_owned(),
        plain(&head.verb).into_owned(),
        head.label.as_deref().map_or_else(|| "-".into(), plain).into_owned(),
        plain(&subject(&head.verb, &head.request)).into_owned(),
        plain(&result(saved)).into_owned(),
        status(saved).to_owned(),
        human::bytes(saved.size),
    ]
}

fn table(rows: &[[String; 7]], chosen: &[usize]) -> String {
    let header: Vec<&str> = chosen.iter().map(|at| COLUMNS[*at]).collect();
    let mut table = new_table(&header);
    for row in rows {
        table.add_row(chosen.iter().map(|at| &row[*at]));
    }
    if header.last() == Some(&"size") {
        align_right(&mut table, header.len() - 1..header.len());
    }
    trimmed(&table)
}

/// The shortest beginning of an id that includes the whole time and names no other run. `ids` are
/// sorted.
fn short<'i>(id: &'i str, ids: &[&str]) -> &'i str {
    let place = ids.partition_point(|other| *other < id);
    let common = |other: &&str| id.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let before = place.checked_sub(1).and_then(|before| ids.get(before)).map_or(0, common);
    let after = ids.get(place + 1).map_or(0, common);
    let length = TIME.max(before.max(after) + 1);
    id.get(..length).unwrap_or(id)
}

/// The result in a few words.
fn result(saved: &Saved) -> String {
    let verb = &saved.head.verb;
    figures(&saved.path).map_or_else(|_| "unreadable".to_owned(), |found| of_figures(verb, found))
}

/// The judged figures of the only configuration, or of the one that contains the others; otherwise the first figure of the best
/// configuration.
fn of_figures(verb: &str, found: Vec<(Figure, f64)>) -> String {
    let judged = judged_among(verb, found, &[]);
    let Some((first, _)) = judged.first() else { return "-".to_owned() };
    let same: Vec<&(Figure, f64)> = judged.iter().filter(|(figure, _)| figure.name == first.name).collect();
    let of_all = same.iter().find(|(figure, _)| verb == "fill" && figure.config == ALL_TABLES);
    if let Some((figure, number)) = of_all {
        return value(figure, *number);
    }
    let is_whole = [verb, "total"].contains(&first.config.as_str());
    if is_whole && same.len() == 1 {
        let shown: Vec<String> =
            judged.iter().take(MOST_FIGURES).map(|(figure, number)| value(figure, *number)).collect();
        return shown.join(", ");
    }
    let order = |one: &&&(Figure, f64), other: &&&(Figure, f64)| match first.better() {
        Better::Less => one.1.total_cmp(&other.1),
        Better::More => other.1.total_cmp(&one.1),
    };
    let Some((best, number)) = same.iter().min_by(order) else { return "-".to_owned() };
    let of = if same.len() > 1 { format!(", best of {}", same.len()) } else { String::new() };
    if best.unit == FigureUnit::Times {
        return format!("{}: {}{of}", best.config, human::figure(best.unit, *number));
    }
    format!("{}: {}{of}", value(best, *number), best.config)
}

/// The figure's name and value.
fn value(figure: &Figure, value: f64) -> String {
    format!("{} {}", figure.name, human::figure(figure.unit, value))
}

fn document(saved: &Saved) -> Value {
    let head = &saved.head;
    let figures = figures(&saved.path).map(|found| judged_among(&head.verb, found, &[])).unwrap_or_default();
    let figures: Vec<Value> = figures
        .iter()
        .map(|(Figure { config, name, unit }, value)| {
            json!({ "config": config, "name": name, "value": value, "unit": unit })
        })
        .collect();
    json!({
        "id": head.id,
        "verb": head.verb,
        "label": head.label,
        "started_at": head.started_at,
        "status": status(saved),
        "measured": subject(&head.verb, &head.request),
        "figures": figures,
        "size": saved.size,
        "file": saved.path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_short_as_they_may_be() {
        let ids = ["20261124T081827Z-tps-1a2b", "20261124T081827Z-tps-1a2c", "20261124T081828Z-fill-1a"];
        assert_eq!(short(ids[0], &ids), ids[0]);
        assert_eq!(short(ids[2], &ids), "20261124T081828Z");
        assert_eq!(short(ids[0], &[ids[0], ids[2]]), "20261124T081827Z");
    }

    #[test]
    fn long_cells_are_shortened_before_their_columns_are_left_out() {
        let row = |id: &str, verb: &str, label: &str, result: &str| {
            [id, verb, label, "10.0 MB, 1 client", result, "unfinished", "23.1 kB"].map(str::to_owned)
        };
        let rows = vec![
            row("20261124T083857Z-model-18a", "model", "before", "-"),
            row(
                "20261124T083859Z",
                "ddl",
                &"a label of ab ".repeat(4),
                &"time 1 s: ALTER TABLE t ".repeat(5),
            ),
        ];
        let (text, left_out) = fitted(rows.clone(), true, Some(80));
        assert_eq!(left_out, ["size", "measured"]);
        assert!(text.lines().all(|line| measure_text_width(line) <= 80), "{text}");
        for part in ["ddl", "before", "a label", "time 1 s", "…"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let (text, left_out) = fitted(rows.clone(), true, Some(60));
        assert_eq!(left_out, ["size", "measured", "label"]);
        assert!(text.contains("ddl"), "the verb stays: {text}");
        assert!(fitted(rows, true, None).0.contains("23.1 kB"));
    }

    #[test]
    fn the_result_of_micro_names_the_candidate_before_its_multiple() {
        let multiple = |config: &str, times: f64| {
            (Figure { config: config.to_owned(), name: "times".to_owned(), unit: FigureUnit::Times }, times)
        };
        assert_eq!(of_figures("micro", vec![multiple("abs(i)", 0.4)]), "abs(i): 0.400 × the first");
        assert_eq!(
            of_figures("micro", vec![multiple("f(i)", 2.9), multiple("g(i)", 3.0)]),
            "f(i): 2.900 × the first, best of 2"
        );
    }

    #[test]
    fn the_result_of_a_fill_is_that_of_all_tables() {
        let total = |config: &str, seconds: f64| {
            let (config, name) = (config.to_owned(), "total".to_owned());
            (Figure { config, name, unit: FigureUnit::Seconds }, seconds)
        };
        let of_tables = vec![total("s9.customers", 0.176), total("s9.orders", 0.5)];
        assert_eq!(of_figures("fill", of_tables.clone()), "total 176 ms: s9.customers, best of 2");
        let with_all = [of_tables, vec![total("all tables", 0.705)]].concat();
        assert_eq!(of_figures("fill", with_all), "total 705 ms");
    }
}
