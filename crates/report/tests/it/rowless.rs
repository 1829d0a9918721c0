//! Statements of a migration that work on partitions without generated rows, change no row, or work on the few rows that others left.

use measure::Event;
use report::{Document, html, markdown, redacted};
use serde_json::json;

use crate::{changed, document};

/// A document whose statement 8 works on such a partition.
fn of(is_default: bool, columns: &[&str]) -> Document {
    changed("ddl", |run| {
        let trial = run.trials.iter_mut().find(|trial| trial.config.starts_with("8: ")).unwrap();
        trial.events.retain(|event| event.what["event"] != "forecast");
        let partitions = json!([{ "partition": "rest", "is_default": is_default, "columns": columns }]);
        let what = json!({ "event": "rowless", "partitions": partitions });
        let text = "partitions without generated rows".to_owned();
        trial.events.push(Event { at: 0.0, text, what });
    })
}

/// The row of statement 8 in the table of forecasts.
fn forecast(text: &str) -> &str {
    let table = text.split("### Forecasts\n").nth(1).unwrap();
    table.lines().find(|line| line.starts_with("| 8: ")).unwrap()
}

#[test]
fn a_pull_request_shows_that_the_time_is_not_known() {
    let text = markdown(&[of(true, &["items.at"])]);
    let reason = "the default partition rest has no generated rows";
    assert!(text.contains("The time of statement 8, ALTER TABLE"), "{text}");
    let advice = "give values outside the bounds of all other partitions with --column 'items.at=SPEC'.";
    assert!(text.contains(&format!("{reason}. To measure it, {advice}")), "{text}");
    let row = forecast(&text);
    let end = format!("| any size | not known | {reason} | not known | {reason} |");
    assert!(row.ends_with(&end), "{row}");
    assert!(!markdown(&[document("ddl")]).contains("has no generated rows"));
}

#[test]
fn a_page_shows_it_too_and_each_column_of_the_key() {
    let page = html(&[of(false, &[])]);
    let says = "the partition rest has no generated rows. To measure it, give values within its bounds with";
    assert!(page.contains(says), "{page}");
    let both = markdown(&[of(true, &["items.at", "items.kind"])]);
    assert!(both.contains("--column 'items.at=SPEC' and --column 'items.kind=SPEC'."), "{both}");
}

#[test]
fn a_redacted_document_shows_it_without_names() {
    let redacted = redacted(&[of(true, &["items.at"])]).unwrap();
    let text = markdown(&redacted);
    assert!(text.contains("has no generated rows"), "{text}");
    assert!(!text.contains("partition rest ") && !text.contains("items.at"), "{text}");
}

#[test]
fn an_unknown_time_zone_is_told_unless_the_table_was_rewritten() {
    let of = |class: &str| {
        changed("ddl", |run| {
            let trial = run.trials.iter_mut().find(|trial| trial.config.starts_with("8: ")).unwrap();
            trial.events.retain(|event| event.what["event"] != "forecast");
            let found = trial.events.iter_mut().find(|event| event.what["event"] == "found").unwrap();
            found.what["found"]["class"] = json!(class);
            let what =
                json!({ "event": "zone", "zone": { "columns": ["orders.placed"], "zone": "Etc/UTC" } });
            trial.events.push(Event { at: 0.0, text: "unknown time zone".to_owned(), what });
        })
    };
    let text = markdown(&[of("catalog-only")]);
    let reason = "whether PostgreSQL rewrites the table (orders.placed), and the time zone of the original is not known";
    assert!(text.contains(&format!("{reason}. To measure it, give the time zone of")), "{text}");
    assert!(forecast(&text).contains(reason), "{text}");
    let redacted = markdown(&redacted(&[of("catalog-only")]).unwrap());
    assert!(redacted.contains("the time zone decides whether"), "{redacted}");
    assert!(!redacted.contains("orders.placed"), "{redacted}");
    assert!(!markdown(&[of("rewrite")]).contains("the time zone decides"));
}

/// A document whose statement 8 changes no row.
fn unmatched(is_insert: bool, is_plain: bool) -> Document {
    changed("ddl", |run| {
        let trial = run.trials.iter_mut().find(|trial| trial.config.starts_with("8: ")).unwrap();
        trial.events.retain(|event| event.what["event"] != "forecast");
        let found = trial.events.iter_mut().find(|event| event.what["event"] == "found").unwrap();
        let table = json!({ "table": "posts", "is_insert": is_insert, "is_plain": is_plain });
        found.what["found"]["unmatched"] = json!([table]);
    })
}

#[test]
fn a_write_that_changes_no_row_has_no_known_time() {
    let text = markdown(&[unmatched(false, true)]);
    let reason = "it changes no row of posts, because no generated row satisfies its conditions";
    let advice = "give values that do with --column 'posts.COLUMN=SPEC'.";
    assert!(text.contains(&format!("{reason}. To measure it, {advice}")), "{text}");
    let end = format!("| any size | not known | {reason} | not known | {reason} |");
    assert!(forecast(&text).ends_with(&end), "{text}");
    let page = html(&[unmatched(true, false)]);
    assert!(page.contains("it inserts no row into posts, because"), "{page}");
    assert!(page.contains("TABLE.COLUMN=SPEC"), "{page}");
    let redacted = markdown(&redacted(&[unmatched(false, true)]).unwrap());
    assert!(redacted.contains("because no generated row satisfies its conditions"), "{redacted}");
    assert!(!redacted.contains("posts"), "{redacted}");
}

