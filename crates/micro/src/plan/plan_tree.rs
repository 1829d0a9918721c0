//! The plan of a statement, from EXPLAIN (FORMAT JSON).

use serde_json::Value;

/// One statement's plan.
#[derive(Clone, Debug)]
pub(crate) struct PlanTree(Value);

impl PlanTree {
    /// None if the text is no plan.
    pub(crate) fn of(json: &Value) -> Option<Self> {
        let root = json.get(0)?;
        root.get("Plan")?.get("Node Type")?;
        Some(Self(root.clone()))
    }

    fn top(&self) -> &Value {
        &self.0["Plan"]
    }

    /// Its kinds of nodes, as `Aggregate(Function Scan)`.
    pub(crate) fn shape(&self) -> String {
        shape(self.top())
    }

    /// All computed expressions as the server prints them: a line for each node.
    pub(crate) fn executed(&self) -> String {
        let mut lines = Vec::new();
        describe(self.top(), 0, &mut lines);
        lines.join("\n")
    }

    /// The first output column of the topmost node.
    pub(crate) fn first_output(&self) -> Option<&str> {
        self.top()["Output"][0].as_str()
    }

    /// Name and expressions of each subplan.
    pub(crate) fn subplans(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        self.each(&mut |node| {
            if let Some(name) = node["Subplan Name"].as_str() {
                let mut lines = Vec::new();
                describe(node, 0, &mut lines);
                found.push((name.to_owned(), lines.join("; ")));
            }
        });
        found
    }

    /// All expressions of the plan.
    pub(crate) fn expressions(&self) -> Vec<&str> {
        let mut found = Vec::new();
        texts(self.top(), &mut found);
        found
    }

    /// Whether parallel workers take part.
    pub(crate) fn is_parallel(&self) -> bool {
        let mut is_parallel = false;
        self.each(&mut |node| is_parallel |= node.get("Workers Planned").is_some());
        is_parallel
    }

    /// The planner's cost, in its own unit.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.top()["Total Cost"].as_f64()
    }

    /// Whether it was JIT-compiled. Known only for an executed statement.
    pub(crate) fn was_compiled(&self) -> bool {
        self.0.get("JIT").is_some()
    }

    /// Blocks written to temporary files. Known only for an executed statement.
    pub(crate) fn spilled_blocks(&self) -> u64 {
        self.top()["Temp Written Blocks"].as_u64().unwrap_or(0)
    }

    /// Triggers that fired. Known only for an executed statement.
    pub(crate) fn triggers(&self) -> Vec<&str> {
        let triggers = self.0["Triggers"].as_array().map_or(&[][..], Vec::as_slice);
        triggers.iter().filter_map(|trigger| trigger["Trigger Name"].as_str()).collect()
    }

    fn each<'a>(&'a self, visit: &mut impl FnMut(&'a Value)) {
        each(self.top(), visit);
    }
}

fn children(node: &Value) -> &[Value] {
    node["Plans"].as_array().map_or(&[], Vec::as_slice)
}

fn each<'a>(node: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(node);
    for child in children(node) {
        each(child, visit);
    }
}

fn shape(node: &Value) -> String {
    let kind = node["Node Type"].as_str().unwrap_or("?");
    let subplan = match node["Parent Relationship"].as_str() {
        Some(relation @ ("InitPlan" | "SubPlan")) => format!("{relation}: "),
        _ => String::new(),
    };
    let below: Vec<String> = children(node).iter().map(shape).collect();
    if below.is_empty() {
        format!("{subplan}{kind}")
    } else {
        format!("{subplan}{kind}({})", below.join(", "))
    }
}

/// Fields that hold computed expressions.
const COMPUTED: [&str; 10] = [
    "Output",
    "Function Call",
    "Filter",
    "Join Filter",
    "Hash Cond",
    "Merge Cond",
    "Index Cond",
    "Recheck Cond",
    "One-Time Filter",
    "TID Cond",
];

fn describe(node: &Value, depth: usize, lines: &mut Vec<String>) {
    let mut line = format!("{}{}", "  ".repeat(depth), node["Node Type"].as_str().unwrap_or("?"));
    for (field, before) in [("Relation Name", " on "), ("Index Name", " using ")] {
        if let Some(name) = node[field].as_str() {
            line += before;
            line += name;
        }
    }
    for field in COMPUTED {
        let found = &node[field];
        let mut all = Vec::new();
        texts(found, &mut all);
        if !all.is_empty() {
            let label = if field == "Output" { String::new() } else { format!("{} ", field.to_lowercase()) };
            line += if line.contains(": ") { "; " } else { ": " };
            line += &label;
            line += &all.join(", ");
        }
    }
    lines.push(line);
    for child in children(node) {
        describe(child, depth + 1, lines);
    }
}

fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(all) => all.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}
