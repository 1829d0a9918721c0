//! Run documents as pages that people look at: documents in, text out.
//!
//! Start reading at [`html`] and `sections`. This crate has no I/O and no clock, and knows no server. It must not know how a
//! run was found or where a report goes.
//!
//! ```text
//! Document ─▶ sections (a module for each verb) ─▶ plot (data) ─▶ svg, table
//!    │                                                 └─▶ page (HTML), markdown
//!    └─▶ redact, embed, csv
//! ```
//!
//! - `document` reads run documents; `redact` removes names, paths and SQL from them.
//! - `sections` turns the runs of a verb into a result in one sentence, plots and tables.
//! - `plot` describes plots as data, draws them as SVG and tells their numbers as tables.
//! - `page` is the HTML around them: styles with light, dark and print colours, and a little script for values under the
//!   pointer, zoom, and the hiding of lines (`tests/browser/run` opens pages in Chromium). `markdown` and `csv` are the other formats.
//! - [`embed`] keeps whole run documents in a page, so that a report is accepted where a run is.

mod csv;
mod document;
pub mod embed;
mod escape;
mod markdown;
mod page;
mod plot;
mod quantity;
mod redact;
mod sections;

pub use document::Document;
pub use redact::redacted;

/// One HTML page with all plots, their tables, and the documents themselves. It needs no network.
pub fn html(documents: &[Document]) -> String {
    page::page(documents)
}

/// The report as Markdown, without plots.
pub fn markdown(documents: &[Document]) -> String {
    markdown::markdown(documents)
}

/// All numbers of the documents as CSV, a row for each.
pub fn csv(documents: &[Document]) -> String {
    csv::csv(documents)
}

/// Each plot as an SVG of its own, with the name of its file.
pub fn svgs(documents: &[Document]) -> Vec<(String, String)> {
    let mut drawn: Vec<(String, String)> = Vec::new();
    for part in page::parts(documents) {
        for plot in part.shown.sections.iter().flat_map(|section| &section.plots) {
            let plain: String =
                plot.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
            let name = format!("{}-{plain}", part.verb.replace(" --", "-"));
            let others = drawn.iter().filter(|(other, _)| other.starts_with(&name)).count();
            let name = if others == 0 { format!("{name}.svg") } else { format!("{name}-{}.svg", others + 1) };
            let style = format!(">\n<style>\n{}svg.plot{{background:var(--paper)}}\n</style>\n", plot::STYLE);
            drawn.push((name, plot.svg(plot::WIDE).replacen(">\n", &style, 1)));
        }
    }
    drawn
}
