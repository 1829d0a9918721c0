//! Plotted coordinates, read back and looked for in the documents.

use std::collections::BTreeMap;

use measure::{Event, Run, Series, Unit};
use report::{Document, csv, html, svgs};
use serde_json::json;

use crate::page::{absolute, value};
use crate::{DOCUMENTS, changed, document};

/// The drawing with this name.
fn plot(documents: &[Document], name: &str) -> String {
    let found = svgs(documents);
    let names: Vec<&String> = found.iter().map(|(name, _)| name).collect();
    found
        .iter()
        .find(|(known, _)| known == name)
        .unwrap_or_else(|| panic!("no {name} in {names:?}"))
        .1
        .clone()
}

/// The value of an attribute of the first element in the text.
pub(crate) fn attribute<'a>(text: &'a str, name: &str) -> &'a str {
    let start = text.find(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name}")) + name.len() + 3;
    text[start..].split('"').next().unwrap()
}

#[test]
fn each_layer_is_as_high_as_the_sessions_that_waited() {
    let run = changed("waits", |run| {
        // The last interval of the real run is short: a test of its own is below.
        for series in &mut run.trials[0].series {
            series.points.retain(|point| point.0 < 20.01);
        }
    });
    let svg = plot(std::slice::from_ref(&run), "tps-waits-over-time.svg");
    let (x, y) = (attribute(&svg, "data-x"), attribute(&svg, "data-y"));
    let series: BTreeMap<&str, &Vec<(f64, f64)>> =
        run.run.trials[0].series.iter().map(|series| (series.name.as_str(), &series.points)).collect();
    let looks = series["wait-looks"];
    let mut whole = vec![0.0; looks.len()];
    let is_client = |name: &str| name == "wait-Client:ClientRead";
    // The upmost layer is drawn first, down to zero.
    let mut layers: Vec<(String, Vec<f64>)> = Vec::new();
    for part in svg.split("data-layer=\"").skip(1) {
        let name = part.split('"').next().unwrap().to_owned();
        // A part between two gaps begins and ends at zero.
        let edge: Vec<(f64, f64)> = attribute(part, "d")
            .split('M')
            .filter(|part| !part.is_empty())
            .flat_map(|part| absolute(&format!("M{}", part.split('V').next().unwrap())).split_off(1))
            .collect();
        assert_eq!(edge.len(), looks.len(), "{name}");
        for (point, look) in edge.iter().zip(looks) {
            assert!((value(x, point.0) - look.0).abs() < 0.05, "{name}: {point:?} {look:?}");
        }
        layers.push((name, edge.iter().map(|point| value(y, point.1)).collect()));
    }
    layers.push((String::new(), whole.clone()));
    let mut named = 0.0;
    for (layer, below) in layers.iter().zip(&layers[1..]) {
        let found: Vec<f64> = layer.1.iter().zip(&below.1).map(|(upper, lower)| upper - lower).collect();
        let name = &layer.0;
        for (at, (end, number)) in looks.iter().enumerate() {
            whole[at] += found[at];
            if name == "others" {
                continue;
            }
            let seen = series[format!("wait-{name}").as_str()]
                .iter()
                .find(|point| point.0.to_bits() == end.to_bits())
                .map_or(0.0, |point| point.1);
            named += seen;
            // A pixel is rounded to a tenth, two of them to two.
            assert!(
                (found[at] - seen / number).abs() < 0.01,
                "{name} at {end}: {} of {seen}/{number}",
                found[at]
            );
        }
    }
    assert!(named > 0.0 && layers.len() > 4);
    // All layers together are all sessions that were seen, but for those that waited for the client.
    for (at, (end, number)) in looks.iter().enumerate() {
        let waits = series
            .iter()
            .filter(|(name, _)| name.starts_with("wait-") && **name != "wait-looks" && !is_client(name));
        let seen: f64 = waits
            .flat_map(|(_, points)| points.iter())
            .filter(|point| point.0.to_bits() == end.to_bits())
            .map(|point| point.1)
            .sum();
        assert!((whole[at] - seen / number).abs() < 0.02, "{} of {seen}/{number} at {end}", whole[at]);
    }
}

