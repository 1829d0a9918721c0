//! The arms that each round times: the candidates, the empty loop or statement, and the first candidate again.

use measure::paired::Arm;

use crate::candidate::Body;
use crate::request::Request;

/// An arm that is timed.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) arm: Arm,
    /// Its name in documents and tables.
    pub(crate) name: String,
    pub(crate) body: Body,
}

/// Name of the arm without a candidate.
pub const EMPTY: &str = "empty";
/// Name of the arm that repeats the first candidate.
pub(crate) const REPEAT: &str = "repeat";

/// The arms in the order of [`measure::paired::Rounds::arms`], without candidates that are left
/// out.
pub(crate) fn arms(request: &Request, left_out: &[usize]) -> Vec<Timed> {
    let names = request.names();
    let candidates: Vec<(String, &Body)> = names
        .into_iter()
        .zip(&request.candidates)
        .enumerate()
        .filter(|(number, _)| !left_out.contains(number))
        .map(|(_, (name, candidate))| (name, &candidate.body))
        .collect();
    let first = candidates.first().map(|(_, body)| (*body).clone());
    let empty = first.as_ref().and_then(|first| empty(request, first));
    let candidates = candidates.into_iter().enumerate().map(|(number, (name, body))| Timed {
        arm: Arm::Candidate(number),
        name,
        body: body.clone(),
    });
    let empty = empty.map(|body| Timed { arm: Arm::Empty, name: EMPTY.to_owned(), body });
    let repeat = first.map(|body| Timed { arm: Arm::Repeat, name: REPEAT.to_owned(), body });
    candidates.chain(empty).chain(repeat).collect()
}

fn empty(request: &Request, first: &Body) -> Option<Body> {
    match first {
        // The column i exists already, so counting it evaluates no expression.
        Body::Expression(_) => Some(Body::Expression("i".to_owned())),
        _ => request.empty.clone().map(Body::Statement),
    }
}
