//! The subject of a run in a few words, from the request in its document.

use measure::human::{bytes, counted, grouped};
use serde_json::Value;

/// Longest subject, characters; longer ones are cut.
const LONGEST: usize = 48;

/// The subject; a dash if the request does not tell it, as in documents of other versions.
pub(super) fn subject(verb: &str, request: &Value) -> String {
    let words = match verb {
        "fill" => fill(request),
        "blockio" => blockio(request),
        "micro" => Some(names(&request["candidates"], "name")),
        "tps" => Some(tps(request)),
        "testdb" => testdb(request),
        "model" => model(request),
        "backup" => backup(request),
        _ => None,
    };
    let words = words.unwrap_or_default();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.chars().count() {
        0 => "-".to_owned(),
        1..=LONGEST => words,
        _ => words.chars().take(LONGEST - 1).collect::<String>() + "…",
    }
}

fn fill(request: &Value) -> Option<String> {
    if let Some(size) = request["ladder"]["size"].as_u64() {
        return Some(format!("ladder, {}", bytes(size)));
    }
    let amount = &request["amount"];
    let number = |name: &str| amount[name].as_u64();
    let amount = if let Some(size) = number("size") {
        bytes(size)
    } else if let Some(scale) = number("scale") {
        format!("scale {}", grouped(scale))
    } else if let Some(rows) = number("rows") {
        counted(rows, "row")
    } else {
        match amount.as_str()? {
            "unbounded" => "until a limit".to_owned(),
            "nothing" => "no rows".to_owned(),
            _ => String::new(),
        }
    };
    let subject = &request["subject"];
    let table = subject["table"]["name"].as_str();
    let tables = match subject.as_str() {
        Some("pgbench") => "pgbench's tables".to_owned(),
        Some(other) => other.to_owned(),
        None if subject["table"].is_object() => table.unwrap_or("a table").to_owned(),
        None => "all tables".to_owned(),
    };
    Some(if amount.is_empty() { tables } else { format!("{tables}, {amount}") })
}

fn blockio(request: &Value) -> Option<String> {
    let size = bytes(request["size"].as_u64()?);
    let mode = if request["mode"] == "compat" { ", compat" } else { "" };
    Some(format!("{size}{mode}{}", clients(request)))
}

fn tps(request: &Value) -> String {
    let scripts = names(&request["scripts"], "name");
    if request["matrix"].is_object() {
        return format!("{scripts} by {}", names(&request["matrix"]["axes"], "axis"));
    }
    let length = match (request["time"].as_f64(), request["transactions"].as_u64()) {
        (Some(seconds), _) => format!(", {seconds} s"),
        (None, Some(number)) => format!(", {}", counted(number, "transaction")),
        (None, None) => String::new(),
    };
    format!("{scripts}{}{length}", clients(request))
}

fn testdb(request: &Value) -> Option<String> {
    let work = &request["work"];
    Some(match work["command"].as_str() {
        Some(command) => command.to_owned(),
        None => names(work["tps"].get("scripts")?, "name"),
    })
}

fn model(request: &Value) -> Option<String> {
    Some(format!("{} of {}", request["copy"].as_str()?, request["original"].as_str()?))
}

fn backup(request: &Value) -> Option<String> {
    let ways: Vec<&str> = request["ways"].as_array()?.iter().filter_map(Value::as_str).collect();
    Some(if ways.is_empty() { "default ways".to_owned() } else { ways.join(", ") })
}

fn clients(request: &Value) -> String {
    match request["clients"].as_u64() {
        None => String::new(),
        Some(number) => format!(", {}", counted(number, "client")),
    }
}

/// This field of each element; for pgbench's own scripts only the name.
fn names(list: &Value, field: &str) -> String {
    let names = list.as_array().into_iter().flatten().filter_map(|one| one[field].as_str());
    let names = names.map(|name| name.trim_start_matches("<builtin: ").trim_end_matches('>'));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_of_each_verb_have_words() {
        for (verb, request, words) in [
            (
                "fill",
                json!({ "subject": "pgbench", "amount": { "size": 1_000_000_000 } }),
                "pgbench's tables, 1.00 GB",
            ),
            (
                "fill",
                json!({ "subject": { "table": { "name": "t" } }, "amount": { "rows": 5000 } }),
                "t, 5,000 rows",
            ),
            ("fill", json!({ "ddl": "CREATE", "amount": "rules" }), "all tables"),
            ("fill", json!({ "ladder": { "size": 10_000_000 } }), "ladder, 10.0 MB"),
            (
                "blockio",
                json!({ "mode": "compat", "size": 1_000_000_000, "clients": 2 }),
                "1.00 GB, compat, 2 clients",
            ),
            ("micro", json!({ "candidates": [{ "name": "a\n b" }, { "name": "c" }] }), "a b, c"),
            (
                "tps",
                json!({ "scripts": [{ "name": "<builtin: s>" }], "clients": 1, "time": 5.0 }),
                "s, 1 client, 5 s",
            ),
            (
                "tps",
                json!({ "scripts": [{ "name": "s" }], "matrix": { "axes": [{ "axis": "clients" }] } }),
                "s by clients",
            ),
            ("testdb", json!({ "work": { "command": "pytest" } }), "pytest"),
            ("model", json!({ "original": "shop", "copy": "copy" }), "copy of shop"),
            ("tps", json!({}), "-"),
            ("later", json!({ "x": 1 }), "-"),
            ("fill", json!(null), "-"),
        ] {
            assert_eq!(subject(verb, &request), words, "{verb} {request}");
        }
        assert_eq!(
            subject("testdb", &json!({ "work": { "command": "x".repeat(100) } })).chars().count(),
            LONGEST
        );
    }
}