/// A run of waits that lasts long: the real one, again and again, with one interval in which all sessions wait for a lock.
fn long_waits(seconds: usize, stall: usize) -> Document {
    changed("waits", |run| {
        let trial = &mut run.trials[0];
        let all = |name: &str| name.starts_with("wait-");
        let real = trial.series.iter().find(|series| series.name == "wait-looks").unwrap().points.clone();
        for series in trial.series.iter_mut().filter(|series| all(&series.name)) {
            let at = |second: usize| {
                let x = real[second % real.len()].0;
                series.points.iter().find(|point| point.0.to_bits() == x.to_bits()).map(|point| point.1)
            };
            let points = (0..seconds).filter_map(|second| Some((second as f64 + 1.0, at(second)?)));
            let mut points: Vec<(f64, f64)> = points.collect();
            if series.name != "wait-looks" {
                points.retain(|point| point.0.to_bits() != (stall as f64).to_bits());
            }
            series.points = points;
        }
        let lock = trial.series.iter_mut().find(|series| series.name.starts_with("wait-Lock:")).unwrap();
        lock.points.push((stall as f64, 10.0 * real[(stall - 1) % real.len()].1));
        lock.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    })
}

#[test]
fn long_waits_are_means_of_periods_and_their_peak_is_kept() {
    const TOGETHER: usize = 15;
    let run = long_waits(3600, 1803);
    let svg = plot(std::slice::from_ref(&run), "tps-waits-over-time.svg");
    let y = attribute(&svg, "data-y");
    let trial = &run.run.trials[0];
    let looks = &trial.series.iter().find(|series| series.name == "wait-looks").unwrap().points;
    // Sessions in all states but one, in each interval, straight from the document.
    let sessions = |is_counted: &dyn Fn(&str) -> bool| -> Vec<f64> {
        let counted = |series: &&Series| {
            series.name.starts_with("wait-") && series.name != "wait-looks" && is_counted(&series.name)
        };
        let of = |(x, looks): &(f64, f64)| {
            let found = trial.series.iter().filter(counted).flat_map(|series| &series.points);
            found.filter(|point| point.0.to_bits() == x.to_bits()).map(|point| point.1).sum::<f64>() / looks
        };
        looks.iter().map(of).collect()
    };
    let heights = |part: &str| -> Vec<f64> {
        let points = absolute(attribute(part, "d").split('V').next().unwrap());
        points.iter().map(|point| value(y, point.1)).collect()
    };
    let busy = sessions(&|name| name != "wait-Client:ClientRead");
    let top = heights(svg.split("data-layer=\"").nth(1).unwrap());
    let peak = heights(svg.split("data-name=\"").nth(1).unwrap());
    assert_eq!((top.len(), peak.len()), (1 + 3600 / TOGETHER, 3600 / TOGETHER));
    for (number, period) in busy.chunks(TOGETHER).enumerate() {
        let mean = period.iter().sum::<f64>() / period.len() as f64;
        assert!((top[number + 1] - mean).abs() < 0.05, "{number}: {} of {mean}", top[number + 1]);
    }
    for (number, period) in busy.chunks(TOGETHER).enumerate() {
        let highest = period.iter().copied().fold(0.0, f64::max);
        assert!((peak[number] - highest).abs() < 0.05, "{number}: {} of {highest}", peak[number]);
    }
    assert!(peak[1803 / TOGETHER] > 9.9, "{peak:?}");
}

#[test]
fn a_short_last_interval_draws_no_spike() {
    let run = changed("tps", |run| {
        for series in &mut run.trials[0].series {
            series.points.truncate(10);
            let end = series.points.last().unwrap().0;
            let value = if series.name == "latency-max" { 9.0 } else { 8.0 };
            series.points.push((end + 0.01, value));
        }
    });
    let documents = [run];
    for name in ["p99", "p95", "p50"] {
        let svg = plot(&documents, "tps-latency.svg");
        let (points, _) = crate::page::drawn(&svg, name);
        assert_eq!(points.len(), 10, "{name}");
    }
    // The slowest transaction is not lost.
    let svg = plot(&documents, "tps-latency.svg");
    let (points, [_, y]) = crate::page::drawn(&svg, "max");
    assert!((value(y, points.last().unwrap().1) / 9.0 - 1.0).abs() < 0.01, "{points:?}");
    assert!(
        svg.contains("The percentiles of the last 10.0 ms, an unfinished interval, are left out"),
        "{svg}"
    );
    // 8 transactions in 10 ms would be 800 per second.
    let text = report::markdown(&documents);
    assert!(!text.contains("800 transactions per second"), "{text}");
}

