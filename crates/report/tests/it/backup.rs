//! Ways to back up a database.

use std::collections::BTreeMap;

use measure::Run;
use report::{csv, html, markdown, redacted, svgs};

use crate::{changed, document};

/// The medians of each way, straight from the document.
fn medians(run: &Run) -> BTreeMap<String, [f64; 3]> {
    let mut found: BTreeMap<String, [Vec<f64>; 3]> = BTreeMap::new();
    for trial in &run.trials {
        let values = found.entry(trial.config.clone()).or_default();
        for (number, name) in ["size", "backup", "restore"].into_iter().enumerate() {
            values[number].push(trial.value(name).unwrap());
        }
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        }
    };
    found.into_iter().map(|(way, values)| (way, values.map(median))).collect()
}

#[test]
fn the_front_holds_the_ways_that_no_other_beats() {
    let backup = document("backup");
    let medians = medians(&backup.run);
    let text = markdown(std::slice::from_ref(&backup));
    let mut on_front = 0;
    for (way, own) in &medians {
        let is_beaten = medians.iter().any(|(other, others)| {
            let mut pairs = own.iter().zip(others);
            other != way
                && pairs.clone().all(|(own, others)| others <= own)
                && pairs.any(|(own, others)| others < own)
        });
        on_front += usize::from(!is_beaten);
        let row = |line: &&str| line.contains(way.as_str()) && line.starts_with('|');
        let row = text.lines().find(row).unwrap_or_else(|| panic!("{way} in {text}"));
        assert_eq!(row.contains("| yes"), !is_beaten, "{way}: {row}");
    }
    assert!((1..medians.len()).contains(&on_front), "the document shows both: {medians:?}");
}

#[test]
fn a_report_shows_sizes_times_and_proofs_of_backups() {
    let backup = document("backup");
    let plots = svgs(std::slice::from_ref(&backup));
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["backup-sizes.svg", "backup-backup.svg", "backup-restore.svg"]);
    let page = html(std::slice::from_ref(&backup));
    for said in ["Smallest backup", "Proof of each way", "hashes are those of the dumped snapshot"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(csv(std::slice::from_ref(&backup)).contains(",restore,"));
}

#[test]
fn a_way_without_a_result_is_named() {
    let failed = changed("backup", |run: &mut Run| {
        run.status = measure::Status::Failed;
        let first = run.plan["ways"][0].as_str().unwrap().to_owned();
        run.trials.retain(|trial| trial.config != first);
    });
    let way = failed.run.plan["ways"][0].as_str().unwrap().to_owned();
    assert!(
        markdown(&[failed]).replace('\\', "").contains(&format!("Without a result: {way}; the notes have"))
    );
    let none = changed("backup", |run: &mut Run| run.trials.clear());
    assert!(html(&[none]).contains("No way was completed"));
}

/// The names of ways are the format's.
#[test]
fn redaction_keeps_ways_and_proofs() {
    let backup = document("backup");
    let database = "payroll";
    let named = changed("backup", |run: &mut Run| run.plan["database"] = database.into());
    let hidden = redacted(&[named]).unwrap();
    assert!(!hidden[0].text.contains(database));
    let rows = |text: String| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("| ")).map(ToOwned::to_owned).collect()
    };
    let (before, after) = (rows(markdown(&[backup])), rows(markdown(&hidden)));
    let of_ways = |rows: &[String]| rows.iter().filter(|row| row.contains("snapshot")).count();
    assert!(of_ways(&before) > 0);
    assert_eq!(of_ways(&before), of_ways(&after));
    for row in before.iter().filter(|row| row.contains("custom") || row.contains("plain")) {
        assert!(after.contains(row), "{row}");
    }
}

#[test]
fn other_databases_are_counted_and_their_names_redacted() {
    let mut way = String::new();
    let read = changed("backup", |run: &mut Run| {
        let base = run.trials.iter_mut().find(|trial| trial.config.starts_with("base")).unwrap();
        way.clone_from(&base.config);
        // Each word is one of the format's, too.
        base.events[0].what["verified"]["other_databases"] = serde_json::json!(["payroll", "backup"]);
    });
    let text = markdown(std::slice::from_ref(&read)).replace('\\', "");
    assert!(text.contains("Other databases of a base backup were read in the restored server"), "{text}");
    let is_row = |line: &&str| line.contains(&way) && line.trim_end().ends_with("| 2 |");
    assert!(text.lines().any(|line| is_row(&line)), "{text}");
    let hidden = redacted(&[read]).unwrap();
    let kept = hidden[0].run.trials.iter().flat_map(|trial| &trial.events);
    let kept: Vec<String> = kept.map(|event| event.what["verified"]["other_databases"].to_string()).collect();
    assert!(kept.iter().any(|names| names.contains("name ")), "{kept:?}");
    assert!(!kept.iter().any(|names| names.contains("payroll") || names.contains("\"backup\"")), "{kept:?}");
}
