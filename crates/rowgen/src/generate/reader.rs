//! Reads the values of a column row by row.

use std::ops::Range;

use super::{Form, Generator, Source, group, topic};
use crate::Kind;
use crate::value::Value;

/// Reads a generator, best in row order: it keeps values that neighbouring rows share.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    generator: &'a Generator,
    scratch: Vec<u8>,
    /// Rows of the group read last, and its value.
    group: (Range<u64>, i64),
}

impl<'a> Reader<'a> {
    pub(crate) fn new(generator: &'a Generator) -> Self {
        Self { generator, scratch: Vec::new(), group: (0..0, 0) }
    }

    /// The column's type.
    pub(crate) fn kind(&self) -> &'a Kind {
        &self.generator.kind
    }

    /// Whether a row has NULL.
    pub(crate) fn is_null(&self, row: u64) -> bool {
        self.generator.is_null(row)
    }

    /// The value of a row, in units.
    ///
    /// # Panics
    /// If the values are not counted, or NULL.
    #[inline]
    pub(crate) fn units(&mut self, row: u64) -> i64 {
        let Value::Units(units) = self.value(row) else { panic!("values that are not counted") };
        units
    }

    /// The value of a row.
    #[inline]
    pub(crate) fn value(&mut self, row: u64) -> Value<'_> {
        match self.counted(row) {
            Some(units) => Value::Units(units),
            None => self.generator.value(row, &mut self.scratch),
        }
    }

    /// The value of a row that [has one](Self::is_null).
    #[inline]
    pub(crate) fn present(&mut self, row: u64) -> Value<'_> {
        match &self.generator.source {
            Source::Nulls { others, .. } => others.value(row, &mut self.scratch),
            _ => self.value(row),
        }
    }

    /// Appends the text of a row that has one; none if the values are not put together from pieces.
    #[inline]
    pub(crate) fn append(&mut self, row: u64, out: &mut Vec<u8>) -> Option<()> {
        let generator = match &self.generator.source {
            Source::Nulls { others, .. } => &**others,
            _ => self.generator,
        };
        let Source::Topic { form: Form::Text { pieces, .. }, turn } = &generator.source else { return None };
        let number = turn.of_row(row);
        topic::append(pieces, number, generator.stream.draw(number), out);
        Some(())
    }

    /// The value of a row, in units, if it can be computed by counting alone.
    #[inline]
    pub(crate) fn counted(&mut self, row: u64) -> Option<i64> {
        match &self.generator.source {
            Source::Serial { start, step, count } if row < *count => {
                Some(start.wrapping_add(row.cast_signed().wrapping_mul(*step)))
            }
            Source::Group { size, groups } => {
                if !self.group.0.contains(&row) {
                    let start = row - row % size;
                    self.group = (start..start.saturating_add(*size), group(row, *size, *groups));
                }
                Some(self.group.1)
            }
            _ => None,
        }
    }
}
