//! Parts that all drawings use: the frame, text, axes, the legend.

use std::fmt::Write;

use super::scale::{Scale, Spread};
use super::{Axis, Plot};
use crate::escape::{html, shortened};

/// Width of a drawing in pixels.
pub(crate) type Width = f64;
/// Width on a screen, and on paper.
pub(crate) const WIDE: Width = 720.0;
/// Width on a telephone.
pub(crate) const NARROW: Width = 328.0;
/// Colours and fonts of drawings, as CSS.
pub(crate) const STYLE: &str = include_str!("../page/plot.css");

/// Height of a line of the legend.
const LEGEND_LINE: f64 = 20.0;
/// Number of styles (colour and dash) for series.
pub(super) const STYLES: usize = 8;

/// Whether a drawing is for a telephone.
pub(super) fn is_narrow(width: Width) -> bool {
    width < 500.0
}

/// Pixels of a text. The font is not known: these are the widths of a wide one.
pub(super) fn text_width(text: &str) -> f64 {
    let character = |c: char| match c {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'i' | 'j' | 'l' => 4.0,
        'f' | 'r' | 't' | 'I' | '(' | ')' | '[' | ']' | '-' | '/' => 5.0,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 11.6,
        'A'..='Z' | '=' | '+' | '<' | '>' | '_' | '~' | '…' | '\u{2212}' => 9.0,
        '\0'..'\u{1100}' => 7.5,
        _ => 14.0,
    };
    text.chars().map(character).sum()
}

/// The text, shortened to so many pixels.
pub(super) fn fitted(text: &str, pixels: f64) -> String {
    let mut shown = shortened(text, 400);
    while text_width(&shown) > pixels && shown.chars().count() > 2 {
        shown = shortened(&shown, shown.chars().count() - 1);
    }
    shown
}

/// The text, shortened to so many pixels in its middle: names differ at their ends.
pub(super) fn middle_cut(text: &str, pixels: f64) -> String {
    let shown = shortened(text, 400);
    if text_width(&shown) <= pixels {
        return shown;
    }
    let all: Vec<char> = shown.chars().collect();
    let cut = |kept: usize| {
        let (first, last) = (kept / 3, kept - kept / 3);
        all[..first].iter().chain(&['…']).chain(&all[all.len() - last..]).collect::<String>()
    };
    (1..all.len()).rev().map(cut).find(|shown| text_width(shown) <= pixels).unwrap_or_else(|| cut(1))
}

/// The whole drawing. The script of a page reads the `attributes` of its element.
pub(super) fn frame(plot: &Plot, width: Width, height: f64, attributes: &str, content: &str) -> String {
    let kind = if is_narrow(width) { "narrow" } else { "wide" };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot {kind}\" viewBox=\"0 0 {width} {height:.0}\" \
         role=\"img\" aria-label=\"{}. {}\"{attributes}>\n{content}</svg>\n",
        html(&plot.title),
        html(&plot.caption)
    )
}

/// A text; `class` says where its anchor is: `start`, `middle`, `end`.
pub(super) fn text(x: f64, y: f64, class: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>\n", html(text))
}

/// A line of the grid or an axis.
pub(super) fn rule(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n",
        from.0, from.1, to.0, to.1
    )
}

/// Many thin lines as one path.
pub(super) fn minor(class: &str, lines: impl Iterator<Item = String>) -> String {
    let path: String = lines.collect();
    if path.is_empty() { path } else { format!("<path class=\"{class}\" d=\"{path}\"/>\n") }
}

/// The label of an axis, with its spread if that is not even; shortened to so many pixels.
pub(super) fn titled(axis: &Axis, pixels: f64) -> String {
    let (long, short) = match axis.spread {
        Spread::Linear => ("", ""),
        Spread::Log => (" (logarithmic)", " (log)"),
        Spread::Nines => (", stretched towards 100 %", ", stretched"),
    };
    let whole = format!("{}{long}", axis.label);
    if text_width(&whole) <= pixels {
        return whole;
    }
    format!("{}{short}", fitted(&axis.label, pixels - text_width(short)))
}

/// A horizontal axis below `top` to `bottom`: grid, ticks and label. The space of `below` is between it and its names.
pub(super) fn x_axis(
    axis: &Axis,
    scale: &Scale,
    (top, bottom): (f64, f64),
    below: f64,
    width: Width,
) -> String {
    let mut drawn = String::new();
    let names = bottom + below;
    let within = width;
    if scale.spread == Spread::Log {
        let lines =
            scale.between().into_iter().map(|value| format!("M{:.1} {top:.1}V{names:.1}", scale.at(value)));
        drawn += &minor("grid minor x", lines);
    }
    let width = scale.pixels.1 - scale.pixels.0;
    let mut end = f64::NEG_INFINITY;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundred pixels")]
    let most = (width / 70.0).max(2.0) as usize;
    for tick in scale.ticks(most, axis.quantity.is_elapsed()) {
        let x = scale.at(tick);
        drawn += &rule("grid", (x, top), (x, names));
        let name = axis.quantity.tick(tick);
        let half = text_width(&name) / 2.0;
        // Within the drawing, and not over the one before.
        let anchored = (x.max(half + 2.0) + half).min(within - 2.0) - half;
        if anchored - half > end + 4.0 {
            drawn += &text(anchored, names + 16.0, "middle", &name);
            end = anchored + half;
        }
    }
    drawn += &rule("axis", (scale.pixels.0, bottom), (scale.pixels.1, bottom));
    // Its start stays within the drawing, and so does its end.
    let label = titled(axis, within - 12.0);
    let end = scale.pixels.1.max(text_width(&label) + 8.0).min(within - 2.0);
    drawn + &text(end, names + 34.0, "end soft", &label)
}

/// Attributes that describe the scale to the script of a page: spread, values, pixels, quantity.
pub(super) fn described(axis: &Axis, scale: &Scale) -> String {
    format!(
        "{} {} {} {:.1} {:.1} {}",
        axis.spread.name(),
        scale.values.0,
        scale.values.1,
        scale.pixels.0,
        scale.pixels.1,
        axis.quantity.name()
    )
}

/// The legend: samples with names in as many lines as necessary; and its height in pixels.
pub(super) fn legend(entries: &[(String, String)], width: Width) -> (String, f64) {
    let mut drawn = String::new();
    let (mut x, mut y) = (8.0, 12.0);
    for (sample, name) in entries {
        let name = fitted(name, width - 60.0);
        let needed = 34.0 + text_width(&name) + 14.0;
        if x > 8.0 && x + needed > width {
            (x, y) = (8.0, y + LEGEND_LINE);
        }
        let _ = write!(
            drawn,
            "<g transform=\"translate({x:.1} {y:.1})\">{sample}</g>\n{}",
            text(x + 32.0, y + 4.0, "", &name)
        );
        x += needed;
    }
    if entries.is_empty() { (drawn, 0.0) } else { (drawn, y + LEGEND_LINE / 2.0) }
}
