//! How faithful a copy is.

use measure::Run;

use super::{Section, Shown};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Plot};
use crate::quantity::Quantity;

pub(super) fn shown(run: &Run) -> Shown {
    let trial = run.trials.first();
    let share = |all: &str, part: &str| {
        let trial = trial?;
        let all = trial.value(all).filter(|all| *all > 0.0)?;
        Some(trial.value(part)? / all)
    };
    let rows: Vec<(String, Vec<Option<f64>>)> = [
        (
            "statistics within tolerance",
            share("fields", "fields-within"),
            share("own-fields", "own-fields-within"),
        ),
        ("plans of the same shape", share("plans", "plans-same"), share("own-plans", "own-plans-same")),
    ]
    .into_iter()
    .filter(|(_, copy, _)| copy.is_some())
    .map(|(name, copy, own)| (name.to_owned(), vec![copy, own]))
    .collect();
    let Some(first) = rows.first() else {
        return Shown { result: "Nothing was compared".to_owned(), sections: Vec::new() };
    };
    let said = |(name, values): &(String, Vec<Option<f64>>)| {
        format!("{}: {}", name, Quantity::Share.text(values[0].unwrap_or(0.0)))
    };
    let result =
        format!("The copy beside the original: {}", rows.iter().map(said).collect::<Vec<_>>().join("; "));
    let has_own = rows.iter().any(|row| row.1[1].is_some());
    let groups = if has_own {
        vec!["copy".to_owned(), "the original with itself".to_owned()]
    } else {
        vec!["copy".to_owned()]
    };
    let caption = format!("{}.", said(first));
    let rows = rows.into_iter().map(|(name, values)| (name, values[..groups.len()].to_vec())).collect();
    let axis = Axis::new("share", Quantity::Share, Spread::Linear);
    let plot = Plot::new("fidelity", "Fidelity", caption, Chart::Bars(Bars { axis, groups, rows }));
    Shown { result, sections: vec![Section::new("Fidelity", vec![plot])] }
}
