//! Compares plans of queries on an original and on a copy.

use serde_json::Value;

/// The parts of a plan that statistics determine.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryPlan {
    /// Nodes with their relations, indexes and kinds of join, from the top, each with its depth.
    pub shape: Vec<String>,
    /// Estimated rows of each node.
    pub rows: Vec<f64>,
    /// Whether each node is a join, or is above one.
    pub is_joined: Vec<bool>,
    /// Rows that each node returned, over all its loops; none if the query was not run.
    pub actual: Vec<Option<f64>>,
    /// For each node, how far the estimate is from the rows that it returned in a loop (see
    /// [`QErrors`]); none if it did not run, or a LIMIT above it may have stopped it.
    errors: Vec<Option<f64>>,
}

/// Factors between estimated and returned rows of each operator, at least 1, in ascending order. Both
/// numbers are those of one loop, and count as 1 if they are less (as the planner's own estimates do).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QErrors {
    /// Of operators with no join below them.
    pub scans: Vec<f64>,
    /// Of joins and the operators above them.
    pub joins: Vec<f64>,
}

/// Plans of one database: for each ANALYZE, those of all queries.
pub type Plans = Vec<Vec<QueryPlan>>;

/// Plans of a copy beside those of the original.
#[derive(Clone, Debug)]
pub struct PlansCompared {
    /// Number of queries.
    pub queries: usize,
    /// Number of pairs (a query with an ANALYZE of each database) whose plans have the same shape,
    /// and of all pairs.
    pub same: (u32, u32),
    /// Ends of the 95 % interval of the share of pairs with the same shape: between which it lies if other queries of the same kind
    /// are drawn.
    pub interval: (f64, f64),
    /// The same for pairs of ANALYZEs of the original; none if there is only one.
    pub itself: Option<(u32, u32)>,
    /// Ratios between estimates of the nodes of plans with the same shape, in ascending order; at
    /// least 1.
    pub factors: Vec<f64>,
    /// Indexes of the queries whose plans never have the same shape.
    pub different: Vec<usize>,
    /// Ratios between the rows that nodes of plans with the same shape returned, in ascending
    /// order: of scans, and of joins and the nodes above them.
    pub actual: (Vec<f64>, Vec<f64>),
    /// The planner's errors on the original and on the copy, whatever the shapes of plans are.
    pub errors: [QErrors; 2],
}

impl QueryPlan {
    /// Reads the result of `EXPLAIN (FORMAT JSON)`; none if it is not a plan.
    pub fn read(json: &Value) -> Option<Self> {
        let mut plan = Self {
            shape: Vec::new(),
            rows: Vec::new(),
            is_joined: Vec::new(),
            actual: Vec::new(),
            errors: Vec::new(),
        };
        plan.add(json.get(0)?.get("Plan")?, 0, false);
        Some(plan)
    }

    /// Adds a node with all nodes below it. Returns whether there is a join among them. A node that may
    /// be stopped has returned fewer rows than the planner has estimated for all of them.
    fn add(&mut self, node: &Value, depth: usize, may_be_stopped: bool) -> bool {
        const NAMED: [&str; 7] =
            ["Node Type", "Join Type", "Strategy", "Partial Mode", "Relation Name", "Alias", "Index Name"];
        let words: Vec<&str> = NAMED.iter().filter_map(|name| node.get(name)?.as_str()).collect();
        self.shape.push(format!("{depth} {}", words.join(" ")));
        let number = |name: &str| node.get(name).and_then(Value::as_f64);
        self.rows.push(number("Plan Rows").unwrap_or(1.0));
        let loops = number("Actual Loops").unwrap_or(1.0);
        let returned = number("Actual Rows");
        self.actual.push(returned.map(|rows| rows * loops));
        let estimate = number("Plan Rows").filter(|_| loops > 0.0 && !may_be_stopped);
        self.errors.push(estimate.zip(returned).map(|(estimate, rows)| factor(estimate, rows)));
        let at = self.is_joined.len();
        self.is_joined.push(false);
        let mut is_joined = node.get("Join Type").is_some();
        let may_be_stopped = may_be_stopped || node["Node Type"] == "Limit";
        for child in node.get("Plans").and_then(Value::as_array).into_iter().flatten() {
            is_joined |= self.add(child, depth + 1, may_be_stopped);
        }
        self.is_joined[at] = is_joined;
        is_joined
    }
}

