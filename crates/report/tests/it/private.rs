//! Text of people: shown as text, and left out where that is asked for.

use measure::{Note, Run, Setting, figures, judged_figures};
use report::{Document, csv, embed, html, markdown, redacted, svgs};
use serde_json::{Value, json};

use crate::{DOCUMENTS, changed};

/// Text that a page must not take for its own.
const HOSTILE: &str =
    "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}\u{7}--><!--";

/// Replaces all text within a value.
fn replace(value: &mut Value, by: &str) {
    match value {
        Value::String(text) => by.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, by)),
        Value::Object(fields) => fields.values_mut().for_each(|item| replace(item, by)),
        _ => {}
    }
}

#[test]
fn hostile_text_is_shown_as_text() {
    for (name, _) in DOCUMENTS {
        let document =
            changed(name, |run: &mut Run| {
                run.label = Some(HOSTILE.to_owned());
                run.command = vec!["pgrig".to_owned(), HOSTILE.to_owned()];
                run.notes.push(Note { text: HOSTILE.to_owned() });
                let scripts = run.plan["scripts"].take();
                replace(&mut run.plan["arms"], HOSTILE);
                run.plan["scripts"] = scripts;
                replace(&mut run.plan["scripts"], HOSTILE);
                run.environment.database = HOSTILE.to_owned();
                for trial in &mut run.trials {
                    for series in trial.series.iter_mut().filter(|series| {
                        series.name.starts_with("wait-E") || series.name.starts_with("wait-I")
                    }) {
                        series.name = format!("wait-{HOSTILE}");
                    }
                    if run.verb != "micro" && run.verb != "tps" {
                        trial.config = HOSTILE.to_owned();
                    }
                    for event in &mut trial.events {
                        event.text = HOSTILE.to_owned();
                        for field in ["candidate", "baseline", "relation"] {
                            if event.what[field].is_string() {
                                event.what[field] = json!(HOSTILE);
                            }
                        }
                    }
                }
            });
        let page = html(std::slice::from_ref(&document));
        assert_eq!(page.matches("<script").count(), 2, "{name}: the document and pgrig's own script");
        assert_eq!(page.matches("</script>").count(), 2, "{name}");
        assert!(
            !page.contains("<img") && !page.contains("<!--") && !page.contains(['\u{202e}', '\u{7}']),
            "{name}"
        );
        assert!(page.contains("&lt;/script&gt;") && page.contains("«U+202E»"), "{name}");
        assert_eq!(embed::extract(&page).unwrap(), std::slice::from_ref(&document.text));
        let text = markdown(&[document]);
        let outside: String = text.split("```").step_by(2).collect();
        assert!(!outside.contains("<script") && !text.contains('\u{202e}'), "{name}");
    }
}

/// Names, paths and literals that stand everywhere in a document.
const SECRETS: [&str; 9] = [
    "db1.internal.example",
    "alice",
    "payroll",
    "/srv/secret",
    "salaries",
    "s3cret-literal",
    "4711",
    "project-x",
    "pass5word",
];

#[test]
fn a_redacted_report_has_no_names_paths_or_sql() {
    let documents: Vec<Document> = DOCUMENTS
        .iter()
        .map(|(name, _)| {
            changed(name, |run: &mut Run| {
                let environment = &mut run.environment;
                environment.database = "payroll".to_owned();
                environment.role = "alice".to_owned();
                environment.transport = "tcp db1.internal.example:5432, TLSv1.3 TLS_AES_256_GCM_SHA384".to_owned();
                if let Some(volume) = &mut environment.data_volume {
                    volume.mount = "/srv/secret".to_owned();
                }
                let setting = |name: &str, value: &str| Setting { name: name.to_owned(), value: value.to_owned(), source: "/srv/secret/postgresql.conf".to_owned() };
                environment.server.settings.extend([setting("archive_command", "cp %p /srv/secret/%f"), setting("search_path", "payroll"), setting("alice.tenant", "project-x")]);
                run.label = Some("project-x".to_owned());
                run.command = ["pgrig", "tps", "-d", "postgresql://alice:pass5word@db1.internal.example/payroll"].map(str::to_owned).to_vec();
                run.notes.push(Note { text: "salaries: /srv/secret is full".to_owned() });
                let sql = "SELECT s3cret-literal FROM salaries WHERE id = 4711";
                for part in [&mut run.request, &mut run.plan] {
                    part["ddl"] = json!(sql);
                    part["schema"] = json!("payroll");
                    part["scripts"] = json!([{ "name": "/srv/secret/x.sql", "text": sql, "commands": [{ "line": 1, "text": sql }] }]);
                    part["definitions"] = json!([{ "name": "salaries", "value": "4711" }]);
                    part["table"] = json!({ "name": "salaries", "ddl": sql, "columns": ["salaries=4711"] });
                }
                for trial in &mut run.trials {
                    trial.observations.push(measure::Observation { name: "salaries-time".to_owned(), value: 1.0, unit: measure::Unit::Seconds });
                    trial.events.push(measure::Event {
                        at: 0.0,
                        text: "autovacuum of payroll.salaries".to_owned(),
                        what: json!({ "event": "maintenance", "who": "autovacuum", "relation": "payroll.salaries", "from": 0.0, "until": 1.0 }),
                    });
                }
            })
        })
        .collect();
    let redacted = redacted(&documents).unwrap();
    let page = html(&redacted);
    let embedded = embed::extract(&page).unwrap().concat();
    let drawn: String = svgs(&redacted).into_iter().map(|(name, svg)| name + &svg).collect();
    // Names of candidates are SQL, too.
    let secrets = SECRETS.into_iter().chain([
        "gen_random_uuid",
        "md5(",
        "pgbench_accounts",
        "/var/lib",
        "order_items",
        "orders_status",
        "schema.sql",
    ]);
    for secret in secrets {
        for (what, text) in [
            ("page", &page),
            ("document", &embedded),
            ("md", &markdown(&redacted)),
            ("csv", &csv(&redacted)),
            ("svg", &drawn),
        ] {
            let found = text
                .find(secret)
                .map(|at| text[at.saturating_sub(80)..].chars().take(160).collect::<String>());
            // Digits stand in other numbers.
            let is_number = secret.chars().all(|c| c.is_ascii_digit());
            assert!(
                found.is_none() || is_number && !text.contains("= 4711") && !text.contains("\"4711\""),
                "{secret} is in the {what}: {found:?}"
            );
        }
    }
    // The numbers are still there.
    assert!(page.contains("transactions per second") && page.contains("median of 3 trials"));
    for (document, before) in redacted.iter().zip(&documents) {
        assert_eq!(document.run.trials.len(), before.run.trials.len());
        let transport = &document.run.environment.transport;
        assert_eq!(transport, "tcp redacted, TLSv1.3 TLS_AES_256_GCM_SHA384");
    }
    let local = changed("tps", |run: &mut Run| {
        "unix socket /srv/secret/.s.PGSQL.5432".clone_into(&mut run.environment.transport);
    });
    let redacted = redacted_one(&local);
    assert_eq!(redacted.run.environment.transport, "unix socket redacted");
}