#[test]
fn marks_of_a_full_volume_are_numbered_and_named() {
    let run = changed("fill", |run| {
        let points = (1..=9_u32).map(|second| (f64::from(second), 1e5)).collect();
        run.trials.truncate(1);
        run.trials[0].series =
            vec![Series { points, ..Series::new("rows-sent", Unit::Seconds, Unit::Count) }];
        run.trials[0].events = [
            (3.0, "80 % used: crossed after 333 MB of heap (82.3 % used)", "mark-crossed"),
            (7.5, "stopped after 365 MB of heap", "stopped"),
        ]
        .map(|(at, text, event)| Event { at, text: text.to_owned(), what: json!({ "event": event }) })
        .to_vec();
    });
    let svg = plot(&[run], "fill-rows.svg");
    assert!(
        svg.contains(
            "Marked: (1) 80 % used: crossed after 333 MB of heap; (2) stopped after 365 MB of heap."
        ),
        "{svg}"
    );
    assert_eq!(svg.matches("class=\"end count name\"").count(), 2);
    let x = attribute(&svg, "data-x");
    for (line, at) in
        svg.split("class=\"moment\" d=\"M").filter(|part| part.contains("<title>")).zip([3.0, 7.5])
    {
        assert!((value(x, line.split(' ').next().unwrap().parse().unwrap()) - at).abs() < 0.02, "{line}");
    }
}

#[test]
fn a_document_without_waits_over_time_has_the_other_plots() {
    let names: Vec<String> = svgs(&[document("tps")]).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"tps-latency.svg".to_owned()), "{names:?}");
    assert!(!names.contains(&"tps-waits-over-time.svg".to_owned()), "{names:?}");
}

/// Runs of the same kind, one after the other.
fn repeated(name: &str, count: u32, change: impl Fn(u32, &mut Run)) -> Vec<Document> {
    let one = |number: u32| {
        changed(name, |run| {
            run.id = format!("{}-{number}", run.id);
            run.label = None;
            run.started_at = format!("2026-10-{:02}T0{}:00:00Z", 1 + number / 9, number % 9);
            change(number, run);
        })
    };
    (0..count).map(one).collect()
}

