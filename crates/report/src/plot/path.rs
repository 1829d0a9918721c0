//! Data of SVG paths.

use std::fmt::Write;

/// Data of a path, as SVG defines them. Coordinates are relative, in tenths of a pixel and without what is not needed, as a
/// long series has thousands of them.
#[derive(Default)]
pub(super) struct Path {
    text: String,
    /// Tenths of pixels of the last point.
    at: (i64, i64),
    /// Lines since the last start.
    lines: usize,
    /// Whether the last number has a point: the next one may then begin with a point and without a blank.
    is_fraction: bool,
}

impl Path {
    /// Starts at a point, in pixels.
    pub(super) fn start(&mut self, to: (f64, f64)) {
        let to = tenths(to);
        self.dot();
        self.text.push('M');
        self.pair(to.0, to.1);
        (self.at, self.lines) = (to, 0);
    }

    /// A line to a point.
    pub(super) fn line(&mut self, to: (f64, f64)) {
        let to = tenths(to);
        if self.lines == 0 {
            self.text.push('l');
        }
        self.pair(to.0 - self.at.0, to.1 - self.at.1);
        (self.at, self.lines) = (to, self.lines + 1);
    }

    /// A point between two gaps is a dot.
    fn dot(&mut self) {
        if self.lines == 0 && !self.text.is_empty() {
            self.text += "h0";
        }
    }

    fn pair(&mut self, x: i64, y: i64) {
        self.number(x);
        self.number(y);
    }

    fn number(&mut self, tenths: i64) {
        let mut number = if tenths % 10 == 0 {
            (tenths / 10).to_string()
        } else {
            let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
            format!("{sign}{}.{}", tenths / 10, tenths % 10)
        };
        if let Some(fraction) = number.strip_prefix("0.").map(str::len) {
            number.drain(..number.len() - fraction - 1);
        } else if number.starts_with("-0.") {
            number.remove(1);
        }
        let stands_apart = number.starts_with('-') || number.starts_with('.') && self.is_fraction;
        let follows_number = self.text.ends_with(|last: char| last.is_ascii_digit());
        if follows_number && !stands_apart {
            self.text.push(' ');
        }
        self.text += &number;
        self.is_fraction = number.contains('.');
    }

    /// Closes an area at this height, above or below its start.
    pub(super) fn close(&mut self, y: f64) {
        let _ = write!(self.text, "V{y:.1}Z");
    }

    /// Closes an area along a straight line to its start.
    pub(super) fn shut(&mut self) {
        self.dot();
        self.text.push('Z');
    }

    pub(super) fn finish(mut self) -> String {
        self.dot();
        self.text
    }
}

fn tenths((x, y): (f64, f64)) -> (i64, i64) {
    #[expect(clippy::cast_possible_truncation, reason = "a pixel of a drawing")]
    let tenths = |pixel: f64| (pixel * 10.0).round() as i64;
    (tenths(x), tenths(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short() {
        let mut path = Path::default();
        for point in [(41.2, 100.3), (41.6, 97.1), (42.1, 99.2), (43.1, 99.2), (44.0, 98.7)] {
            if path.text.is_empty() { path.start(point) } else { path.line(point) }
        }
        path.start((50.0, 0.7));
        path.start((60.0, 0.0));
        path.line((60.5, 1.0));
        assert_eq!(path.finish(), "M41.2 100.3l.4-3.2.5 2.1 1 0 .9-.5M50 .7h0M60 0l.5 1");
    }
}
