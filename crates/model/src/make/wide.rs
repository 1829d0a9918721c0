//! Values that are too wide for ANALYZE: above 1 kB, it keeps none of them, and counts 18 bytes for one that is in a TOAST table
//! (`WIDTH_THRESHOLD` in `analyze.c`, `TOAST_POINTER_SIZE`).

use rowgen::Kind;

use super::Maker;
use super::text::is_text;
use crate::facts::{ColumnFacts, Statistics};

/// Bytes of a value in a TOAST table, as ANALYZE counts them.
const POINTER: u32 = 18;
/// Bytes of an empty TOAST table: the first page of its index.
const EMPTY: u64 = 8192;
/// The share of a TOAST table's bytes that values take: the others are headers and the index.
const PAYLOAD: f64 = 0.95;

/// Whether ANALYZE has found values, and all of them are too wide.
pub(super) fn is_wide(kind: &Kind, statistics: &Statistics) -> bool {
    let has_none = statistics.common.is_empty() && statistics.bounds.is_empty() && statistics.null_frac < 1.0;
    // It lists no values of json anyway.
    let is_listed = is_text(kind) || matches!(kind, Kind::Bytea | Kind::Jsonb);
    has_none && (is_listed || *kind == Kind::Json && statistics.avg_width == POINTER)
}

impl Maker<'_> {
    /// The average width of a column's values. If they are in a TOAST table, each column of such values has the same width.
    pub(super) fn width(&self, kind: &Kind, statistics: &Statistics) -> u32 {
        if !is_wide(kind, statistics) || statistics.avg_width > POINTER || !self.has_toast() {
            return statistics.avg_width;
        }
        let values = |facts: &ColumnFacts| -> f64 {
            let (Some(kind), Some(statistics)) = (&facts.kind, &facts.statistics) else { return 0.0 };
            let is_stored = is_wide(kind, statistics) && statistics.avg_width <= POINTER;
            if is_stored { 1.0 - statistics.null_frac } else { 0.0 }
        };
        let all = self.table.rows as f64 * self.table.columns.iter().map(values).sum::<f64>();
        let bytes = PAYLOAD * self.table.bytes.toast.saturating_sub(EMPTY) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let width = (bytes / all.max(1.0)).clamp(f64::from(POINTER), 1e6) as u32;
        width
    }

    /// Whether values of the table are in a TOAST table.
    pub(super) fn has_toast(&self) -> bool {
        self.table.bytes.toast > EMPTY
    }
}
