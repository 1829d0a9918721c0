//! `pgrig report`, and `--report` of the verbs that measure.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::{Need, require};

use crate::support::{Ran, Rig};

/// Prints the run documents of a page: the witness that they are in it byte for byte.
const EXTRACT: &str = r#"
import base64, lzma, sys
from report import BLOCK, unpacked
page = open(sys.argv[1], encoding="utf-8").read()
for data in BLOCK.findall(page):
    sys.stdout.buffer.write(unpacked(lzma.decompress(base64.b64decode(data)).decode()).encode())
"#;

fn extracted(page: &Path) -> Vec<u8> {
    let bench = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench");
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", bench).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = python.args(["-c", EXTRACT]).arg(page).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

fn measure(rig: &Rig, label: &str, more: &[&str]) -> Ran {
    let mut command = rig.command("micro i md5(i::text) --budget 1s -q --label");
    Ran::from(command.arg(label).args(more).output().unwrap())
}

#[test]
fn a_page_shows_runs_and_holds_them_whole() {
    if !require(Need::Pytest) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("");
    let hostile = "</script><script>alert(1)</script>";
    let first = rig.home.path().join("first.html");
    for (label, more) in [("old", &["--report", first.to_str().unwrap()][..]), (hostile, &[])] {
        let ran = measure(&rig, label, more);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    let nowhere = measure(&rig, "old", &["--report", "/nowhere/report.html"]);
    assert_eq!(nowhere.code, Some(2), "{nowhere:#?}");
    drop(server);
    rig.done("server stop");

    let saved = |number: usize| {
        let runs = fs::read_dir(rig.home.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
        let mut runs: Vec<_> =
            runs.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
        runs.sort();
        assert_eq!(runs.len(), 2, "a run with a report that cannot be written was begun");
        fs::read(&runs[number]).unwrap()
    };
    assert_eq!(extracted(&first), saved(0), "--report");

    let directory = testkit::directory();
    let report = |arguments: &str| {
        Ran::from(rig.command(&format!("report {arguments}")).current_dir(directory.path()).output().unwrap())
    };
    let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(report("").code, Some(0));
    assert_eq!(extracted(&directory.path().join("report.html")), saved(1), "the latest run");
    let page = text("report.html");
    assert!(page.contains("<svg") && page.contains("Content-Security-Policy"), "{page}");
    let again = report("");
    assert!(again.code == Some(2) && again.stderr.contains("-o report.html"), "{again:#?}");

    assert_eq!(report("latest~1 latest -o both.html").code, Some(0));
    let page = text("both.html");
    assert!(!page.contains("<script>alert"), "a label is text");
    assert_eq!(extracted(&directory.path().join("both.html")), [saved(0), saved(1)].concat());
    for format in ["csv", "md"] {
        let (of_runs, of_page) = (
            report(&format!("latest~1 latest --format {format}")),
            report(&format!("both.html --format {format}")),
        );
        assert!(of_runs.code == Some(0) && of_runs.stdout.lines().count() > 10, "{of_runs:#?}");
        assert_eq!(of_runs.stdout, of_page.stdout, "a page stands for its runs");
        // In Markdown a block of code shows it as text.
        let prose: String = of_runs.stdout.split("```").step_by(2).collect();
        assert!(format == "csv" || !prose.contains("<script>"), "{of_runs:#?}");
    }
    assert_eq!(report("latest -o named.md").code, Some(0));
    assert_eq!(text("named.md").trim_end(), report("latest --format md").stdout.trim_end());
    for name in ["named.svg", "named.pdf"] {
        let refused = report(&format!("latest -o {name}"));
        assert!(refused.code == Some(2) && refused.stderr.contains("--format"), "{refused:#?}");
    }
    assert_eq!(measure(&rig, "old", &["--report", "report.csv"]).code, Some(2), "a page is HTML");
    let refused = report("latest --format svg -o named.md");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("-o named.md is a file: give"),
        "{refused:#?}"
    );
    assert_eq!(report("latest --format svg -o plots").code, Some(0));
    let plots: Vec<_> = fs::read_dir(directory.path().join("plots")).unwrap().collect();
    assert!(plots.len() >= 2, "{plots:?}");

    assert_eq!(report("latest~1 --redact -o public.html").code, Some(0));
    let home = rig.home.path().to_str().unwrap().to_owned();
    let public = String::from_utf8(extracted(&directory.path().join("public.html"))).unwrap();
    let shown = text("public.html");
    for secret in [home.as_str(), "md5(", "\"old\"", ">old<"] {
        assert!(!public.contains(secret) && !shown.contains(secret), "{secret}");
    }

    // Without its last line end, a document returns without it; with blanks around it, with them.
    let whole = String::from_utf8(saved(0)).unwrap();
    for (name, document) in [("cut-end", whole.trim_end().to_owned()), ("blanks", format!("\n {whole}\n\n"))]
    {
        fs::write(directory.path().join(format!("{name}.json")), &document).unwrap();
        assert_eq!(report(&format!("{name}.json -o {name}.html")).code, Some(0));
        let page = directory.path().join(format!("{name}.html"));
        assert_eq!(String::from_utf8(extracted(&page)).unwrap(), document, "{name}");
        // It is the run that is saved already.
        let imported = rig.run(&format!("runs import {}", page.display()));
        assert!(imported.code == Some(0) && imported.stdout.contains("saved already"), "{imported:#?}");
    }

    let cut = &page[..page.find("xz+base64").unwrap() + 200];
    fs::write(directory.path().join("cut.html"), cut).unwrap();
    for (words, part) in
        [("cut.html", "is truncated"), ("nothing", "\"nothing\" names no run"), ("latest --format svg", "-o")]
    {
        let refused = report(words);
        assert!(refused.code == Some(2) && refused.stderr.contains(part), "{words}: {refused:#?}");
    }
}
