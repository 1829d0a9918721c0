//! Geometric types (`utils/geo_decls.h`), from the forms in which rowgen writes them.

use super::literal::real;
use crate::Kind;

type Point = [f64; 2];

pub(super) fn payload(kind: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    match kind {
        Kind::Line => line(text, out),
        Kind::Circle => circle(text, out),
        kind => {
            let inner = within(text, '[', ']')
                .or_else(|| within(text, '(', ')').filter(|text| text.starts_with('(')));
            let points = points(inner.unwrap_or(text))?;
            let closed = !text.starts_with('[');
            of_points(kind, &points, closed, out)
        }
    }
}

fn of_points(kind: &Kind, points: &[Point], closed: bool, out: &mut Vec<u8>) -> Option<()> {
    let count = u32::try_from(points.len()).ok()?;
    match (kind, points) {
        (Kind::Point, [_]) | (Kind::Lseg, [_, _]) => {}
        // The upper right corner, then the lower left one, whichever were given.
        (Kind::Box, [_, _]) => {
            put(&corners(points), out);
            return Some(());
        }
        // Number of points, whether it is closed, padding.
        (Kind::Path, [_, ..]) => {
            out.extend([count, u32::from(closed), 0].iter().flat_map(|number| number.to_le_bytes()));
        }
        // Number of points, the box around them.
        (Kind::Polygon, [_, ..]) => {
            out.extend(count.to_le_bytes());
            put(&corners(points), out);
        }
        _ => return None,
    }
    put(points, out);
    Some(())
}

fn line(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let factors = within(text, '{', '}')?.split(',').map(real).collect::<Option<Vec<f64>>>()?;
    let [a, b, _] = factors[..] else { return None };
    // A line has a direction.
    if a.abs().max(b.abs()) < 1.0 {
        return None;
    }
    out.extend(factors.iter().flat_map(|factor| factor.to_le_bytes()));
    Some(())
}

fn circle(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (center, radius) = within(text, '<', '>')?.rsplit_once(',')?;
    let radius = real(radius).filter(|radius| *radius >= 0.0)?;
    let [center] = points(center)?[..] else { return None };
    put(&[center], out);
    out.extend(radius.to_le_bytes());
    Some(())
}

/// Upper right and lower left of the box around the points.
fn corners(points: &[Point]) -> [Point; 2] {
    let most = |axis: usize| points.iter().map(|point| point[axis]).fold(f64::NEG_INFINITY, f64::max);
    let least = |axis: usize| points.iter().map(|point| point[axis]).fold(f64::INFINITY, f64::min);
    [[most(0), most(1)], [least(0), least(1)]]
}

fn put(points: &[Point], out: &mut Vec<u8>) {
    out.extend(points.iter().flatten().flat_map(|number| number.to_le_bytes()));
}

fn within(text: &str, open: char, close: char) -> Option<&str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// `(1,2),(3,4)`.
fn points(text: &str) -> Option<Vec<Point>> {
    let mut points = Vec::new();
    let mut rest = text;
    loop {
        let (point, after) = rest.strip_prefix('(')?.split_once(')')?;
        let (x, y) = point.split_once(',')?;
        points.push([real(x)?, real(y)?]);
        if after.is_empty() {
            return Some(points);
        }
        rest = after.strip_prefix(',')?;
    }
}
