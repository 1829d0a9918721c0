//! Contrast of all colours, by WCAG 2.2's formula, from the styles themselves.

use std::collections::BTreeMap;

const PLOT: &str = include_str!("../../src/page/plot.css");
const PAGE: &str = include_str!("../../src/page/page.css");
/// Least contrast of text, and of lines and areas that carry meaning.
const TEXT: f64 = 4.5;
const GRAPHICS: f64 = 3.0;

/// The variables of each `:root`: light, dark, print.
fn themes() -> Vec<BTreeMap<String, String>> {
    let css = format!("{PLOT}{PAGE}");
    let of = |block: &str| {
        let inner = block.split('}').next().unwrap();
        let pairs = inner.split(';').filter_map(|pair| pair.split_once(':'));
        pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
    };
    css.split(":root{").skip(1).map(of).collect()
}

/// Relative luminance of `#rgb` or `#rrggbb`.
fn luminance(colour: &str) -> f64 {
    let digits = colour.trim_start_matches('#');
    let digits: String =
        if digits.len() == 3 { digits.chars().flat_map(|c| [c, c]).collect() } else { digits.to_owned() };
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn text_and_lines_stand_out_in_light_dark_and_print() {
    let themes = themes();
    assert_eq!(themes.len(), 3, "light, dark, print");
    for theme in &themes {
        for name in ["--ink", "--soft"] {
            let found = contrast(&theme[name], &theme["--paper"]);
            assert!(found >= TEXT, "{name} {found:.2} of {theme:?}");
        }
        for name in ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--axis", "--ink"] {
            let found = contrast(&theme[name], &theme["--paper"]);
            assert!(found >= GRAPHICS, "{name} {found:.2} of {theme:?}");
        }
    }
    assert_eq!(themes[0], themes[2], "paper is light");
}

#[test]
fn numbers_are_read_on_each_shade_of_a_heat_map() {
    // The rules: a colour from h0 to h6, text on the lower ones and on the higher ones.
    assert!(PLOT.contains("svg.plot :is(.h0,.h1,.h2,.h3) text{fill:var(--low)}"));
    assert!(PLOT.contains("svg.plot :is(.h4,.h5,.h6) text{fill:var(--high)}"));
    for theme in themes() {
        let mut before = None;
        for number in 0..7 {
            assert!(PLOT.contains(&format!(".h{number}>:is(rect,path){{fill:var(--h{number})}}")));
            let colour = &theme[&format!("--h{number}")];
            let found = contrast(colour, &theme[if number < 4 { "--low" } else { "--high" }]);
            assert!(found >= TEXT, "h{number} {found:.2} of {theme:?}");
            // The more, the further from the paper.
            let from_paper = contrast(colour, &theme["--paper"]);
            assert!(before.is_none_or(|before| before < from_paper), "h{number} of {theme:?}");
            before = Some(from_paper);
        }
    }
    // Beyond a limit, in all themes alike.
    for (class, text) in
        [("within-limit", "#10151b"), ("beyond0", "#10151b"), ("beyond1", "#10151b"), ("beyond2", "#fff")]
    {
        let rule = PLOT.split(&format!(".{class}>:is(rect,path){{fill:")).nth(1).unwrap();
        let found = contrast(rule.split('}').next().unwrap(), text);
        assert!(found >= TEXT, "{class} {found:.2}");
    }
}

#[test]
fn the_line_of_peaks_stands_out_from_what_it_touches() {
    let variable = |rule: &str, property: &str| {
        let rule = PLOT.split(rule).nth(1).unwrap().split('}').next().unwrap();
        let value = rule.split(&format!("{property}:var(")).nth(1).unwrap();
        value.split(')').next().unwrap().to_owned()
    };
    let line = variable(".line.peak{", "stroke");
    // It is never below the layers, whose edges have this colour: so it touches them and the paper only.
    let edge = variable(".layer{", "stroke");
    for theme in themes() {
        for ground in [edge.as_str(), "--paper"] {
            let found = contrast(&theme[&line], &theme[ground]);
            assert!(found >= GRAPHICS, "{line} on {ground}: {found:.2} of {theme:?}");
        }
    }
}

#[test]
fn lines_differ_by_their_dashes_too() {
    let dash = |number: usize| {
        let rule = PLOT.split(&format!(".s{number}{{")).nth(1).unwrap().split('}').next().unwrap();
        rule.split("stroke-dasharray:").nth(1).unwrap_or("none").to_owned()
    };
    let dashes: std::collections::BTreeSet<String> = (0..8).map(dash).collect();
    assert_eq!(dashes.len(), 8);
}
