//! The candidates of a `micro`, the fastest first: as text, Markdown or CSV.

use measure::Verdict;
use measure::paired::{Estimate, Judged, Judgement};
use micro::{Calibration, Outcome};

use crate::app::markdown::{self, cell};
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::micro::args::TableFormat;
use crate::cmd::micro::text::{interval, ns, sd, short};

/// One candidate's row.
struct CandidateRow<'a> {
    name: &'a str,
    own: &'a Estimate,
    /// Whether its own time is significantly above 0.
    is_measurable: bool,
    /// WAL, bytes per row.
    wal: Option<f64>,
    /// Its comparison with the first candidate; none for the first one.
    pair: Option<&'a Judgement>,
}

/// Indexes of the candidates, the fastest first. They are ordered by their differences from the
/// first one, which are more precise than their times.
pub(crate) fn by_speed(judged: &Judged) -> Vec<usize> {
    let difference = |candidate: usize| {
        judged.pairs.iter().find(|pair| pair.candidate == candidate).map_or(0.0, |pair| pair.difference.value)
    };
    let mut order: Vec<usize> = (0..judged.own.len()).collect();
    order.sort_by(|one, other| difference(*one).total_cmp(&difference(*other)));
    order
}

/// The table of results. `has_rows` says that times are per row, not per statement.
pub(crate) fn results(outcome: &Outcome, judged: &Judged, has_rows: bool, format: TableFormat) -> String {
    let names: Vec<&str> = outcome.plan.candidates().collect();
    let candidate_rows = by_speed(judged).into_iter().map(|candidate| CandidateRow {
        name: names[candidate],
        own: &judged.own[candidate],
        is_measurable: judged.is_measurable(candidate),
        wal: outcome.wal_per_row(candidate),
        pair: judged.pairs.iter().find(|pair| pair.candidate == candidate),
    });
    let candidate_rows: Vec<CandidateRow> = candidate_rows.collect();
    let has_pairs = !judged.pairs.is_empty();
    if format == TableFormat::Csv {
        return results_csv(&candidate_rows, has_pairs, if has_rows { "row" } else { "statement" });
    }
    let has_wal = candidate_rows.iter().any(|row| row.wal.is_some());
    let mut header = vec!["candidate", if has_rows { "ns per row" } else { "ns" }, "95 % interval"];
    if has_wal {
        header.push("WAL bytes");
    }
    if has_pairs {
        header.extend(["difference from the first", "ratio", "verdict"]);
    }
    let rows = candidate_rows.iter().map(|row| {
        let value = if row.is_measurable { ns(row.own.value) } else { "not measurable".to_owned() };
        let mut cells = vec![row.name.to_owned(), value, interval(row.own)];
        if has_wal {
            cells.push(row.wal.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}")));
        }
        match row.pair {
            Some(pair) => cells.extend(beside(pair, row.is_measurable)),
            None if has_pairs => cells.extend(["(the first)", "1", "-"].map(str::to_owned)),
            None => {}
        }
        cells
    });
    let right = if has_wal { 4 } else { 3 };
    shown(&header, rows.collect(), format, 1..right)
}

/// The article's table.
pub(crate) fn calibration(found: &Calibration, format: TableFormat) -> String {
    let points = found.points.iter().filter_map(|point| Some((point, point.per_row()?)));
    if format == TableFormat::Csv {
        let rows = points.map(|(point, (all, cut))| {
            let figures = [sd(&all), all.mean(), all.lowest(), all.highest(), sd(&cut), cut.mean()];
            let figures = figures.map(|seconds| nanoseconds(seconds).to_string());
            let counts = [point.rows.to_string(), all.count().to_string(), cut.count().to_string()];
            [counts.to_vec(), figures.to_vec(), vec![point.spilled.to_string()]].concat()
        });
        let header = [
            "rows",
            "samples",
            "samples_after_cut",
            "sd_ns_per_row",
            "mean_ns_per_row",
            "min_ns_per_row",
            "max_ns_per_row",
            "cut_sd_ns_per_row",
            "cut_mean_ns_per_row",
            "spilled_blocks",
        ];
        return csv(&header, rows);
    }
    let rows = points.map(|(point, (all, cut))| {
        let spills = if point.spilled == 0 { "-".to_owned() } else { format!("{} blocks", point.spilled) };
        let figures = [sd(&all), all.mean(), all.lowest(), all.highest(), sd(&cut), cut.mean()].map(ns);
        let counts = [measure::human::grouped(point.rows), all.count().to_string()];
        [counts.to_vec(), figures.to_vec(), vec![spills]].concat()
    });
    let header =
        ["rows", "samples", "sd ns", "mean ns", "min", "max", "trimmed: sd", "mean", "temporary files"];
    shown(&header, rows.collect(), format, 0..9)
}