/// Values of an observation in the trials of a configuration.
fn observed(run: &Run, config: &str, of: impl Fn(&dyn Fn(&str) -> f64) -> f64) -> Vec<f64> {
    let trials = run.trials.iter().filter(|trial| trial.config == config);
    trials.map(|trial| of(&|name| trial.value(name).unwrap_or(0.0))).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

/// Row, series and value of each mark of a drawing of groups, from its pixels.
fn marks(svg: &str) -> Vec<(String, String, f64)> {
    let axis = attribute(svg, "data-axis");
    let mark = |part: &str| {
        let series = part.split('"').next().unwrap().to_owned();
        let title =
            part.split("<title>").nth(1).unwrap().split(&format!(", {series}: ")).next().unwrap().to_owned();
        let place = part.split("class=\"mark").nth(1).unwrap().split("d=\"M").nth(1).unwrap();
        let pixel: f64 = place.split(' ').next().unwrap().parse().unwrap();
        (title, series, value(axis, pixel))
    };
    svg.split("<g data-series=\"").skip(1).map(mark).collect()
}

#[test]
fn few_runs_of_any_kind_are_drawn_on_top_of_each_other() {
    for (name, _) in DOCUMENTS {
        // Two runs are two sides, three without labels are none.
        for count in [2, 3] {
            let page = html(&repeated(name, count, |_, _| {}));
            // In base64 there may be any letters.
            let (page, _) = page.split_once("<script type=").unwrap();
            assert!(page.contains("<h2>On top of each other</h2>"), "{count} runs of {name}");
            assert!(!page.contains("NaN") && page.contains("class=\"plot wide\""), "{name}");
            assert!(count == 3 || page.contains("a verdict needs at least"), "{count} runs of {name}");
        }
    }
}

/// The sentence names no figure that did not change, where there are many.
#[test]
fn verdicts_of_many_figures_are_counted() {
    let runs = repeated("ladder", 14, |number, run| {
        run.label = Some(if number < 7 { "before" } else { "after" }.to_owned());
        let slower = if number < 7 { 1.0 } else { 1.5 } * (1.0 + f64::from(number % 7) / 1000.0);
        for trial in run.trials.iter_mut().filter(|trial| trial.config == "4") {
            for one in trial.observations.iter_mut().filter(|one| one.name == "total") {
                one.value *= slower;
            }
        }
    });
    let page = html(&runs);
    let headline = page.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap();
    let said = "after (7 runs) beside before (7 runs): of 9 figures, 1 regressed (4: total +50";
    assert!(headline.starts_with(said) && headline.ends_with(", 8 without change"), "{headline}");
}

#[test]
fn what_differs_between_three_runs_is_listed() {
    let runs = repeated("tps", 3, |number, run| {
        if number == 2 {
            run.request["clients"] = json!(77);
        }
    });
    let page = html(&runs);
    assert!(page.contains("Differences between the runs") && page.contains("<td>77"), "{page}");
    assert!(!html(&repeated("tps", 3, |_, _| {})).contains("Differences between the runs"));
}

#[test]
fn ladders_of_several_servers_stand_side_by_side() {
    let runs = repeated("ladder", 3, |number, run| {
        run.label = Some(format!("server {number}"));
        for one in run.trials.iter_mut().flat_map(|trial| &mut trial.observations) {
            if one.name == "total" {
                one.value *= f64::from(number + 1);
            }
        }
    });
    let marks = marks(&plot(&runs, "fill-ladder-ladder.svg"));
    let levels: std::collections::BTreeSet<&String> = marks.iter().map(|mark| &mark.0).collect();
    assert!(levels.len() > 2 && marks.len() == 3 * levels.len(), "{marks:?}");
    for (level, series, found) in &marks {
        let run = &runs.iter().find(|run| run.run.label.as_ref() == Some(series)).unwrap().run;
        // 4: fillfactor 10; pgrig's own method for 5.
        let level = level.replace("&#39;", "'");
        let config = match level.split_once(": ") {
            Some((number, _)) => number.to_owned(),
            None => format!("best of {}", level.strip_prefix("pgrig's own method for ").unwrap()),
        };
        let rates = observed(run, &config, |value| {
            (value("heap") + value("index") - value("heap-before") - value("index-before")) / value("total")
        });
        let expected = median(rates);
        assert!((found / expected - 1.0).abs() < 0.02, "{level} of {series}: {found}, not {expected}");
    }
}

#[test]
fn steps_of_several_runs_are_the_medians_of_their_trials() {
    let runs = repeated("blockio", 2, |_, _| {});
    let marks = marks(&plot(&runs, "blockio-steps.svg"));
    assert!(marks.len() > 10);
    for (step, _, found) in &marks {
        let expected = median(observed(&runs[0].run, "total", |value| value(step)));
        assert!((found / expected - 1.0).abs() < 0.02, "{step}: {found}, not {expected}");
    }
}

/// Runs of tps with noise of 1 %, slower by `change` from the 14th on.
fn history(count: u32, change: f64) -> Vec<Document> {
    repeated("tps", count, |number, run| {
        let noise = 1.0 + f64::from(number.wrapping_mul(2_654_435_761) >> 16) / 65_536.0 / 50.0;
        let times = if number < 13 { noise } else { noise * change };
        for one in &mut run.trials[0].observations {
            if one.name == "elapsed" || one.name == "latency-p95" {
                one.value *= times;
            }
        }
    })
}

#[test]
fn a_history_is_marked_only_where_it_changes() {
    let changed = history(25, 1.2);
    let page = html(&changed);
    assert!(
        page.contains(
            "The level changed at 2026-10-02 04:00:00: the median of the 12 runs from this run on differs by"
        ),
        "{page}"
    );
    assert!(page.contains("◀ changed:") && page.contains("Of 100 reports"));
    let page = html(&history(25, 1.0));
    assert!(page.contains("No lasting change is marked") && !page.contains("◀ changed:"));
    assert!(html(&history(9, 1.0)).contains("pgrig looks for no change"));
    // Each run is drawn where its document says.
    let svg = plot(&changed, "tps-figure-1.svg");
    let axis = attribute(&svg, "data-axis");
    let drawn: Vec<f64> = svg
        .split("class=\"value\" cx=\"")
        .skip(1)
        .map(|part| value(axis, part.split('"').next().unwrap().parse().unwrap()))
        .collect();
    let expected: Vec<f64> = changed
        .iter()
        .map(|run| observed(&run.run, "tps", |value| value("succeeded") / value("elapsed"))[0])
        .collect();
    assert_eq!(drawn.len(), expected.len());
    for (found, expected) in drawn.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < 0.01, "{found}, not {expected}");
    }
}

