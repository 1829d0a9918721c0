//! The better ways that `--alternatives` measured in the place of statements.

use serde_json::Value;

use super::{Statement, blocks, class_name, probes, rowless};
use crate::document::median;
use crate::escape::shortened;
use crate::plot::Table;
use crate::quantity::Quantity;
use crate::sections::Section;
use crate::sections::tps::text;

/// Characters of a statement that are shown.
const SQL: usize = 80;
/// The column of steps whose time in the original is not known.
const ORIGINAL: &str = "time in the original";

/// One statement of a better way, or the statement of the user.
struct Step<'a> {
    sql: String,
    /// Of the run document, as the events of a statement have it.
    found: Option<&'a Value>,
    failed: Option<&'a Value>,
    stall: Option<&'a Value>,
    /// Why its time in the original is not known, if so.
    untimed: Option<String>,
    /// Medians at the largest measured size.
    seconds: Option<f64>,
    held: Option<f64>,
    wal: Option<f64>,
}

pub(super) fn section(statements: &[Statement]) -> Option<Section> {
    let mut table = Table::new(&[
        "statement",
        "class",
        "blocks",
        "time",
        "locks held",
        "WAL",
        "longest wait of others",
        "of it for locks",
        ORIGINAL,
    ]);
    for one in statements {
        for alternative in &one.alternatives {
            let steps: Vec<Step> = alternative.iter().map(Step::of).collect();
            let mut add = |name: String, steps: &[Step]| table.rows.push(row(name, steps));
            add(one.name(), &[Step::of_statement(one)]);
            let number = one.trial.config.split(": ").next().unwrap_or_default();
            for (at, step) in steps.iter().enumerate() {
                let name =
                    format!("{number}, better {} of {}: {}", at + 1, steps.len(), shortened(&step.sql, SQL));
                add(name, std::slice::from_ref(step));
            }
            if steps.len() > 1 && steps.iter().all(|step| step.failed.is_none()) {
                add(format!("{number}, better, in all"), &steps);
            }
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    // Most tables need no such column.
    if table.rows.iter().all(|row| row.last().is_none_or(String::is_empty)) {
        table.header.pop();
        for row in &mut table.rows {
            row.pop();
        }
    }
    let mut section = Section::new("Better ways", Vec::new());
    section.text.push(
        "Each is a migration of its own that pgrig measured in the same way, at the largest measured size, with the better way in the \
         place of the statement. In all: the sum of times and WAL, and the longest lock and wait."
            .to_owned(),
    );
    section.first = Some(("Statements and the better ways in their place".to_owned(), table));
    Some(section)
}

impl<'a> Step<'a> {
    fn of(step: &'a Value) -> Self {
        let part = |name: &str| Some(&step[name]).filter(|part| !part.is_null());
        let runs = step["measured"].as_array().and_then(|sizes| sizes.last()?["runs"].as_array());
        let of = |field: &str| {
            let values: Vec<f64> = runs.into_iter().flatten().filter_map(|run| run[field].as_f64()).collect();
            median(&values)
        };
        let found = part("found");
        let partitions = step["rowless"].as_array().map(Vec::as_slice);
        let untimed = rowless::reason_of(found, partitions, part("zone"));
        Self {
            sql: text(&step["sql"]),
            found,
            failed: part("failed"),
            stall: part("stall"),
            untimed,
            seconds: of("seconds"),
            held: of("held"),
            wal: of("wal"),
        }
    }

    fn of_statement(one: &Statement<'a>) -> Self {
        let of = |field: &str| median(&one.observed(field));
        Self {
            sql: String::new(),
            found: one.found,
            failed: one.failed,
            stall: one.stall,
            untimed: rowless::reason(one),
            seconds: of("seconds"),
            held: of("held"),
            wal: of("wal"),
        }
    }

    /// The work of others that its locks block.
    fn blocked(&self) -> Option<&'static str> {
        let locks = self.found.and_then(|found| found["locks"].as_array()).into_iter().flatten();
        let all = locks.filter(|lock| lock["is_new"] != true).filter_map(blocks);
        all.max_by_key(|blocked| blocked.len())
    }

    /// The longest wait of a reader or writer, and the part of it for locks, in seconds.
    fn wait(&self) -> Option<(f64, f64)> {
        let of =
            |who: &str| Some((self.stall?[who]["seconds"].as_f64()?, self.stall?[who]["lock"].as_f64()?));
        [of("read"), of("write")].into_iter().flatten().max_by(|one, other| one.0.total_cmp(&other.0))
    }
}

/// A step, or several of them together: these do all of the work, whose time is known even if that of a single one is not.
fn row(name: String, steps: &[Step]) -> Vec<String> {
    let failed = steps.iter().find_map(|step| step.failed);
    let class = match (failed, steps) {
        (Some(failed), _) => format!("failed: {}", text(&failed["message"])),
        (None, [step]) => step.found.map_or_else(String::new, |found| class_name(&text(&found["class"]))),
        (None, _) => String::new(),
    };
    let shown =
        |value: Option<f64>, quantity: Quantity| value.map_or_else(String::new, |value| quantity.text(value));
    let sum =
        |of: &dyn Fn(&Step) -> Option<f64>| steps.iter().filter_map(of).reduce(|one, other| one + other);
    let blocking = steps.iter().filter(|step| step.blocked().is_some());
    let held = blocking.filter_map(|step| step.held).reduce(f64::max);
    let untimed = match steps {
        [step] => step.untimed.as_ref().map(|reason| format!("not known: {reason}")),
        _ => None,
    };
    let wait = steps.iter().filter_map(Step::wait).max_by(|one, other| one.0.total_cmp(&other.0));
    // A better way has no numbers of statements. Those of a migration are its own.
    let remark = match steps {
        [step] if step.sql.is_empty() => probes::remark(step.stall),
        _ => String::new(),
    };
    let waited = shown(wait.map(|wait| wait.0), Quantity::Seconds);
    vec![
        name,
        class,
        steps
            .iter()
            .filter_map(Step::blocked)
            .max_by_key(|blocked| blocked.len())
            .unwrap_or_default()
            .to_owned(),
        shown(sum(&|step| step.seconds), Quantity::Seconds),
        shown(held, Quantity::Seconds),
        shown(sum(&|step| step.wal), Quantity::Bytes),
        format!("{waited} {remark}").trim().to_owned(),
        shown(wait.map(|wait| wait.1).filter(|lock| *lock > 0.0), Quantity::Seconds),
        untimed.unwrap_or_default(),
    ]
}
