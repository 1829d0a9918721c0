//! Every plotted number is in the document: the pixels of marks, beside those of the numbers that a document has.

use measure::{Observation, Run, Series, Unit};
use report::{Document, svgs};
use serde_json::json;

use crate::page::{absolute, drawn};
use crate::plots::attribute;
use crate::{changed, document};

/// Pixels are rounded to a tenth.
const ROUNDED: f64 = 0.11;

/// From a value to a pixel, by the description of an axis in a drawing.
pub(crate) fn pixel(scale: &str, value: f64) -> f64 {
    let parts: Vec<&str> = scale.split(' ').collect();
    let straight = |value: f64| match parts[0] {
        "linear" => value,
        "log" => value.log10(),
        "nines" => -(1.0 - value).log10(),
        other => panic!("{other}"),
    };
    let number = |at: usize| parts[at].parse::<f64>().unwrap();
    let (low, high) = (straight(number(1)), straight(number(2)));
    number(3) + (straight(value) - low) / (high - low) * (number(4) - number(3))
}

/// The quantity of a mark, and its value in the document.
pub(crate) type Expected = Vec<(String, f64)>;

/// A plot, and what of it is looked up.
pub(crate) struct Case {
    pub(crate) runs: Vec<Document>,
    pub(crate) plot: &'static str,
    pub(crate) marks: Marks,
    /// Straight from the run document, without pgrig's code for reports.
    pub(crate) expected: fn(&Run) -> Expected,
}

/// Kinds of marks.
pub(crate) enum Marks {
    /// Points of a line: x and y, one after the other.
    Line(&'static str),
    /// Ends of the bars of a group, by row.
    Bars(usize),
    /// Values of rows, by their names: the dot, or the line of a median.
    Values,
    /// All circles of rows.
    Circles,
    /// Both ends of the intervals of rows.
    Intervals,
}

/// The drawing with this name.
fn svg(case: &Case) -> String {
    let plots = svgs(&case.runs);
    let names: Vec<&String> = plots.iter().map(|(name, _)| name).collect();
    let found = plots.iter().find(|(name, _)| name == case.plot);
    found.unwrap_or_else(|| panic!("no {} in {names:?}", case.plot)).1.clone()
}

fn number(text: &str, before: &str) -> f64 {
    let start = text.find(before).unwrap_or_else(|| panic!("no {before} in {text}")) + before.len();
    let rest = &text[start..];
    rest[..rest.find(|c: char| c != '.' && c != '-' && !c.is_ascii_digit()).unwrap()].parse().unwrap()
}

/// The rows of dots: name, and the drawing of each.
fn rows(svg: &str) -> Vec<(String, &str)> {
    let row = |part: &'_ str| {
        let title = part.split("</title>").next().unwrap();
        let name = title.rsplit_once(": ").unwrap().0;
        name.replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">")
    };
    svg.split("<g><title>").skip(1).map(|part| (row(part), part.split("</g>").next().unwrap())).collect()
}

