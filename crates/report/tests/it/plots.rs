//! Plotted coordinates, read back and looked for in the documents.

use std::collections::BTreeMap;

use report::{Document, svgs};

use crate::document;
use crate::page::{absolute, value};

/// The drawing with this name.
fn plot(documents: &[Document], name: &str) -> String {
    let found = svgs(documents);
    let names: Vec<&String> = found.iter().map(|(name, _)| name).collect();
    found
        .iter()
        .find(|(known, _)| known == name)
        .unwrap_or_else(|| panic!("no {name} in {names:?}"))
        .1
        .clone()
}

/// The value of an attribute of the first element in the text.
fn attribute<'a>(text: &'a str, name: &str) -> &'a str {
    let start = text.find(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name}")) + name.len() + 3;
    text[start..].split('"').next().unwrap()
}

#[test]
fn each_layer_is_as_high_as_the_sessions_that_waited() {
    let run = document("waits");
    let svg = plot(std::slice::from_ref(&run), "tps-waits-over-time.svg");
    let (x, y) = (attribute(&svg, "data-x"), attribute(&svg, "data-y"));
    let series: BTreeMap<&str, &Vec<(f64, f64)>> =
        run.run.trials[0].series.iter().map(|series| (series.name.as_str(), &series.points)).collect();
    let looks = series["wait-looks"];
    let mut whole = vec![0.0; looks.len()];
    // The upmost layer is drawn first, down to zero.
    let mut layers: Vec<(String, Vec<f64>)> = Vec::new();
    for part in svg.split("data-layer=\"").skip(1) {
        let name = part.split('"').next().unwrap().to_owned();
        // A part between two gaps begins and ends at zero.
        let edge: Vec<(f64, f64)> = attribute(part, "d")
            .split('M')
            .filter(|part| !part.is_empty())
            .flat_map(|part| absolute(&format!("M{}", part.split('V').next().unwrap())).split_off(1))
            .collect();
        assert_eq!(edge.len(), looks.len(), "{name}");
        for (point, look) in edge.iter().zip(looks) {
            assert!((value(x, point.0) - look.0).abs() < 0.05, "{name}: {point:?} {look:?}");
        }
        layers.push((name, edge.iter().map(|point| value(y, point.1)).collect()));
    }
    layers.push((String::new(), whole.clone()));
    let mut named = 0.0;
    for (layer, below) in layers.iter().zip(&layers[1..]) {
        let found: Vec<f64> = layer.1.iter().zip(&below.1).map(|(upper, lower)| upper - lower).collect();
        let name = if layer.0 == "waiting for the client" { "Client:ClientRead" } else { &layer.0 };
        for (at, (end, number)) in looks.iter().enumerate() {
            whole[at] += found[at];
            if name == "others" {
                continue;
            }
            let seen = series[format!("wait-{name}").as_str()]
                .iter()
                .find(|point| point.0.to_bits() == end.to_bits())
                .map_or(0.0, |point| point.1);
            named += seen;
            // A pixel is rounded to a tenth, two of them to two.
            assert!(
                (found[at] - seen / number).abs() < 0.01,
                "{name} at {end}: {} of {seen}/{number}",
                found[at]
            );
        }
    }
    assert!(named > 0.0 && layers.len() > 5);
    // All layers together are all sessions that were seen.
    for (at, (end, number)) in looks.iter().enumerate() {
        let waits = series.iter().filter(|(name, _)| name.starts_with("wait-") && **name != "wait-looks");
        let seen: f64 = waits
            .flat_map(|(_, points)| points.iter())
            .filter(|point| point.0.to_bits() == end.to_bits())
            .map(|point| point.1)
            .sum();
        assert!((whole[at] - seen / number).abs() < 0.02, "{} of {seen}/{number} at {end}", whole[at]);
    }
}

#[test]
fn a_document_without_waits_over_time_has_the_other_plots() {
    let names: Vec<String> = svgs(&[document("tps")]).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"tps-latency.svg".to_owned()), "{names:?}");
    assert!(!names.contains(&"tps-waits-over-time.svg".to_owned()), "{names:?}");
}
