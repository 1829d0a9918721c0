//! Plots as data, and their drawing as SVG.
//!
//! A [`Plot`] is drawn by `svg`, and is a table (`table`) for screen readers, for Markdown and for CSV. `scale`
//! and `thin` are arithmetic; `lines`, `stack`, `dots`, `groups`, `bars` and `heat` draw one kind each on a `canvas`; `plane` is the two axes
//! of the first two.

mod bars;
mod canvas;
mod dots;
mod groups;
mod heat;
mod lines;
mod path;
mod plane;
pub(crate) mod scale;
mod stack;
mod table;
mod thin;

pub(crate) use canvas::{NARROW, STYLE, WIDE, Width};
pub(crate) use lines::together as intervals_of_a_point;
pub(crate) use plane::numbered;
pub(crate) use table::{MOST as MOST_PERIODS, Table};

use crate::quantity::Quantity;
use scale::Spread;

/// A plot with its title and caption.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// Name of its file: `latency`.
    pub(crate) name: String,
    /// Title above the drawing.
    pub(crate) title: String,
    /// A sentence on its content: its caption, and a description for blind readers.
    pub(crate) caption: String,
    /// The values, and how they are drawn.
    pub(crate) drawing: Chart,
}

/// Kinds of plots.
#[derive(Clone, Debug)]
pub(crate) enum Chart {
    /// Values over another value.
    Lines(Lines),
    /// Parts of a whole over another value.
    Stack(Stack),
    /// Values with their intervals, a row each.
    Dots(Dots),
    /// Values of several runs, a row for each configuration.
    Groups(Groups),
    /// Lengths from zero, a row each.
    Bars(Bars),
    /// Lengths that are made of parts, a row each: the groups are the parts.
    Parts(Bars),
    /// Numbers in cells, coloured by size.
    Heat(Heat),
}

/// An axis with its label and scale.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) quantity: Quantity,
    pub(crate) spread: Spread,
    /// Whether it contains zero.
    pub(crate) from_zero: bool,
    /// A value that it contains: plots that are compared have the same scale.
    pub(crate) reach: Option<f64>,
}

/// Series on common axes.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Line>,
    pub(crate) spans: Vec<Span>,
}

/// One series of points.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// x never decreases.
    pub(crate) points: Vec<(f64, f64)>,
    /// For some of these x, the lower and the upper end of an interval around the point.
    pub(crate) intervals: Vec<(f64, f64, f64)>,
    /// A point of another series; a line leads from it to the first point.
    pub(crate) from: Option<(f64, f64)>,
    /// Drawing of a long series.
    pub(crate) long: Long,
}

/// Drawing of a series with more points than the plot can show apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Long {
    /// The medians of periods, and an area from the lowest to the highest value of each column of pixels.
    Medians,
    /// The highest value of each column of pixels.
    Highest,
}

/// Parts of a whole on common axes, one on top of the other.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The places of all values, in their order.
    pub(crate) xs: Vec<f64>,
    /// The lowest part first.
    pub(crate) layers: Vec<Layer>,
    /// Name of a line over a long stack, whose layers are means of periods: the highest sum within each period.
    pub(crate) peak: String,
    pub(crate) spans: Vec<Span>,
}

/// A part of a stack.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) name: String,
    /// Number of its colour: the same part has the same colour in all plots of a page.
    pub(crate) style: usize,
    /// A height for each x.
    pub(crate) heights: Vec<f64>,
}

/// A time in which something happened.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) from: f64,
    pub(crate) until: f64,
    pub(crate) kind: SpanKind,
    /// Description for readers of the plot.
    pub(crate) text: String,
}

/// Kinds of events, each drawn in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Checkpoint,
    Maintenance,
    /// A moment: a part of the run begins, a mark is reached.
    Moment,
}

/// Rows of values on one axis.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    pub(crate) axis: Axis,
    pub(crate) rows: Vec<Dot>,
    /// A value that rows are compared with.
    pub(crate) reference: Option<f64>,
    /// Differences that do not matter, or that noise makes.
    pub(crate) band: Option<(f64, f64, String)>,
}

/// One row: a value with its interval.
#[derive(Clone, Debug)]
pub(crate) struct Dot {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// The single observations behind the value.
    pub(crate) observed: Vec<f64>,
    /// A short remark, such as a verdict.
    pub(crate) remark: String,
}

/// Values of several runs beside each other.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    pub(crate) axis: Axis,
    /// Names of the runs.
    pub(crate) series: Vec<String>,
    /// Name of each row, and the value of each run.
    pub(crate) rows: Vec<(String, Vec<Option<Grouped>>)>,
}

/// A value with its interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grouped {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

/// Rows of lengths.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) axis: Axis,
    /// Names of the bars of a row; one without a name needs no legend.
    pub(crate) groups: Vec<String>,
    /// Name of each row, and the length of each group's bar.
    pub(crate) rows: Vec<(String, Vec<Option<f64>>)>,
}

/// Numbers in rows and columns.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    pub(crate) quantity: Quantity,
    /// Label of the rows' dimension.
    pub(crate) row_label: String,
    pub(crate) column_label: String,
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    /// By row and column.
    pub(crate) cells: Vec<Vec<Option<f64>>>,
    pub(crate) colours: Colours,
}

/// The colours of a heat map.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Colours {
    /// By size; values that differ by no more than this may have the same colour.
    Steps(f64),
    /// One colour up to a limit, others beyond.
    Limit(f64),
}

impl Line {
    pub(crate) fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), points, intervals: Vec::new(), from: None, long: Long::Medians }
    }
}

impl Axis {
    pub(crate) fn new(label: &str, quantity: Quantity, spread: Spread) -> Self {
        Self { label: label.to_owned(), quantity, spread, from_zero: spread == Spread::Linear, reach: None }
    }
}

impl Plot {
    pub(crate) fn new(name: &str, title: &str, caption: String, drawing: Chart) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), caption, drawing }
    }

    /// The drawing, for a page of this width.
    pub(crate) fn svg(&self, width: Width) -> String {
        match &self.drawing {
            Chart::Lines(chart) => lines::svg(self, chart, width),
            Chart::Stack(chart) => stack::svg(self, chart, width),
            Chart::Dots(chart) => dots::svg(self, chart, width),
            Chart::Groups(chart) => groups::svg(self, chart, width),
            Chart::Bars(chart) => bars::svg(self, chart, false, width),
            Chart::Parts(chart) => bars::svg(self, chart, true, width),
            Chart::Heat(chart) => heat::svg(self, chart, width),
        }
    }

    /// The numbers of the plot as a table.
    pub(crate) fn table(&self) -> Table {
        match &self.drawing {
            Chart::Lines(chart) => table::of_lines(chart),
            Chart::Stack(chart) => table::of_stack(chart),
            Chart::Dots(chart) => table::of_dots(chart),
            Chart::Groups(chart) => table::of_groups(chart),
            Chart::Bars(chart) | Chart::Parts(chart) => table::of_bars(chart),
            Chart::Heat(chart) => table::of_heat(chart),
        }
    }
}