fn redacted_one(document: &Document) -> Document {
    redacted(std::slice::from_ref(document)).unwrap().remove(0)
}

#[test]
fn the_same_label_has_the_same_placeholder() {
    let labelled = |label: &str| changed("fill", |run: &mut Run| run.label = Some(label.to_owned()));
    let redacted = redacted(&[labelled("before"), labelled("after"), labelled("before")]).unwrap();
    let labels: Vec<&str> = redacted.iter().map(|document| document.run.label.as_deref().unwrap()).collect();
    assert_eq!(labels[0], labels[2]);
    assert_ne!(labels[0], labels[1]);
}

/// Classes, locks, waits and the queue of a migration are no secrets.
#[test]
fn a_redacted_migration_keeps_what_is_not_the_users() {
    let document = crate::document("ddl");
    let left = markdown(&redacted(std::slice::from_ref(&document)).unwrap());
    let whole = markdown(&[document]);
    for words in
        ["### ", "rewrite", "catalog only", "index build", "ACCESS EXCLUSIVE", "reads and writes", "files"]
    {
        assert_eq!(left.matches(words).count(), whole.matches(words).count(), "{words}: {left}");
    }
}

/// Names that pgrig gives are kept, also where the user has given the same name to something: figures and plots are
/// found by them.
#[test]
fn redaction_changes_no_figure() {
    let named = |name: &str| (changed(name, |run: &mut Run| run.label = None), "without a label");
    for (name, _) in DOCUMENTS {
        let labelled =
            |label: &'static str| (changed(name, |run: &mut Run| run.label = Some(label.to_owned())), label);
        let cases = [
            named(name),
            labelled("wal"),
            labelled("rows"),
            labelled("elapsed"),
            labelled("total"),
            labelled("time"),
            labelled("empty"),
        ];
        for (before, label) in cases {
            let after = redacted(std::slice::from_ref(&before)).unwrap().remove(0);
            let values = |run: &Run| -> Vec<_> {
                figures(run).into_iter().map(|(figure, value)| (figure.unit, value)).collect()
            };
            assert_eq!(values(&before.run), values(&after.run), "{name}, {label}");
            let judged = |run: &Run| -> Vec<_> {
                judged_figures(run, &[]).into_iter().map(|(figure, value)| (figure.name, value)).collect()
            };
            assert_eq!(judged(&before.run), judged(&after.run), "{name}, {label}");
            // The names of candidates and tables are the user's.
            let renamed = figures(&before.run)
                .into_iter()
                .zip(figures(&after.run))
                .filter(|(before, after)| before.0.name != after.0.name);
            assert!(before.run.verb == "micro" || renamed.count() == 0, "{name}, {label}");
            let plots = |document: &Document| svgs(std::slice::from_ref(document)).len();
            assert_eq!(plots(&before), plots(&after), "{name}, {label}");
            assert!(!markdown(&[after]).contains("quantity "), "{name}, {label}");
        }
    }
}

/// Axes that pgrig does not know remain the axes of the picture.
#[test]
fn a_redacted_matrix_keeps_its_axes() {
    let matrix = changed("matrix", |run: &mut Run| {
        run.request["matrix"]["axes"] = json!([
            { "axis": "durability", "values": ["normal", "async"] },
            { "axis": "app.tenant", "values": ["alice", "payroll 2"] }
        ]);
        let cells = [
            "normal app.tenant=alice",
            "normal app.tenant=payroll 2",
            "async app.tenant=alice",
            "async app.tenant=payroll 2",
        ];
        let cells = cells.map(|cell| format!("durability={cell}"));
        for (number, trial) in run.trials.iter_mut().enumerate() {
            trial.config.clone_from(&cells[number % 4]);
        }
        run.plan["cells"] = json!(cells);
    });
    let after = redacted(std::slice::from_ref(&matrix)).unwrap();
    let names = |documents: &[Document]| -> Vec<String> {
        svgs(documents).into_iter().map(|(name, _)| name).collect()
    };
    assert!(names(&after).iter().any(|name| name.contains("matrix")), "{:?}", names(&after));
    assert_eq!(names(&after), names(&[matrix]));
    let text = after[0].text.as_str();
    assert!(!text.contains("alice") && !text.contains("payroll") && text.contains("durability=async name "));
}