/// The pixels of the marks, with the pixels where the expected numbers belong.
fn look(case: &Case, svg: &str) -> Vec<(String, f64, f64)> {
    let expected = (case.expected)(&case.runs[0].run);
    let axis = || attribute(svg, "data-axis");
    let of_row = |name: &str| {
        let found: Vec<f64> = expected.iter().filter(|one| one.0 == name).map(|one| one.1).collect();
        assert!(!found.is_empty(), "{name} of {expected:?}");
        found
    };
    let mut found = Vec::new();
    match case.marks {
        Marks::Line(series) => {
            let (points, [x, y]) = drawn(svg, series);
            assert_eq!(2 * points.len(), expected.len(), "{}: {expected:?}", case.plot);
            for (point, pair) in points.iter().zip(expected.chunks(2)) {
                found.push((pair[0].0.clone(), point.0, pixel(x, pair[0].1)));
                found.push((pair[1].0.clone(), point.1, pixel(y, pair[1].1)));
            }
        }
        Marks::Bars(group) => {
            for part in svg.split(&format!("<rect class=\"bar b{group}\" ")).skip(1) {
                // The sample of the legend has no title.
                let (attributes, rest) = part.split_once('>').unwrap();
                let Some(rest) = rest.strip_prefix("<title>") else { continue };
                let end = number(attributes, "x=\"") + number(attributes, " width=\"");
                let name = rest.split("</title>").next().unwrap().rsplit_once(": ").unwrap().0;
                let name = name.replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'");
                found.push((name.clone(), end, pixel(axis(), of_row(&name)[0])));
            }
            assert_eq!(found.len(), expected.len(), "{}", case.plot);
        }
        Marks::Values | Marks::Circles | Marks::Intervals => {
            for (name, row) in rows(svg) {
                let ends = || {
                    let path = row.split("class=\"interval\" d=\"M").nth(1).unwrap();
                    let low: f64 = path.split(' ').next().unwrap().parse().unwrap();
                    (low, number(path, "m0-4H"))
                };
                let pixels = match case.marks {
                    Marks::Values if row.contains("class=\"value\"") => {
                        vec![number(row, "class=\"value\" cx=\"")]
                    }
                    Marks::Values => vec![number(row, "class=\"interval\" d=\"M")],
                    Marks::Intervals => vec![ends().0, ends().1],
                    _ => row.split("class=\"observed\"").skip(1).map(|part| number(part, "cx=\"")).collect(),
                };
                let of_row = of_row(&name);
                assert_eq!(pixels.len(), of_row.len(), "{}, {name}", case.plot);
                for (at, value) in pixels.into_iter().zip(of_row) {
                    found.push((name.clone(), at, pixel(axis(), value)));
                }
            }
            assert_eq!(found.len(), expected.len(), "{}", case.plot);
        }
    }
    found
}

/// The sum or the difference of a pixel and a width is rounded twice.
pub(crate) fn check(case: &Case) {
    let svg = svg(case);
    let found = look(case, &svg);
    assert!(found.len() > 1, "{}", case.plot);
    for (name, at, expected) in found {
        // A short bar is three pixels long, so that it is seen.
        let is_least =
            matches!(case.marks, Marks::Bars(_)) && at - expected > 0.0 && at - expected <= 3.0 + ROUNDED;
        let near = (at - expected).abs() <= 2.0 * ROUNDED;
        assert!(near || is_least, "{} of {}: {at} instead of {expected}", name, case.plot);
    }
}

/// Whole intervals only: those that are joined have a test of their own.
fn whole(name: &str) -> Document {
    changed(name, |run| {
        for series in &mut run.trials[0].series {
            series.points.truncate(20);
        }
        run.trials[0].series.push(Series {
            points: (0..20_u32)
                .map(|second| (f64::from(second) + 1.0, 1.0 + f64::from(second % 5) / 5.0))
                .collect(),
            ..Series::new("machine-busy", Unit::Seconds, Unit::Seconds)
        });
    })
}

fn series(run: &Run, name: &str) -> Vec<(f64, f64)> {
    run.trials[0].series.iter().find(|series| series.name == name).unwrap().points.clone()
}

pub(crate) fn points(all: impl IntoIterator<Item = (f64, f64)>) -> Expected {
    all.into_iter().flat_map(|(x, y)| [(format!("x {x}"), x), (format!("y at {x}"), y)]).collect()
}

/// Each count by the time since the point before.
fn per_second(run: &Run, name: &str) -> Expected {
    points(series(run, name).windows(2).map(|pair| (pair[1].0, pair[1].1 / (pair[1].0 - pair[0].0))))
}

fn observed(run: &Run, of: impl Fn(&dyn Fn(&str) -> f64) -> f64) -> Expected {
    run.trials
        .iter()
        .map(|trial| (trial.config.clone(), of(&|name| trial.value(name).unwrap_or(f64::NAN))))
        .collect()
}

