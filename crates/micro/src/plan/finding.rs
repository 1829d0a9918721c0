//! Properties of a plan that change the meaning of a result.

use std::fmt;

use serde::Serialize;

/// A finding on one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The candidate's name.
    pub candidate: String,
    /// Kind of the finding.
    #[serde(flatten)]
    pub kind: Kind,
}

/// Kinds of findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Kind {
    /// The planner replaced the expression by a constant.
    Folded {
        /// Value of the constant.
        value: String,
    },
    /// The plan lacks calls that the user's text has.
    Dropped {
        /// Functions that the plan does not call.
        functions: Vec<String>,
    },
    /// An expression is computed once for all rows.
    Once {
        /// The expression that is evaluated once.
        what: String,
    },
    /// The plan uses parallel workers.
    Parallel,
    /// The statement is JIT-compiled.
    Compiled {
        /// The cost above which the settings make the server compile; none if an execution showed
        /// that it was compiled.
        above: Option<u64>,
    },
    /// SQL functions were inlined.
    Inlined {
        /// Functions that were inlined.
        functions: Vec<String>,
    },
    /// `generate_series` makes numbers of type numeric.
    NumericSeries,
    /// The plan has other kinds of nodes than the first candidate's.
    OtherShape {
        /// The first one's.
        first: String,
        /// Nodes of this candidate's plan.
        this: String,
    },
    /// The execution writes temporary files.
    Spills {
        /// Number of blocks.
        blocks: u64,
        /// Rows of the sample.
        rows: u64,
    },
    /// The statement fires triggers.
    Triggers {
        /// Names of the triggers.
        names: Vec<String>,
    },
    /// The expression calls volatile functions of the user's own, so it may change data.
    Volatile {
        /// The volatile functions.
        functions: Vec<String>,
    },
    /// The expression is a SELECT of a single value, which makes a subquery of it.
    Subquery,
    /// The server does not EXPLAIN this statement.
    Unexplained,
}

impl Kind {
    /// Whether the candidate is not measured, unless the user insists.
    pub fn is_refused(&self) -> bool {
        matches!(
            self,
            Self::Folded { .. }
                | Self::Dropped { .. }
                | Self::Once { .. }
                | Self::Parallel
                | Self::Compiled { .. }
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.candidate, self.kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folded { value } => {
                write!(f, "the planner computes this expression once, as the constant {value}: use i in it")
            }
            Self::Dropped { functions } => {
                let [are, them, their, results] = if functions.len() == 1 {
                    ["is", "it", "its", "result"]
                } else {
                    ["are", "them", "their", "results"]
                };
                write!(
                    f,
                    "{} {are} not called for each row, because the planner evaluated {them} at plan time, or removed \
                     {them} as unused: use i in {their} arguments, and use {their} {results}",
                    listed(functions)
                )
            }
            Self::Once { what } => {
                write!(f, "the server evaluates it once for all rows ({what}): use i in it")
            }
            Self::Parallel => f.write_str(
                "parallel workers share the work, so the time per row is not known: set \
                 max_parallel_workers_per_gather to 0",
            ),
            Self::Compiled { above: Some(above) } => write!(
                f,
                "jit is on and the statement costs more than jit_above_cost ({above}), so the time includes \
                 compilation: set jit to off"
            ),
            Self::Compiled { above: None } => {
                f.write_str("the server compiles it (JIT), so the time includes compilation: set jit to off")
            }
            Self::Inlined { functions } => write!(
                f,
                "{} {} without a call; --explain shows it",
                listed(functions),
                if functions.len() == 1 {
                    "is inlined: the server executes its body"
                } else {
                    "are inlined: the server executes their bodies"
                }
            ),
            Self::NumericSeries => f.write_str(
                "its generate_series counts in numeric, which takes longer than counting in integers: write \
                 3000000, not 3e6",
            ),
            Self::OtherShape { first, this } => {
                write!(
                    f,
                    "its plan ({this}) differs from that of the first candidate ({first}), so the times compare the \
                     plans too: give statements with the same plan to compare expressions alone"
                )
            }
            Self::Spills { blocks, rows } => write!(
                f,
                "at {rows} rows it writes {blocks} {} to temporary files, and the time includes that: give \
                 fewer --rows",
                if *blocks == 1 { "block" } else { "blocks" }
            ),
            Self::Triggers { names } => {
                let (run, them) =
                    if names.len() == 1 { ("a trigger runs", "it") } else { ("triggers run", "them") };
                write!(
                    f,
                    "{run}, and the time includes {them} ({}): disable {them} to time the statement alone",
                    names.join(", ")
                )
            }
            Self::Volatile { functions } => {
                let [are, change] =
                    if functions.len() == 1 { ["is", "it changes"] } else { ["are", "they change"] };
                write!(
                    f,
                    "{} {are} volatile: if {change} data, pgrig commits the changes of each round, and they remain: to keep \
                     your data, measure in a copy of the database",
                    listed(functions)
                )
            }
            Self::Subquery => f.write_str(
                "SELECT makes a subquery of it, and the time includes the cost of that: leave out SELECT",
            ),
            Self::Unexplained => f.write_str(
                "the server has no EXPLAIN for this statement: pgrig did not check \
                                              its plan",
            ),
        }
    }
}

fn listed(functions: &[String]) -> String {
    let named: Vec<String> = functions.iter().map(|name| format!("{name}()")).collect();
    named.join(", ")
}
