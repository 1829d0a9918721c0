//! Scratch.
use std::fs;
fn main() {
    let mut args = std::env::args().skip(1);
    let mode = args.next().unwrap();
    let out = args.next().unwrap();
    let documents: Vec<_> =
        args.map(|f| report::Document::read(fs::read_to_string(f).unwrap()).unwrap()).collect();
    let documents = if mode.ends_with('r') { report::redacted(&documents).unwrap() } else { documents };
    let text = match mode.trim_end_matches('r') {
        "html" => report::html(&documents),
        "md" => report::markdown(&documents),
        "csv" => report::csv(&documents),
        _ => {
            for (name, svg) in report::svgs(&documents) {
                fs::write(format!("{out}/{name}"), svg).unwrap();
            }
            return;
        }
    };
    fs::write(out, text).unwrap();
}
