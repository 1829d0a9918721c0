//! Makes the value of a column in a row.

pub(crate) mod any;
mod build;
mod degrees;
mod distribution;
mod elements;
mod few;
mod groups;
mod kept;
mod letters;
mod level;
mod order;
mod pairing;
mod payload;
mod picking;
mod ranked;
mod reader;
mod shuffle;
mod spread;
mod statistics;
mod topic;
mod unique;
mod weights;

use std::sync::Arc;

pub(crate) use self::any::{ITEMS, JSON, JSONB, LONG, XML, range_of_fixed};
use self::distribution::Sampler;
use self::elements::Choosing;
use self::kept::Kept;
use self::letters::Lettering;
pub(crate) use self::letters::digits;
use self::order::READ_WHOLE;
use self::picking::Picking;
use self::ranked::Ranked;
pub(crate) use self::reader::Reader;
use self::spread::Spreading;
use self::statistics::{Describing, Made};
pub(crate) use self::topic::{Form, NUMBERS as TOPIC_NUMBERS};
pub(crate) use self::unique::LONGEST as UNIQUE_TEXT;
use crate::random::{Draw, Stream};
use crate::value::Value;
use crate::{Column, Keys, Kind, Payload, Side, Table, Turn, Units};

/// A column's values, with parts that are computed before the first row.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    kind: Kind,
    stream: Stream,
    source: Source,
    may_be_null: bool,
}

#[derive(Clone, Debug)]
enum Source {
    Any,
    Null,
    Int(i64),
    Text(String),
    Serial {
        start: i64,
        step: i64,
        count: u64,
    },
    Group {
        size: u64,
        groups: u64,
    },
    Unique {
        turn: Turn,
    },
    Long {
        turn: Turn,
        length: u32,
    },
    Shuffle {
        low: i64,
        count: u64,
    },
    Between {
        low: i64,
        high: i64,
    },
    Drawn {
        sampler: Sampler,
        units: Units,
        real: bool,
    },
    List {
        values: Vec<String>,
        bounds: Vec<u64>,
    },
    Cycle(Vec<String>),
    Payload {
        payload: Payload,
        low: u32,
        high: u32,
    },
    Topic {
        form: Form,
        turn: Turn,
    },
    Reference {
        keys: Arc<Keys>,
        column: usize,
        pick: Picking,
    },
    Made {
        key: Box<Generator>,
        first: u64,
        count: u64,
        pick: Picking,
    },
    Nulls {
        nulls: Nulls,
        others: Box<Generator>,
    },
    Repeated {
        spreading: Spreading,
        values: Box<Generator>,
    },
    Ranked {
        ranked: Ranked,
        not_null: u64,
        values: Box<Generator>,
    },
    Placed {
        kept: Kept,
        values: Box<Generator>,
    },
    /// With the number of each row among those that are not NULL; of few rows.
    Numbered {
        numbers: Arc<[u32]>,
        values: Box<Generator>,
    },
    Statistics(Describing),
    Letters(Lettering),
    Elements(Box<Choosing>),
    Ordered {
        own: Box<Generator>,
        other: Box<Generator>,
        side: Side,
        units: Units,
        /// How far it is above the other one at least, which is above or below a third column itself; none if the other one has the lesser
        /// of the two values.
        apart: Option<i64>,
    },
    Leading {
        until: u64,
        leading: Box<Generator>,
        others: Box<Generator>,
    },
}

/// The rows of a column that have NULL.
#[derive(Clone, Debug)]
enum Nulls {
    Drawn {
        stream: Stream,
        below: u64,
    },
    /// As many as the fraction says, of few rows.
    Counted {
        stream: Stream,
        rows: u64,
        not_null: u64,
    },
    Ranked {
        ranked: Ranked,
        not_null: u64,
    },
}

impl Nulls {
    /// Of few rows, as many as the fraction says; of others, each by itself.
    fn by_chance(fraction: f64, rows: u64, stream: Stream) -> Self {
        if !(1..=READ_WHOLE).contains(&rows) {
            return Self::Drawn { stream, below: share(fraction) };
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of few rows")]
        let not_null = ((1.0 - fraction) * rows as f64).round() as u64;
        Self::Counted { stream, rows, not_null }
    }

    fn has(&self, row: u64) -> bool {
        match self {
            Self::Drawn { stream, below } => is_drawn(*stream, *below, row),
            Self::Counted { stream, rows, not_null } => {
                shuffle::place(row % rows, *rows, *stream) >= *not_null
            }
            Self::Ranked { ranked, not_null } => ranked.rank(row) >= *not_null,
        }
    }
}

impl Generator {
    /// The generator of a column that [`Column::check`] passes.
    ///
    /// # Panics
    /// For other columns, and for [`crate::Values::Server`], which has no values.
    pub(crate) fn new(table: &Table, column: &Column) -> Self {
        if let Err(error) = column.check() {
            panic!("{error}");
        }
        Self::of(table, column, &column.values)
    }

