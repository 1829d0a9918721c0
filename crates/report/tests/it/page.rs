//! Contents and length of a page.

use std::collections::BTreeMap;

use measure::{Run, Series, Unit};
use report::{Document, csv, embed, html, markdown, svgs};

use crate::{DOCUMENTS, changed, document};

#[test]
fn each_kind_of_run_has_a_result_plots_and_tables_and_its_document() {
    for (name, text) in DOCUMENTS {
        let page = html(&[document(name)]);
        assert_eq!(embed::extract(&page).unwrap(), [text], "{name}");
        let count = |part: &str| page.matches(part).count();
        assert!(count("class=\"plot wide\"") >= 1, "{name} has no plot");
        assert_eq!(count("class=\"plot wide\""), count("class=\"plot narrow\""), "{name}");
        assert_eq!(count("role=\"img\" aria-label=\""), 2 * count("class=\"plot wide\""), "{name}");
        assert!(count("<details>") > count("<figure>"), "{name}: each plot has a table");
        // In base64 there may be any letters.
        let (shown, _) = page.split_once("<script type=").unwrap();
        assert!(!shown.contains("NaN") && !shown.contains("inf "), "{name}");
        assert_eq!(count("<h1>"), 1, "{name}");
        // Nothing is fetched: what looks like an address is the name space of SVG.
        let addresses = page.matches("://").count();
        assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count(), "{name}");
        assert!(!markdown(&[document(name)]).is_empty());
        assert_eq!(svgs(&[document(name)]).len(), count("class=\"plot wide\""), "{name}");
    }
}

#[test]
fn runs_of_all_kinds_fit_one_page() {
    let all: Vec<Document> = DOCUMENTS.iter().map(|(name, _)| document(name)).collect();
    let page = html(&all);
    assert_eq!(embed::extract(&page).unwrap().len(), DOCUMENTS.len());
    for part in ["tps --matrix", "fill --ladder", "fill --ddl", "blockio --compat"] {
        assert!(page.contains(&format!("pgrig {part},")), "{part}");
    }
}

#[test]
fn runs_of_two_labels_are_compared() {
    let mut documents = Vec::new();
    for (label, times) in [("before", 1.0), ("after", 2.0)] {
        for number in 0..5_u32 {
            let noise = f64::from(number) / 1000.0;
            documents.push(changed("tps", |run| {
                run.id.push(if label == "before" { 'b' } else { 'a' });
                run.id.push_str(&number.to_string());
                run.label = Some(label.to_owned());
                let elapsed =
                    run.trials[0].observations.iter_mut().find(|one| one.name == "elapsed").unwrap();
                elapsed.value *= (1.0 + noise) / times;
            }));
        }
    }
    let page = html(&documents);
    assert!(page.contains("tps improved (+100."), "{}", &page[..4000]);
    assert!(page.contains("On top of each other") && page.contains("History"));
    assert_eq!(embed::extract(&page).unwrap().len(), 10);
}

/// The points of a series in a drawing, as pixels; and its two scales.
pub(crate) fn drawn<'a>(svg: &'a str, series: &str) -> (Vec<(f64, f64)>, [&'a str; 2]) {
    let attribute = |of: &'a str, name: &str| {
        let start = of.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
        of[start..].split('"').next().unwrap()
    };
    let path = &svg[svg.find(&format!("data-name=\"{series}\"")).unwrap() - 20..];
    let points = absolute(attribute(path, "d"));
    (points, [attribute(svg, "data-x"), attribute(svg, "data-y")])
}

/// The points of a path: `M` starts anew, `l` is followed by distances, `h0` makes a dot.
pub(crate) fn absolute(path: &str) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for part in path.replace("h0", "").split_inclusive(|c| "Ml".contains(c)).collect::<Vec<_>>().windows(2) {
        let is_relative = part[0].ends_with('l');
        let mut numbers = Vec::new();
        let mut number = String::new();
        for c in part[1].trim_end_matches(['M', 'l']).chars().chain([' ']) {
            let ends = c == ' ' || c == '-' || c == '.' && number.contains('.');
            if ends && !number.is_empty() {
                numbers.push(std::mem::take(&mut number).parse::<f64>().unwrap());
            }
            number.extend((c != ' ').then_some(c));
        }
        for pair in numbers.chunks_exact(2) {
            let (x, y) = if is_relative { *points.last().unwrap() } else { (0.0, 0.0) };
            points.push((x + pair[0], y + pair[1]));
        }
    }
    points
}

/// From a pixel to a value.
pub(crate) fn value(scale: &str, pixel: f64) -> f64 {
    let parts: Vec<&str> = scale.split(' ').collect();
    let number = |at: usize| parts[at].parse::<f64>().unwrap();
    let share = (pixel - number(3)) / (number(4) - number(3));
    match parts[0] {
        "linear" => number(1) + share * (number(2) - number(1)),
        "log" => number(1) * (number(2) / number(1)).powf(share),
        other => panic!("{other}"),
    }
}