#[test]
fn rows_that_the_schema_inserts_are_told_apart() {
    let of_schema = changed("ddl", |run| {
        let trial = run.trials.iter_mut().find(|trial| trial.config.starts_with("8: ")).unwrap();
        let found = trial.events.iter_mut().find(|event| event.what["event"] == "found").unwrap();
        let (sources, is) = (["settings"], true);
        let table = json!({ "table": "users", "is_insert": is, "is_plain": !is, "sources": sources, "is_of_schema": is });
        found.what["found"]["unmatched"] = json!([table]);
    });
    let text = markdown(&[of_schema]);
    let reason = "it inserts no row into users, because no row that the schema inserts into settings satisfies its conditions";
    assert!(text.contains(reason), "{text}");
    assert!(text.contains("give values that do with --column 'settings.COLUMN=SPEC'."), "{text}");
}

#[test]
fn steps_of_a_better_way_whose_time_is_not_known_are_marked() {
    let marked = changed("alternatives", |run| {
        let trial = run.trials.iter_mut().find(|trial| trial.config.starts_with("2: ")).unwrap();
        let way = trial.events.iter_mut().find(|event| event.what["event"] == "alternative").unwrap();
        let steps = way.what["statements"].as_array_mut().unwrap();
        steps[1]["found"]["class"] = json!("catalog-only");
        steps[1]["zone"] = json!({ "columns": ["orders.placed"], "zone": "Etc/UTC" });
        steps[0]["rowless"] = json!([{ "partition": "rest", "is_default": true, "columns": [] }]);
        let table = json!({ "table": "posts", "is_insert": false, "is_plain": false });
        steps.last_mut().unwrap()["found"]["unmatched"] = json!([table]);
    });
    let table = |text: &str| {
        let after = text.split("### Statements and the better ways in their place\n").nth(1).unwrap();
        after.lines().filter(|line| line.starts_with('|')).map(str::to_owned).collect::<Vec<_>>()
    };
    let rows = table(&markdown(std::slice::from_ref(&marked)));
    assert!(rows[0].ends_with(" | of it for locks | time in the original |"), "{rows:#?}");
    let of = |start: &str| rows.iter().find(|row| row.starts_with(start)).unwrap().as_str();
    let partition = "not known: the default partition rest has no generated rows";
    assert!(of("| 2, better 1 of 6: ").ends_with(&format!(" | {partition} |")), "{rows:#?}");
    let zone = "not known: the time zone decides whether PostgreSQL rewrites the table (orders.placed)";
    assert!(of("| 2, better 2 of 6: ").contains(zone), "{rows:#?}");
    let write = "not known: it changes no row of posts, because no generated row satisfies its conditions";
    assert!(of("| 2, better 6 of 6: ").ends_with(&format!(" | {write} |")), "{rows:#?}");
    assert!(of("| 2, better, in all").ends_with(" |  |"), "{rows:#?}");
    assert!(html(std::slice::from_ref(&marked)).contains(partition));
    let redacted = table(&markdown(&redacted(&[marked]).unwrap()));
    assert!(redacted.iter().any(|row| row.ends_with("has no generated rows |")), "{redacted:#?}");
    assert!(!table(&markdown(&[document("alternatives")]))[0].contains("in the original"));
}

#[test]
fn statements_on_the_few_rows_that_others_left_are_told() {
    let thinned = changed("ddl", |run| {
        for number in ["7: ", "8: "] {
            let trial = run.trials.iter_mut().find(|trial| trial.config.starts_with(number)).unwrap();
            let what =
                json!({ "event": "thinned", "tables": [{ "table": "posts", "by": 2, "percent": 60 }] });
            trial.events.push(Event { at: 0.0, text: "tables with few rows left".to_owned(), what });
        }
    });
    let text = markdown(std::slice::from_ref(&thinned));
    let says =
        "After statement 2, 60 % of the generated rows of posts are removed, so the times of statement 7, ";
    assert!(text.contains(says), "{text}");
    let advice = "are those of the rows left. If the statements work on more rows in the original, give values that are not removed, \
                  with --column 'posts.COLUMN=SPEC'.";
    assert!(text.contains(advice), "{text}");
    assert!(html(std::slice::from_ref(&thinned)).contains("% of the generated rows of posts"));
    let redacted = markdown(&redacted(&[thinned]).unwrap());
    assert!(redacted.contains("60 % of the generated rows of"), "{redacted}");
    assert!(!redacted.contains("posts"), "{redacted}");
    assert!(!markdown(&[document("ddl")]).contains("of the rows left"));
}