/// The median of each configuration, which is the middle of its sorted values.
fn medians(all: &[(String, f64)]) -> Expected {
    let mut names: Vec<String> = all.iter().map(|one| one.0.clone()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .map(|name| {
            let mut own: Vec<f64> = all.iter().filter(|one| one.0 == name).map(|one| one.1).collect();
            own.sort_by(f64::total_cmp);
            let middle = f64::midpoint(own[(own.len() - 1) / 2], own[own.len() / 2]);
            (name, middle)
        })
        .collect()
}

fn tps(run: &Run) -> Expected {
    observed(run, |value| value("succeeded") / value("elapsed"))
}

/// Candidate and a number of each event of micro.
fn events(run: &Run, kind: &str, of: &str, fields: &[&str]) -> Expected {
    let all = run.trials.iter().flat_map(|trial| &trial.events).map(|event| &event.what);
    all.filter(|event| event["event"] == kind)
        .flat_map(|event| {
            let name = event["candidate"].as_str().unwrap().to_owned();
            fields
                .iter()
                .map(move |field| (name.clone(), event[of][field].as_f64().unwrap()))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Steps of a fill that take a time of their own.
fn steps(run: &Run) -> Expected {
    let all = ["drop", "create", "generate", "vacuum", "primary-keys", "foreign-keys", "keys-and-indexes"];
    all.into_iter().filter_map(|step| Some((step.to_owned(), run.trials[0].value(step)?))).collect()
}

fn sizes(run: &Run, prefix: &str) -> Expected {
    let names = [("tables", "heap"), ("indexes", "index"), ("WAL", "wal")];
    let size = |name: &str| run.trials[0].value(&format!("{prefix}{name}")).unwrap();
    names.map(|(shown, name)| (shown.to_owned(), size(name))).to_vec()
}

fn of_tables(run: &Run, of: impl Fn(&dyn Fn(&str) -> f64) -> f64) -> Expected {
    observed(run, of).into_iter().filter(|one| one.0 != "all tables").collect()
}

/// Commands of the first script by their number and text, but for those that pgrig itself executes.
fn statements(run: &Run) -> Expected {
    let commands = run.plan["scripts"][0]["commands"].as_array().unwrap();
    (1..)
        .zip(commands)
        .map(|(number, command)| (number, command["text"].as_str().unwrap()))
        .filter(|(_, text)| !text.starts_with('\\'))
        .map(|(number, text)| {
            let mean = run.trials[0].value(&format!("script-1-command-{number}-latency-mean")).unwrap();
            // A long one is cut.
            let text: String = if text.len() > 90 {
                text.chars().take(89).chain(['…']).collect()
            } else {
                text.to_owned()
            };
            (format!("{number}: {text}"), mean)
        })
        .collect()
}

fn fill_with_rates() -> Document {
    changed("fill", |run| {
        let points = (1..=6_u32)
            .map(|second| (f64::from(second), f64::from(100_000 + 7_000 * (second % 3))))
            .collect();
        run.trials[0].series =
            vec![Series { points, ..Series::new("rows-sent", Unit::Seconds, Unit::Count) }];
        run.trials[0].observations.push(Observation {
            name: "drop".to_owned(),
            value: 0.4,
            unit: Unit::Seconds,
        });
    })
}

#[test]
fn marks_are_where_the_numbers_of_the_document_belong() {
    let one = |document: Document| vec![document];
    let case = |runs, plot, marks, expected| Case { runs, plot, marks, expected };
    let cases = [
        case(one(fill_with_rates()), "fill-rows.svg", Marks::Line("rows sent"), |run| {
            points(series(run, "rows-sent").into_iter().map(|(x, rows)| (x, rows / 1.0)))
        }),
        case(one(document("fill")), "fill-steps.svg", Marks::Bars(0), steps),
        case(one(document("fill")), "fill-sizes.svg", Marks::Bars(0), |run| sizes(run, "predicted-")),
        case(one(document("fill")), "fill-sizes.svg", Marks::Bars(1), |run| sizes(run, "")),
        case(one(whole("tps")), "tps-wal.svg", Marks::Line("WAL"), |run| per_second(run, "wal")),
        case(one(whole("tps")), "tps-disk.svg", Marks::Line("disk, written"), |run| {
            per_second(run, "disk-written")
        }),
        case(one(whole("tps")), "tps-disk.svg", Marks::Line("disk, read"), |run| {
            per_second(run, "disk-read")
        }),
        case(one(whole("tps")), "tps-cpu.svg", Marks::Line("pgrig"), |run| per_second(run, "client-cpu")),
        case(one(whole("tps")), "tps-cpu.svg", Marks::Line("all processes"), |run| {
            per_second(run, "machine-busy")
        }),
        // Documents of older builds have the sum only.
        case(one(document("tps")), "tps-cpu.svg", Marks::Line("all processes, mean"), |run| {
            let trial = &run.trials[0];
            let mean = trial.value("machine-busy").unwrap() / trial.value("elapsed").unwrap();
            let own = series(run, "client-cpu");
            points([own[1].0, own[own.len() - 1].0].map(|x| (x, mean)))
        }),
        case(one(document("tps")), "tps-statements.svg", Marks::Bars(0), statements),
        case(one(document("matrix")), "tps-matrix-cells.svg", Marks::Circles, tps),
        case(one(document("matrix")), "tps-matrix-cells.svg", Marks::Values, |run| medians(&tps(run))),
        case(one(document("matrix")), "tps-matrix-p95.svg", Marks::Circles, |run| {
            observed(run, |value| value("latency-p95"))
        }),
        case(one(document("micro")), "micro-differences.svg", Marks::Values, |run| {
            events(run, "verdict", "difference", &["value"])
        }),
        case(one(document("micro")), "micro-differences.svg", Marks::Intervals, |run| {
            events(run, "verdict", "difference", &["low", "high"])
        }),
        case(one(document("micro")), "micro-times.svg", Marks::Intervals, |run| {
            events(run, "own-time", "time", &["low", "high"])
        }),
        case(one(document("micro")), "micro-rounds.svg", Marks::Line("md5(i::text)"), |run| {
            let rounds = run.trials.iter().filter(|trial| trial.config == "round");
            let time =
                |trial: &measure::Trial| trial.value("md5(i::text)").unwrap() / trial.value("rows").unwrap();
            points((1..).map(f64::from).zip(rounds.map(time)))
        }),
        case(one(document("backup")), "backup-sizes.svg", Marks::Circles, |run| {
            observed(run, |value| value("size"))
        }),
        case(one(document("backup")), "backup-restore.svg", Marks::Circles, |run| {
            observed(run, |value| value("restore"))
        }),
        case(one(document("testdb")), "testdb-variants.svg", Marks::Circles, |run| {
            observed(run, |value| value("total"))
        }),
        case(one(document("testdb")), "testdb-variants.svg", Marks::Values, |run| {
            medians(&observed(run, |value| value("total")))
        }),
        case(one(document("testdb")), "testdb-parts.svg", Marks::Bars(1), |run| {
            medians(&observed(run, |value| value("command")))
        }),
        case(one(document("schema")), "fill-ddl-tables.svg", Marks::Bars(0), |run| {
            of_tables(run, |value| {
                value("heap") + value("index") - value("heap-before") - value("index-before")
            })
        }),
        case(one(document("schema")), "fill-ddl-table-rates.svg", Marks::Bars(0), |run| {
            of_tables(run, |value| value("rows") / value("total"))
        }),
        case(one(document("blockio")), "blockio-steps.svg", Marks::Circles, |run| {
            let steps = run.plan["steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap());
            let totals = || run.trials.iter().filter(|trial| trial.config == "total");
            steps
                .flat_map(|step| totals().map(move |trial| (step.to_owned(), trial.value(step).unwrap())))
                .collect()
        }),
        case(one(calibration()), "micro-scatter.svg", Marks::Line("i"), |_| {
            // Of 1, 2 and 3: the mean is 2, the standard deviation 1. Of 9, 10 and 11: 10 and 1.
            points([(10.0, 0.5), (1000.0, 0.1)])
        }),
    ];
    cases.iter().for_each(check);
}

fn calibration() -> Document {
    changed("micro", |run| {
        run.trials.truncate(1);
        "calibration".clone_into(&mut run.trials[0].config);
        run.request["candidates"] = json!([{ "name": "i" }]);
        let of = |rows: u32, seconds: [f64; 3]| Series {
            points: (0..3).map(f64::from).zip(seconds).collect(),
            ..Series::new(&format!("rows-{rows}"), Unit::Count, Unit::Seconds)
        };
        run.trials[0].series = vec![of(10, [1.0, 2.0, 3.0]), of(1000, [9.0, 10.0, 11.0])];
    })
}

/// Percentiles that a run of `tps` wrote into its document itself.
const WRITTEN: [(f64, &str); 5] = [
    (0.5, "latency-p50"),
    (0.9, "latency-p90"),
    (0.95, "latency-p95"),
    (0.99, "latency-p99"),
    (0.999, "latency-p99.9"),
];

#[test]
fn percentiles_and_distributions_pass_the_percentiles_of_the_document() {
    let run = document("tps").run;
    let value = |name: &str| run.trials[0].value(name).unwrap();
    // Along the share of transactions.
    let case = Case {
        runs: vec![document("tps")],
        plot: "tps-percentiles.svg",
        marks: Marks::Values,
        expected: tps,
    };
    let plot = svg(&case);
    let (points, [x, y]) = drawn(&plot, "latency");
    let mut seen = 0;
    for (share, name) in WRITTEN {
        let at = pixel(x, share);
        if let Some(point) = points.iter().find(|point| (point.0 - at).abs() <= ROUNDED) {
            let expected = pixel(y, value(name));
            assert!((point.1 - expected).abs() <= 2.0 * ROUNDED, "{name}: {point:?} instead of {expected}");
            seen += 1;
        }
    }
    assert!(seen >= 4, "{points:?}");
    // The distribution has the axes the other way round.
    let run_of = |label: &str| changed("tps", |run| run.label = Some(label.to_owned()));
    let case = Case {
        runs: vec![run_of("a"), run_of("b")],
        plot: "tps-ecdf.svg",
        marks: Marks::Values,
        expected: tps,
    };
    let plot = svg(&case);
    let path = &plot[plot.find("data-name=\"a\"").unwrap()..];
    let steps = absolute(attribute(path, "d"));
    let [x, y] = ["data-x", "data-y"].map(|name| attribute(&plot, name));
    for (share, name) in WRITTEN.iter().take(3) {
        let (at, height) = (pixel(x, value(name)), pixel(y, *share));
        let near = |point: &(f64, f64)| (point.0 - at).abs() <= 1.0 && (point.1 - height).abs() <= 1.2;
        assert!(steps.iter().any(near), "{name}: no step at {at}, {height} in {steps:?}");
    }
}

#[test]
fn numbers_of_a_heat_map_are_medians_of_the_document() {
    let run = document("matrix");
    let page = report::html(&[changed("matrix", |run| {
        // A second axis, of one value.
        for trial in &mut run.trials {
            trial.config = format!("{} clients=1", trial.config);
        }
        let cells = run.plan["cells"].as_array().unwrap().clone();
        run.plan["cells"] =
            cells.iter().map(|cell| json!(format!("{} clients=1", cell.as_str().unwrap()))).collect();
        let axis = json!({ "axis": "clients", "values": ["1"] });
        run.request["matrix"]["axes"].as_array_mut().unwrap().push(axis);
    })]);
    for (cell, rate) in medians(&tps(&run.run)) {
        let column = cell.strip_prefix("durability=").unwrap();
        let title = page
            .split(&format!("<title>clients=1, {column}: "))
            .nth(1)
            .unwrap_or_else(|| panic!("no {cell}"));
        let shown: f64 = title.split('<').next().unwrap().replace(',', "").parse().unwrap();
        assert!((shown - rate).abs() <= 0.5_f64.max(rate / 1000.0), "{cell}: {shown}, not {rate}");
    }
}
