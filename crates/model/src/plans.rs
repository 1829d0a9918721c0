//! Plans of queries on an original and on a copy.

use serde_json::Value;

/// A plan as far as statistics decide on it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryPlan {
    /// Nodes with their relations, indexes and kinds of join, from the top, each with its depth.
    pub shape: Vec<String>,
    /// Estimated rows of each node.
    pub rows: Vec<f64>,
}

/// Plans of one database: for each ANALYZE, those of all queries.
pub type Plans = Vec<Vec<QueryPlan>>;

/// Plans of a copy beside those of the original.
#[derive(Clone, Debug)]
pub struct PlansCompared {
    /// Number of queries.
    pub queries: usize,
    /// Queries and pairs of ANALYZEs with the same shape on both, and all.
    pub same: (u32, u32),
    /// The same for pairs of ANALYZEs of the original; none with one of them.
    pub itself: Option<(u32, u32)>,
    /// Factors between estimates of nodes where the shape is the same, in ascending order, at least 1.
    pub factors: Vec<f64>,
    /// Queries whose shape never is the same, by their place.
    pub different: Vec<usize>,
}

impl QueryPlan {
    /// Reads the answer of `EXPLAIN (FORMAT JSON)`; none if it is none.
    pub fn read(json: &Value) -> Option<Self> {
        let mut plan = Self { shape: Vec::new(), rows: Vec::new() };
        plan.add(json.get(0)?.get("Plan")?, 0);
        Some(plan)
    }

    fn add(&mut self, node: &Value, depth: usize) {
        const NAMED: [&str; 7] =
            ["Node Type", "Join Type", "Strategy", "Partial Mode", "Relation Name", "Alias", "Index Name"];
        let words: Vec<&str> = NAMED.iter().filter_map(|name| node.get(name)?.as_str()).collect();
        self.shape.push(format!("{depth} {}", words.join(" ")));
        self.rows.push(node.get("Plan Rows").and_then(Value::as_f64).unwrap_or(1.0));
        for child in node.get("Plans").and_then(Value::as_array).into_iter().flatten() {
            self.add(child, depth + 1);
        }
    }
}

impl PlansCompared {
    /// Compares the plans of the same queries.
    pub fn of(original: &Plans, copy: &Plans) -> Self {
        let queries = original.first().map_or(0, Vec::len);
        let (mut pairs, mut same, mut factors) = (0_u32, 0_u32, Vec::new());
        let mut ever = vec![false; queries];
        for (one, other) in original.iter().flat_map(|one| copy.iter().map(move |other| (one, other))) {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                pairs += 1;
                if one.shape == other.shape {
                    same += 1;
                    ever[at] = true;
                    let factor = |(one, other): (&f64, &f64)| {
                        let (one, other) = (one.max(1.0), other.max(1.0));
                        (one / other).max(other / one)
                    };
                    factors.extend(one.rows.iter().zip(&other.rows).map(factor));
                }
            }
        }
        factors.sort_by(f64::total_cmp);
        let different = (0..queries).filter(|&at| !ever[at]).collect();
        let itself = (original.len() > 1).then(|| own(original));
        Self { queries, same: (same, pairs), itself, factors, different }
    }

    /// A quantile of the factors, 1 if there are none.
    pub fn factor(&self, quantile: f64) -> f64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let at = (quantile * self.factors.len().saturating_sub(1) as f64).round() as usize;
        self.factors.get(at).copied().unwrap_or(1.0)
    }
}

/// Queries and pairs of ANALYZEs of one database with the same shape, and all.
fn own(plans: &Plans) -> (u32, u32) {
    let (mut pairs, mut same) = (0_u32, 0_u32);
    for (at, one) in plans.iter().enumerate() {
        for other in &plans[at + 1..] {
            for (one, other) in one.iter().zip(other) {
                pairs += 1;
                same += u32::from(one.shape == other.shape);
            }
        }
    }
    (same, pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(node: &str, rows: u32) -> QueryPlan {
        let scan = json!({"Node Type": node, "Relation Name": "t", "Alias": "t", "Plan Rows": rows});
        QueryPlan::read(&json!([{"Plan": {"Node Type": "Limit", "Plan Rows": 10, "Plans": [scan]}}])).unwrap()
    }

    #[test]
    fn shapes_are_compared_over_all_pairs_of_analyzes() {
        let original =
            vec![vec![plan("Seq Scan", 100)], vec![plan("Seq Scan", 110)], vec![plan("Index Scan", 9)]];
        let copy = vec![vec![plan("Seq Scan", 50)]];
        let found = PlansCompared::of(&original, &copy);
        assert_eq!((found.same, found.itself), ((2, 3), Some((1, 3))));
        assert_eq!(found.factors, [1.0, 1.0, 2.0, 2.2]);
        assert!(found.different.is_empty());
        let never = PlansCompared::of(&original[..1].to_vec(), &vec![vec![plan("Index Scan", 1)]]);
        assert_eq!((never.different, never.itself), (vec![0], None));
    }
}