#[test]
fn runs_of_a_label_are_one_row_of_a_history() {
    let runs = repeated("tps", 12, |number, run| run.label = Some(format!("commit {}", number / 4)));
    let svg = plot(&runs, "tps-figure-1.svg");
    assert_eq!(svg.matches("<g><title>commit ").count(), 3);
    assert_eq!(svg.matches("class=\"observed\"").count(), 12);
}

#[test]
fn published_machines_are_drawn_from_the_document() {
    let heap = 20e9;
    let run = changed("compat", |run| {
        run.plan["published"] = json!([
            { "name": "a machine", "machine": "fast", "size": "20 GB", "source": "a book", "heap": heap,
              "seconds": { "CREATE_TABLE": 30.0, "CLUSTER": 80.0 }, "vacuum": { "read": 2e9, "write": 2.1e9 } },
            { "name": "another", "machine": "slow", "size": null, "source": "a book", "heap": null,
              "seconds": {}, "vacuum": { "read": 1e9, "write": 1.1e9 } },
        ]);
    });
    let documents = std::slice::from_ref(&run);
    let beside = marks(&plot(documents, "blockio-compat-published.svg"));
    assert_eq!(beside.len(), 4, "{beside:?}");
    for (step, series, found) in &beside {
        let expected = if series == "this server" {
            median(observed(&run.run, "total", |value| value(step) / value("heap") * 1e9))
        } else {
            (if step == "CLUSTER" { 80.0 } else { 30.0 }) / heap * 1e9
        };
        assert!((found / expected - 1.0).abs() < 0.02, "{step} of {series}: {found}, not {expected}");
    }
    let vacuum = marks(&plot(documents, "blockio-compat-vacuum.svg"));
    let series: Vec<&str> = vacuum.iter().map(|mark| mark.1.as_str()).collect();
    assert_eq!(series, ["this server", "a machine (20 GB)", "another"].repeat(2));
    // Documents of older builds hold none.
    assert!(!html(&[document("compat")]).contains("Published machines"));
}

#[test]
fn a_compatible_run_is_a_row_of_the_published_collector() {
    let run = document("compat");
    let text = csv(&[run.clone(), run.clone()]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        lines[0].join(" "),
        "SERVER CREATE_TABLE VACUUM CREATE_INDEX SELECT_u1 SELECT_c1 SELECT_r CLUSTER SELECT_u2 SELECT_c2 SIZE_T SIZE_I \
         READ_RATE WRITE_RATE"
    );
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1], lines[2]);
    assert_eq!(lines[1][0], "localhost");
    for (key, found) in lines[0].iter().zip(&lines[1]).skip(1) {
        let expected = match *key {
            "SIZE_T" => median(observed(&run.run, "total", |value| value("heap-after"))),
            "SIZE_I" => median(observed(&run.run, "total", |value| value("index-after"))),
            "READ_RATE" | "WRITE_RATE" => continue,
            step => 1e3 * median(observed(&run.run, "total", |value| value(step))),
        };
        let found: f64 = found.parse().unwrap();
        assert!((found - expected).abs() <= 0.0006, "{key}: {found}, not {expected}");
    }
    // PostgreSQL's own words: avg read rate: 197.955 MB/s.
    let read = |run: &Run| {
        let texts = run.trials.iter().flat_map(|trial| &trial.events).map(|event| event.text.clone());
        let rate =
            |text: String| text.split("avg read rate: ").nth(1)?.split(' ').next()?.parse::<f64>().ok();
        median(texts.filter_map(rate).collect())
    };
    assert!((lines[1][12].parse::<f64>().unwrap() - read(&run.run)).abs() < 0.001);
    // Beside other runs it has rows as they do.
    assert!(csv(&[run, document("blockio")]).starts_with("run,label,"));
}

