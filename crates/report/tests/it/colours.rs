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
    let shade = |number: usize| {
        PLOT.split(&format!(".h{number} rect{{fill:")).nth(1).map(|rest| rest.split('}').next().unwrap())
    };
    let shades: Vec<&str> = (0..).map_while(shade).collect();
    assert_eq!(shades.len(), 7);
    for (number, colour) in shades.iter().enumerate() {
        let text = if number < 4 { "#10151b" } else { "#fff" };
        let found = contrast(colour, text);
        assert!(found >= TEXT, "h{number} {found:.2}");
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