/// The lowest and the highest value of each column of pixels, straight from a document.
fn columns(points: &[(f64, f64)], x: &str) -> BTreeMap<i64, (f64, f64)> {
    let mut found: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (seconds, value) in points {
        let entry = found.entry(column(*seconds, x)).or_insert((*value, *value));
        *entry = (entry.0.min(*value), entry.1.max(*value));
    }
    found
}

/// The points of the area of a series: along its highest values and back along its lowest.
fn area(svg: &str, series: &str) -> Vec<(f64, f64)> {
    let path = &svg[svg.find(&format!("data-range=\"{series}\"")).unwrap()..];
    let data = path.split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(data.matches('Z').count(), 1, "no gap");
    absolute(data.trim_end_matches('Z'))
}

#[test]
fn every_drawn_point_is_in_the_document_and_no_peak_is_lost() {
    const TOGETHER: usize = 15;
    let hour = long_run(3600);
    let plots = svgs(std::slice::from_ref(&hour));
    let (_, svg) = plots.iter().find(|(name, _)| name == "tps-latency.svg").unwrap();
    // A pixel is rounded to a tenth.
    let is_near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.005;
    for name in ["max", "p99", "p95", "p50"] {
        let (line, [x, y]) = drawn(svg, name);
        let series =
            hour.run.trials[0].series.iter().find(|series| series.name == format!("latency-{name}")).unwrap();
        let expected: Vec<(f64, f64)> = columns(&series.points, x).into_values().collect();
        assert!(expected.len() > 600, "{name}");
        if name == "max" {
            assert_eq!(line.len(), expected.len(), "{name}");
            for (point, column) in line.iter().zip(&expected) {
                assert!(is_near(value(y, point.1), column.1), "{name}: {point:?} {column:?}");
            }
            continue;
        }
        let area = area(svg, name);
        assert_eq!(area.len(), 2 * expected.len(), "{name}");
        let (highest, lowest) = area.split_at(expected.len());
        for ((high, low), column) in highest.iter().zip(lowest.iter().rev()).zip(&expected) {
            let found = (value(y, low.1), value(y, high.1));
            assert!(is_near(found.0, column.0) && is_near(found.1, column.1), "{name}: {found:?} {column:?}");
        }
        let periods: Vec<&[(f64, f64)]> = series.points.chunks(TOGETHER).collect();
        assert_eq!(line.len(), periods.len(), "{name}");
        for (point, period) in line.iter().zip(periods) {
            let mut sorted: Vec<f64> = period.iter().map(|point| point.1).collect();
            sorted.sort_by(f64::total_cmp);
            assert!(is_near(value(y, point.1), sorted[TOGETHER / 2]), "{name}: {point:?} {sorted:?}");
            let seconds = value(x, point.0);
            assert!(
                period[0].0 - 3.0 < seconds && seconds < period[TOGETHER - 1].0 + 3.0,
                "{name}: {seconds}"
            );
        }
    }
}

#[test]
fn a_percentile_of_few_transactions_is_not_drawn() {
    let run = changed("tps", |run| {
        let series = run.trials[0].series.iter_mut().find(|series| series.name == "succeeded").unwrap();
        series.points.iter_mut().for_each(|point| point.1 = 40.0);
    });
    let plots = svgs(&[run]);
    let (_, svg) = plots.iter().find(|(name, _)| name == "tps-latency.svg").unwrap();
    assert!(!svg.contains("data-name=\"p99\"") && svg.contains("data-name=\"p95\""), "{svg}");
    assert!(svg.contains("With 40 transactions in an interval, p99 would be the slowest of them"), "{svg}");
}

#[test]
fn notes_that_differ_only_in_numbers_are_one() {
    let run = changed("matrix", |run| {
        run.notes = (1..=6_u32)
            .map(|trial| {
                format!("trial {trial}, clients={trial}: processors were busy {}.5 % of the time", 90 + trial)
            })
            .chain(["trial 3, clients=3: autovacuum ran at 1 s".to_owned()])
            .map(|text| measure::Note { text })
            .collect();
    });
    let page = html(&[run]);
    assert!(
        page.contains("<summary>6 notes: processors were busy 91.5 to 96.5 % of the time</summary>"),
        "{page}"
    );
    let first = page.find("<li>trial 3, clients=3: autovacuum ran at 1 s</li>").unwrap();
    assert!(first < page.find("6 notes: ").unwrap(), "a note that is given once comes first");
    assert!(page.contains("<li>trial 6, clients=6: processors were busy 96.5 % of the time</li>"));
}