/// Comparison of a candidate with the first one. Without a measurable time of its own, it has no
/// ratio.
fn beside(pair: &Judgement, is_measurable: bool) -> [String; 3] {
    let difference = pair.difference;
    let (word, value) =
        if difference.value < 0.0 { ("faster", -difference.value) } else { ("slower", difference.value) };
    let (low, high) = if difference.value < 0.0 {
        (-difference.high, -difference.low)
    } else {
        (difference.low, difference.high)
    };
    let relative = pair.relative.filter(|_| is_measurable);
    let times = relative.map_or_else(|| "-".to_owned(), |share| format!("{:.3}", 1.0 + share.value));
    [format!("{} {word} ({} to {})", ns(value), ns(low), ns(high)), times, verdict(pair)]
}

fn verdict(pair: &Judgement) -> String {
    match pair.verdict {
        Verdict::Improved => "faster".to_owned(),
        Verdict::Regressed => "slower".to_owned(),
        other => other.to_string(),
    }
}

/// All figures without rounding. The first candidate has no difference and no verdict.
fn results_csv(candidate_rows: &[CandidateRow], has_pairs: bool, per: &str) -> String {
    let figure = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let times = |seconds: Option<&Estimate>| {
        let all = seconds.map(|all| [all.value, all.low, all.high].map(nanoseconds));
        (0..3).map(|place| figure(all.map(|all| all[place]))).collect::<Vec<_>>()
    };
    let mut header: Vec<String> = ["candidate", "measurable"].map(str::to_owned).into();
    let units = |name: &str| ["", "_low", "_high"].map(|end| format!("{name}ns_per_{per}{end}"));
    header.extend(units(""));
    header.push(format!("wal_bytes_per_{per}"));
    if has_pairs {
        header.extend(units("difference_from_first_"));
        header.extend(["", "_low", "_high"].map(|end| format!("times_first{end}")));
        header.push("verdict".to_owned());
    }
    let rows = candidate_rows.iter().map(|row| {
        let mut cells = vec![row.name.to_owned(), row.is_measurable.to_string()];
        cells.extend(times(Some(row.own)));
        cells.push(figure(row.wal));
        if has_pairs {
            cells.extend(times(row.pair.map(|pair| &pair.difference)));
            let shares = match row.pair {
                _ if !row.is_measurable => None,
                Some(pair) => pair.relative.map(|share| [share.value, share.low, share.high]),
                None => Some([0.0; 3]),
            };
            cells.extend((0..3).map(|place| figure(shares.map(|shares| 1.0 + shares[place]))));
            cells.push(row.pair.map_or_else(String::new, verdict));
        }
        cells
    });
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    csv(&header, rows)
}

fn nanoseconds(seconds: f64) -> f64 {
    seconds * 1e9
}

/// Lines in the format of RFC 4180, but with the line ends of this system.
fn csv(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let field = |text: &str| {
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let line = |cells: &[String]| cells.iter().map(|cell| field(cell)).collect::<Vec<_>>().join(",");
    let lines = rows.map(|cells| line(&cells));
    [header.join(",")].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// A table of texts; the first cell of a row is its name.
fn shown(
    header: &[&str],
    rows: Vec<Vec<String>>,
    format: TableFormat,
    right: std::ops::Range<usize>,
) -> String {
    if format == TableFormat::Md {
        let rows = rows.into_iter().map(|mut cells| {
            cells[0] = cell(&cells[0]);
            cells
        });
        return markdown::table(header, &right, rows);
    }
    let mut table = new_table(header);
    for mut cells in rows {
        cells[0] = short(&cells[0].split_whitespace().collect::<Vec<_>>().join(" "));
        table.add_row(cells);
    }
    align_right(&mut table, right);
    trimmed(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let rows = [["a, b", "1"], ["say \"x\"", "2"], ["two\nlines", "3"], ["a | b", "4"]];
        let text = csv(&["name", "n"], rows.iter().map(|row| row.map(str::to_owned).into()));
        assert_eq!(text, "name,n\n\"a, b\",1\n\"say \"\"x\"\"\",2\n\"two\nlines\",3\na | b,4");
    }
}
