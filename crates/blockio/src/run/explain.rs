//! EXPLAIN (ANALYZE, BUFFERS) of a query: the blocks of exactly this query, including its workers.

use serde_json::Value;

/// Blocks and rows that a query touched, from EXPLAIN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Touched {
    /// Blocks found in shared_buffers.
    pub(crate) hits: u64,
    /// Blocks not found there.
    pub(crate) reads: u64,
    /// Seconds waited for reads, all processes together; none without track_io_timing, and in text.
    pub(crate) read_time: Option<f64>,
    /// Number of parallel workers that the server launched.
    pub(crate) workers: u64,
}

impl Touched {
    /// The sum over several queries; none if one of them is none.
    pub(crate) fn sum(all: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let both = |sum: Self, next: Self| Self {
            hits: sum.hits + next.hits,
            reads: sum.reads + next.reads,
            read_time: sum.read_time.zip(next.read_time).map(|(sum, next)| sum + next),
            workers: sum.workers + next.workers,
        };
        all.into_iter().reduce(|sum, next| sum.zip(next).map(|(sum, next)| both(sum, next))).flatten()
    }

    /// Reads FORMAT JSON.
    pub(crate) fn of_json(text: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(text).ok()?;
        let plan = document.get(0)?.get("Plan")?;
        // Renamed in PostgreSQL 17.
        let waited = plan.get("Shared I/O Read Time").or_else(|| plan.get("I/O Read Time"));
        Some(Self {
            hits: plan.get("Shared Hit Blocks")?.as_u64()?,
            reads: plan.get("Shared Read Blocks")?.as_u64()?,
            read_time: waited.and_then(Value::as_f64).map(|milliseconds| milliseconds / 1e3),
            workers: workers(plan),
        })
    }

    /// Reads FORMAT TEXT, as in the published check: the first node's line includes all nodes below
    /// it.
    pub(crate) fn of_text(lines: &[String]) -> Option<Self> {
        let buffers = lines.iter().find_map(|line| line.trim().strip_prefix("Buffers: "))?;
        // Temporary files have a part of their own: `shared hit=1 read=2, temp read=3 written=4`.
        let shared = buffers.split(", ").find(|part| part.starts_with("shared"));
        let number = |name: &str| {
            let value = shared?.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value?.parse().ok()
        };
        let workers = lines.iter().find_map(|line| line.trim().strip_prefix("Workers Launched: "));
        Some(Self {
            hits: number("hit").unwrap_or(0),
            reads: number("read").unwrap_or(0),
            read_time: None,
            workers: workers.and_then(|number| number.parse().ok()).unwrap_or(0),
        })
    }
}

/// Workers that Gather nodes launched.
fn workers(plan: &Value) -> u64 {
    let own = plan.get("Workers Launched").and_then(Value::as_u64).unwrap_or(0);
    let below = plan.get("Plans").and_then(Value::as_array);
    own + below.map_or(0, |plans| plans.iter().map(workers).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_tell_the_same() {
        let json = r#"[{"Plan": {"Node Type": "Aggregate", "Shared Hit Blocks": 12, "Shared Read Blocks": 34,
            "I/O Read Time": 1.5, "Plans": [{"Node Type": "Gather", "Workers Launched": 2}]}}]"#;
        let found = Touched::of_json(json).unwrap();
        assert_eq!(found, Touched { hits: 12, reads: 34, read_time: Some(0.0015), workers: 2 });
        let text = [
            "Finalize Aggregate  (cost=1..2 rows=1 width=4) (actual time=1.0..1.1 rows=1 loops=1)",
            "  Buffers: shared hit=12 read=34, temp read=5 written=6",
            "  ->  Gather  (cost=1..2 rows=2 width=4)",
            "        Workers Launched: 2",
            "        Buffers: shared hit=12 read=30",
        ];
        let found = Touched::of_text(&text.map(str::to_owned)).unwrap();
        assert_eq!(found, Touched { hits: 12, reads: 34, read_time: None, workers: 2 });
        let cached = ["Aggregate", "  Buffers: shared hit=7"].map(str::to_owned);
        assert_eq!(Touched::of_text(&cached).unwrap().reads, 0);
        assert_eq!(Touched::of_text(&["Aggregate".to_owned()]), None);
    }
}