    /// The column's type.
    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether the values are given in the kind's input syntax.
    pub(crate) fn is_literal(&self) -> bool {
        match &self.source {
            Source::Text(_) | Source::List { .. } | Source::Cycle(_) | Source::Elements(_) => true,
            Source::Reference { keys, .. } => matches!(**keys, Keys::Listed(_)),
            Source::Nulls { others: values, .. }
            | Source::Made { key: values, .. }
            | Source::Repeated { values, .. }
            | Source::Placed { values, .. }
            | Source::Numbered { values, .. }
            | Source::Ranked { values, .. } => values.is_literal(),
            Source::Leading { leading, others, .. } => leading.is_literal() || others.is_literal(),
            _ => false,
        }
    }

    /// Whether a row has NULL.
    fn is_null(&self, row: u64) -> bool {
        match &self.source {
            Source::Null => true,
            Source::Nulls { nulls, others } => nulls.has(row) || others.is_null(row),
            Source::Reference { keys, column, pick } => match &**keys {
                Keys::Listed(list) => {
                    list[index(pick.number(row, keys.count()), list.len())][*column].is_none()
                }
                _ => false,
            },
            Source::Made { key, first, count, pick } => {
                pick.is_null(row) || key.is_null(first + pick.number(row, *count))
            }
            Source::Repeated { spreading, values } => values.is_null(spreading.number(row)),
            Source::Ranked { ranked, not_null, .. } => ranked.rank(row) >= *not_null,
            Source::Placed { kept, values } => values.is_null(kept.place(row)),
            Source::Numbered { numbers, values } => values.is_null(kept::numbered(numbers, row)),
            Source::Ordered { own, .. } => own.is_null(row),
            Source::Leading { until, leading, others } => {
                if row < *until {
                    leading.is_null(row)
                } else {
                    others.is_null(row)
                }
            }
            _ => false,
        }
    }

    /// Whether some rows may have NULL.
    pub(crate) fn may_be_null(&self) -> bool {
        self.may_be_null
    }