#[test]
fn the_statistics_of_each_column_are_cells_in_tolerances() {
    let run = changed("model", |run| {
        let field = |statistic: &str, original: f64, copy: f64| json!({ "statistic": statistic, "original": original, "copy": copy, "tolerance": 0.02 });
        let event = |what: serde_json::Value| Event { at: 0.0, text: String::new(), what };
        run.trials[0].events = vec![
            event(
                json!({ "event": "column", "column": "x.a.good", "fields": [field("null_frac", 0.5, 0.49), field("correlation", 1.0, 1.0)] }),
            ),
            event(
                json!({ "event": "column", "column": "x.a.bad", "fields": [field("correlation", 0.0, -0.05)] }),
            ),
            event(
                json!({ "event": "table", "table": "x.a", "rows": { "original": 5, "copy": 6 }, "bytes": { "original": 8192, "copy": 16384 } }),
            ),
        ];
    });
    let svg = plot(std::slice::from_ref(&run), "model-columns.svg");
    let cells: Vec<String> = svg
        .split("<g class=\"")
        .filter(|part| part.contains("<title>"))
        .map(|part| {
            let class = part.split('"').next().unwrap();
            format!("{} {class}", part.split("<title>").nth(1).unwrap().split('<').next().unwrap())
        })
        .collect();
    // Differences beyond the tolerance stand out, by their size.
    let expected = [
        "a.bad, correlation: 2.5 beyond0",
        "a.good, null_frac: 0.5 within-limit",
        "a.good, correlation: 0 within-limit",
    ];
    assert_eq!(cells, expected);
    let page = html(&[run]);
    assert!(page.contains("In 1 of 2 columns, a statistic exceeds its tolerance"), "{page}");
    assert!(page.contains("the largest, a, has"), "{page}");
}

#[test]
fn the_size_at_which_a_table_leaves_its_cache_is_marked() {
    let series = |name: &str, values: [f64; 4]| Series {
        points: values.iter().zip(1..).map(|(value, size)| (f64::from(size) * 1e9, *value)).collect(),
        ..Series::new(name, Unit::Bytes, Unit::Count)
    };
    let run = |hits: [f64; 4]| {
        changed("fill", |run| {
            run.trials.truncate(1);
            run.trials[0].series = vec![
                series("probe-point-p50", [0.001, 0.001, 0.002, 0.003]),
                series("probe-point-hits", hits),
                series("probe-point-reads", if hits[0] > 0.0 { [0.0, 50.0, 50.0, 50.0] } else { [50.0; 4] }),
            ];
        })
    };
    let svg = plot(&[run([100.0, 100.0, 100.0, 100.0])], "fill-probe-point.svg");
    let marked = svg.split("class=\"band moment\" d=\"M").nth(1).unwrap();
    let (from, rest) = marked.split_once(' ').unwrap();
    let until = rest.split('H').nth(1).unwrap().split('V').next().unwrap();
    // In the cache at 1 GB, and no longer at 2 GB.
    for (x, size) in [(from, 1e9), (until, 2e9)] {
        assert!((value(attribute(&svg, "data-x"), x.parse().unwrap()) / size - 1.0).abs() < 0.01, "{svg}");
    }
    // Once below and above again is not outgrown.
    let svg = plot(&[run([100.0, 100.0, 1000.0, 1000.0])], "fill-probe-point.svg");
    assert!(!svg.contains("moment\" d"));
    // Never within is not outgrown either.
    let svg = plot(&[run([0.0, 100.0, 100.0, 100.0])], "fill-hits-point.svg");
    assert!(!svg.contains("moment\" d") && svg.contains("At every size, less than 95 %"), "{svg}");
}