impl PlansCompared {
    /// Compares the plans of the same queries.
    pub fn of(original: &Plans, copy: &Plans) -> Self {
        let queries = original.first().map_or(0, Vec::len);
        let (mut pairs, mut same, mut factors) = (0_u32, 0_u32, Vec::new());
        let mut of_query = vec![0_u32; queries];
        let mut actual = (Vec::new(), Vec::new());
        for (one, other) in original.iter().flat_map(|one| copy.iter().map(move |other| (one, other))) {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                pairs += 1;
                if one.shape == other.shape {
                    same += 1;
                    of_query[at] += 1;
                    factors.extend(one.rows.iter().zip(&other.rows).map(|(one, other)| factor(*one, *other)));
                    for ((ours, theirs), is_joined) in
                        one.actual.iter().zip(&other.actual).zip(&one.is_joined)
                    {
                        if let (Some(ours), Some(theirs)) = (ours, theirs) {
                            let all = if *is_joined { &mut actual.1 } else { &mut actual.0 };
                            all.push(factor(*ours, *theirs));
                        }
                    }
                }
            }
        }
        factors.sort_by(f64::total_cmp);
        actual.0.sort_by(f64::total_cmp);
        actual.1.sort_by(f64::total_cmp);
        let different = (0..queries).filter(|&at| of_query[at] == 0).collect();
        let interval = interval(&of_query, pairs / u32::try_from(queries.max(1)).unwrap_or(u32::MAX));
        let itself = (original.len() > 1).then(|| own(original));
        let errors = [original, copy].map(QErrors::of);
        Self { queries, same: (same, pairs), interval, itself, factors, different, actual, errors }
    }

    /// A quantile of the factors between estimates, 1 if there are none.
    pub fn factor(&self, at: f64) -> f64 {
        quantile(&self.factors, at).unwrap_or(1.0)
    }
}

/// Ends of the 95 % interval of the mean share, by a bootstrap over queries (Efron): plans of one query are not independent.
fn interval(of_query: &[u32], pairs: u32) -> (f64, f64) {
    const DRAWN: usize = 2_000;
    if of_query.is_empty() || pairs == 0 {
        return (0.0, 1.0);
    }
    let mut rng = fastrand::Rng::with_seed(0);
    let all = of_query.len() as f64 * f64::from(pairs);
    let mean = |_| {
        let same: u32 = of_query.iter().map(|_| of_query[rng.usize(..of_query.len())]).sum();
        f64::from(same) / all
    };
    let mut means: Vec<f64> = (0..DRAWN).map(mean).collect();
    means.sort_by(f64::total_cmp);
    (means[DRAWN / 40], means[DRAWN - 1 - DRAWN / 40])
}

impl QErrors {
    fn of(plans: &Plans) -> Self {
        let mut all = Self::default();
        for plan in plans.iter().flatten() {
            for (error, is_joined) in plan.errors.iter().zip(&plan.is_joined) {
                let of_kind = if *is_joined { &mut all.joins } else { &mut all.scans };
                of_kind.extend(*error);
            }
        }
        all.scans.sort_by(f64::total_cmp);
        all.joins.sort_by(f64::total_cmp);
        all
    }
}

/// The factor between two numbers of rows, at least 1.
fn factor(one: f64, other: f64) -> f64 {
    let (one, other) = (one.max(1.0), other.max(1.0));
    (one / other).max(other / one)
}

/// A quantile of numbers in ascending order; none if there are none.
pub fn quantile(ascending: &[f64], at: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let at = (at * ascending.len().saturating_sub(1) as f64).round() as usize;
    ascending.get(at).copied()
}

/// Number of pairs of ANALYZEs of one database whose plans of a query have the same shape, and of
/// all pairs.
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
    fn rows_of_scans_and_joins_are_told_apart() {
        let plan = |scanned: u32, joined: u32| {
            let scan = json!({"Node Type": "Seq Scan", "Relation Name": "t", "Plan Rows": 1, "Actual Rows": scanned, "Actual Loops": 2});
            let join = json!({"Node Type": "Hash Join", "Join Type": "Inner", "Plan Rows": 1, "Actual Rows": joined, "Plans": [scan]});
            QueryPlan::read(&json!([{"Plan": {"Node Type": "Limit", "Plan Rows": 1, "Actual Rows": joined, "Plans": [join]}}])).unwrap()
        };
        let found = PlansCompared::of(&vec![vec![plan(10, 400)]], &vec![vec![plan(20, 100)]]);
        assert_eq!(found.actual, (vec![2.0], vec![4.0, 4.0]));
    }

    #[test]
    fn estimates_are_compared_with_rows_of_a_loop_unless_a_limit_may_stop_them() {
        let scan = |estimate: u32, rows: f64, loops: u32| json!({"Node Type": "Seq Scan", "Plan Rows": estimate, "Actual Rows": rows, "Actual Loops": loops});
        let join = json!({"Node Type": "Nested Loop", "Join Type": "Inner", "Plan Rows": 50, "Actual Rows": 5,
            "Actual Loops": 1, "Plans": [scan(40, 10.0, 1), scan(3, 0.25, 1_000), scan(9, 0.0, 0)]});
        let plan = |plan: Value| QueryPlan::read(&json!([{"Plan": plan}])).unwrap();
        let limit = json!({"Node Type": "Limit", "Plan Rows": 10, "Actual Rows": 5, "Actual Loops": 1, "Plans": [join.clone()]});
        let none = QErrors::default();
        let found = PlansCompared::of(&vec![vec![plan(join)]], &vec![vec![plan(limit)]]).errors;
        assert_eq!(found[0], QErrors { scans: vec![3.0, 4.0], joins: vec![10.0] });
        assert_eq!(found[1], QErrors { joins: vec![2.0], ..none.clone() });
        let planned = plan(json!({"Node Type": "Seq Scan", "Plan Rows": 7}));
        assert_eq!(PlansCompared::of(&vec![vec![planned]], &Vec::new()).errors, [none.clone(), none]);
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