    /// The value of a row, its bytes in `scratch` where it needs any.
    fn value<'a>(&'a self, row: u64, scratch: &'a mut Vec<u8>) -> Value<'a> {
        match &self.source {
            // Encoders draw the elements, each in its own form.
            Source::Any if matches!(self.kind, Kind::Array(_)) => Value::Elements(self.stream.draw(row)),
            Source::Any => any::value(&self.kind, &mut self.stream.draw(row), scratch),
            Source::Null => Value::Null,
            Source::Int(value) => Value::Units(*value),
            Source::Text(text) => Value::Text(text),
            Source::Serial { start, step, count } => {
                let row = if row < *count { row } else { row % count };
                Value::Units(start.wrapping_add(row.cast_signed().wrapping_mul(*step)))
            }
            Source::Group { size, groups } => Value::Units(group(row, *size, *groups)),
            Source::Unique { turn } => unique::value(&self.kind, turn.of_row(row), self.stream, scratch),
            Source::Long { turn, length } => {
                unique::long(&self.kind, (turn.of_row(row), *length), self.stream, scratch)
            }
            Source::Shuffle { low, count } => {
                Value::Units(low.wrapping_add_unsigned(shuffle::place(row % count, *count, self.stream)))
            }
            Source::Between { low, high } => Value::Units(self.stream.draw(row).between(*low, *high)),
            Source::Drawn { sampler, units, real } => {
                let number = sampler.sample(&mut self.stream.draw(row));
                if *real { Value::Real(number) } else { Value::Units(whole(number, *units)) }
            }
            Source::List { values, bounds } => {
                let number = self.stream.draw(row).next();
                Value::Text(&values[bounds.partition_point(|bound| *bound <= number)])
            }
            Source::Cycle(values) => Value::Text(&values[index(row, values.len())]),
            Source::Payload { payload, low, high } => {
                let mut draw = self.stream.draw(row);
                let length = if low == high { *low } else { draw.length(*low, *high) };
                filler(&self.kind, *payload, length, &mut draw, scratch)
            }
            Source::Topic { form, turn } => {
                let number = turn.of_row(row);
                form.value(number, self.stream.draw(number), scratch)
            }
            Source::Reference { keys, column, pick } => match (&**keys, pick.number(row, keys.count())) {
                (Keys::Interval { low, .. }, number) => Value::Units(low.wrapping_add_unsigned(number)),
                (Keys::Listed(keys), number) => {
                    keys[index(number, keys.len())][*column].as_deref().map_or(Value::Null, Value::Text)
                }
                (Keys::Made { .. }, _) => unreachable!("a source of its own"),
            },
            Source::Made { pick, .. } if pick.is_null(row) => Value::Null,
            Source::Made { key, first, count, pick } => key.value(first + pick.number(row, *count), scratch),
            Source::Repeated { spreading, values } => values.value(spreading.number(row), scratch),
            Source::Ranked { ranked, not_null, values } => match ranked.rank(row) {
                rank if rank >= *not_null => Value::Null,
                rank => values.value(rank, scratch),
            },
            Source::Placed { kept, values } => values.value(kept.place(row), scratch),
            Source::Numbered { numbers, values } => values.value(kept::numbered(numbers, row), scratch),
            Source::Statistics(describing) => match describing.value(row) {
                Made::Units(units) => Value::Units(units),
                Made::Real(real) => Value::Real(real),
            },
            Source::Ordered { own, other, side, units, apart } => {
                // Numbers need no bytes.
                let mut unused = Vec::new();
                ordered(own.value(row, scratch), other.value(row, &mut unused), (*side, *apart), *units)
            }
            Source::Elements(choosing) => choosing.value(self.stream.draw(row), scratch),
            Source::Letters(lettering) => {
                scratch.clear();
                let is_json = matches!(self.kind, Kind::Json | Kind::Jsonb);
                if is_json {
                    scratch.extend(b"{\"v\": \"");
                }
                lettering.write(row, self.stream, scratch);
                if is_json {
                    scratch.extend(b"\"}");
                }
                Value::Plain(scratch)
            }
            Source::Leading { until, leading, others } => {
                if row < *until {
                    leading.value(row, scratch)
                } else {
                    others.value(row, scratch)
                }
            }
            Source::Nulls { nulls, others } => {
                if nulls.has(row) {
                    Value::Null
                } else {
                    others.value(row, scratch)
                }
            }
        }
    }
}

/// The lesser or the greater of two values, by `side`; the own value if the other one is NULL.
fn ordered<'a>(
    own: Value<'a>,
    other: Value<'_>,
    (side, apart): (Side, Option<i64>),
    units: Units,
) -> Value<'a> {
    match (own, other, side) {
        (Value::Units(own), Value::Units(other), Side::Lesser) => Value::Units(own.min(other)),
        (Value::Units(own), Value::Units(other), Side::Above)
            if own == other || apart.is_some_and(|apart| own < other.saturating_add(apart)) =>
        {
            Value::Units(other.saturating_add(apart.unwrap_or(1)).min(units.high))
        }
        (Value::Units(own), Value::Units(other), _) => Value::Units(own.max(other)),
        (Value::Real(own), Value::Real(other), Side::Lesser) => Value::Real(own.min(other)),
        (Value::Real(own), Value::Real(other), Side::Above)
            if own.total_cmp(&other).is_eq() || apart.is_some() && own < other =>
        {
            Value::Real(other.next_up())
        }
        (Value::Real(own), Value::Real(other), _) => Value::Real(own.max(other)),
        (own, ..) => own,
    }
}

/// The table without its columns, for code that needs only its name, seed and number of rows.
fn bare(table: &Table) -> Table {
    Table { name: table.name.clone(), columns: Vec::new(), rows: table.rows, seed: table.seed }
}

/// Whether the row is among a share of all, as [`share`] gives it.
fn is_drawn(stream: Stream, below: u64, row: u64) -> bool {
    stream.draw(row).next() >> 1 < below
}

/// The number of a row's group.
fn group(row: u64, size: u64, groups: u64) -> i64 {
    (row / size + 1).min(groups).cast_signed()
}

/// Rows until a serial has used up its kind's values.
pub(crate) fn steps(start: i64, step: i64, units: Units) -> u64 {
    let last = if step > 0 { units.high } else { units.low };
    (last.abs_diff(start) / step.unsigned_abs()).saturating_add(1)
}

/// A fraction of 0 to 1 as a share of 2^63.
fn share(fraction: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let share = (fraction * (1_u64 << 63) as f64) as u64;
    share
}

/// The nearest whole number of units that the kind has.
fn whole(number: f64, units: Units) -> i64 {
    #[expect(clippy::cast_possible_truncation)]
    let rounded = libm::round(number) as i64;
    rounded.clamp(units.low, units.high)
}

fn index(number: u64, count: usize) -> usize {
    usize::try_from(number % count as u64).expect("below a count")
}

fn filler<'a>(
    kind: &Kind,
    payload: Payload,
    length: u32,
    draw: &mut Draw,
    scratch: &'a mut Vec<u8>,
) -> Value<'a> {
    scratch.clear();
    if *kind == Kind::Bytea {
        payload::bytes(payload, length, draw, scratch);
        Value::Bytes(scratch)
    } else {
        payload::characters(payload, length, draw, scratch);
        Value::Plain(scratch)
    }
}