#[expect(clippy::cast_possible_truncation)]
fn column(seconds: f64, scale: &str) -> i64 {
    let parts: Vec<f64> = scale.split(' ').skip(1).take(4).map(|part| part.parse().unwrap()).collect();
    (parts[2] + seconds / parts[1] * (parts[3] - parts[2])).floor() as i64
}

/// A run of so many seconds: the real one, again and again, with latencies that differ.
fn long_run(seconds: u32) -> Document {
    changed("tps", |run| {
        let trial = &mut run.trials[0];
        for series in &mut trial.series {
            let real: Vec<f64> = series.points.iter().take(20).map(|point| point.1).collect();
            let y = |at: u32| {
                let noise = 1.0 + f64::from(at.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
                let value = real[at as usize % real.len()] * noise;
                // With three digits, as latencies have.
                if series.y_unit == Unit::Seconds {
                    format!("{value:.2e}").parse().unwrap()
                } else {
                    value.round()
                }
            };
            let points = (1..=seconds).map(|at| (f64::from(at) + f64::from(at % 7) / 1e6, y(at)));
            *series = Series { points: points.collect(), ..series.clone() };
        }
    })
}

#[test]
fn pages_are_small() {
    for (name, document, most) in [
        ("5 minutes", long_run(300), 300_000),
        ("an hour", long_run(3600), 600_000),
        ("40 cells", cells(40), 1_000_000),
    ] {
        let length = html(std::slice::from_ref(&document)).len();
        assert!(length <= most, "{name}: {length} bytes of {most}; the document has {}", document.text.len());
    }
}

/// A matrix of two axes: the real cells, with others beside them.
fn cells(count: usize) -> Document {
    changed("matrix", |run: &mut Run| {
        let real = run.trials.clone();
        let names: Vec<String> =
            (0..count).map(|at| format!("durability=v{} clients={}", at / 8, at % 8 + 1)).collect();
        run.trials = (0..count * 3)
            .map(|at| {
                let mut trial = real[at % real.len()].clone();
                trial.config.clone_from(&names[at % count]);
                trial
            })
            .collect();
        let values = |number: usize, prefix: &str, from: usize| {
            (from..number + from).map(|at| format!("{prefix}{at}")).collect::<Vec<_>>()
        };
        run.request["matrix"]["axes"] = serde_json::json!([
            { "axis": "durability", "values": values(count / 8, "v", 0) },
            { "axis": "clients", "values": values(8, "", 1) },
        ]);
        run.plan["cells"] = serde_json::json!(names);
    })
}

#[test]
fn a_matrix_of_two_axes_is_a_heat_map() {
    let plots = svgs(&[cells(40)]);
    let (_, svg) = plots.iter().find(|(name, _)| name.ends_with("-matrix.svg")).unwrap();
    assert_eq!(svg.matches("<rect").count(), 40);
    let run = cells(40).run;
    let scatter = |cell: &str| {
        let of: Vec<f64> = run
            .trials
            .iter()
            .filter(|trial| trial.config == cell)
            .map(|trial| trial.value("succeeded").unwrap() / trial.value("elapsed").unwrap())
            .collect();
        of.iter().copied().fold(0.0, f64::max) - of.iter().copied().fold(f64::MAX, f64::min)
    };
    let widest = run.trials.iter().map(|trial| scatter(&trial.config)).fold(0.0, f64::max);
    // Cells of one colour differ by no more than the trials of a cell, or by the seventh part of all.
    let mut shades: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for part in svg.split("<g class=\"h").skip(1).filter(|part| part.contains("<rect")) {
        let shown = part.split(": ").nth(1).unwrap().split('<').next().unwrap().replace(',', "");
        shades.entry(&part[..1]).or_default().push(shown.parse().unwrap());
    }
    let range = |values: &[f64]| {
        values.iter().copied().fold(0.0, f64::max) - values.iter().copied().fold(f64::MAX, f64::min)
    };
    let all: Vec<f64> = shades.values().flatten().copied().collect();
    assert_eq!(all.len(), 40);
    for (shade, values) in &shades {
        assert!(range(values) <= widest.max(range(&all) / 7.0) + 1.0, "h{shade}: {values:?}, {widest}");
    }
}

#[test]
fn csv_has_a_row_for_each_number() {
    let run = document("fill").run;
    let text = csv(&[document("fill")]);
    let numbers: usize = run
        .trials
        .iter()
        .map(|trial| {
            trial.observations.len() + trial.series.iter().map(|series| series.points.len()).sum::<usize>()
        })
        .sum();
    assert_eq!(text.lines().count(), 1 + numbers + measure::figures(&run).len());
    assert!(text.lines().all(|line| line.split(',').count() == 12), "{text}");
}
