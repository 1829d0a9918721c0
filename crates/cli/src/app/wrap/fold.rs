//! Tables that are wider than a terminal: their last column wraps, or their columns stand in several tables one below the
//! other, each with the first column.

use std::ops::Range;

use console::measure_text_width;

/// Blanks between columns.
const GAP: &str = "  ";
/// Least width of a last column that is wrapped.
const NARROWEST_TEXT: usize = 24;

/// Whether a line may be a row of a table: it has a gap between columns.
pub(super) fn has_gap(line: &str) -> bool {
    line.trim().contains(GAP)
}

/// The table with rows of at most `width` columns, as far as its cells let it. None if it is not a table, or is not too
/// wide.
pub(super) fn folded(lines: &[&str], width: usize) -> Option<Vec<String>> {
    let rows: Vec<Row> = lines.iter().map(|line| Row::of(line)).collect::<Option<_>>()?;
    if lines.len() < 2 || rows.iter().all(|row| row.0.len() <= width) {
        return None;
    }
    let columns = columns(&rows);
    let [first, others @ ..] = &columns[..] else { return None };
    if others.len() < 2 {
        return None;
    }
    let last = others[others.len() - 1].start;
    let is_text = |row: &Row| {
        row.text(last..usize::MAX).split(' ').all(|word| last + measure_text_width(word) <= width)
    };
    if last + NARROWEST_TEXT <= width && rows.iter().all(is_text) {
        return Some(rows.iter().flat_map(|row| row.hanging(last, width)).collect());
    }
    let mut stacked = Vec::new();
    for group in groups(first, others, width) {
        let is_first = stacked.is_empty();
        if !is_first {
            stacked.push(String::new());
        }
        // Further tables leave out rows that say nothing there.
        let says =
            |row: &Row| group.iter().any(|column| !matches!(row.text(column.clone()).trim(), "" | "-"));
        let header = std::slice::from_ref(&rows[0]);
        let said = rows[1..].iter().filter(|row| is_first || says(row));
        stacked.extend(header.iter().chain(said).map(|row| {
            let mut line = row.padded(0..first.end);
            for column in group {
                line += GAP;
                line += &row.padded(column.clone());
            }
            line.trim_end().to_owned()
        }));
    }
    Some(stacked)
}

/// A line, as one character for each column of the terminal. A character of two columns is followed
/// by a filler.
struct Row(Vec<char>);

const FILLER: char = '\0';

impl Row {
    /// None if the line has characters without a width, or colour codes.
    fn of(line: &str) -> Option<Self> {
        let mut cells = Vec::new();
        for character in line.trim_end().chars() {
            if character.is_control() {
                return None;
            }
            let width = measure_text_width(character.encode_utf8(&mut [0; 4]));
            cells.push(character);
            cells.extend(std::iter::repeat_n(FILLER, width.checked_sub(1)?));
        }
        Some(Self(cells))
    }

    fn is_blank(&self, at: usize) -> bool {
        self.0.get(at).is_none_or(|cell| *cell == ' ')
    }

    fn text(&self, columns: Range<usize>) -> String {
        let end = columns.end.min(self.0.len());
        let cells = self.0.get(columns.start..end).unwrap_or_default();
        cells.iter().filter(|cell| **cell != FILLER).collect()
    }

    fn padded(&self, columns: Range<usize>) -> String {
        let missing = columns.end - self.0.len().clamp(columns.start, columns.end);
        self.text(columns) + &" ".repeat(missing)
    }

    /// The row in several lines, in which the text from `last` on continues below itself.
    fn hanging(&self, last: usize, width: usize) -> Vec<String> {
        let mut lines = vec![self.padded(0..last)];
        for word in self.text(last..usize::MAX).split(' ') {
            let current = lines.last_mut().expect("there is one");
            let column = measure_text_width(current);
            if column == last {
                current.push_str(word);
            } else if column + 1 + measure_text_width(word) <= width {
                current.push(' ');
                current.push_str(word);
            } else {
                lines.push(" ".repeat(last) + word);
            }
        }
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Columns of the table: separated by two blanks or more in every row.
fn columns(rows: &[Row]) -> Vec<Range<usize>> {
    let end = rows.iter().map(|row| row.0.len()).max().unwrap_or_default();
    let is_blank = |at: usize| rows.iter().all(|row| row.is_blank(at));
    let mut columns: Vec<Range<usize>> = Vec::new();
    for at in (0..end).filter(|at| !is_blank(*at)) {
        match columns.last_mut() {
            Some(column) if at < column.end + GAP.len() => column.end = at + 1,
            _ => columns.push(at..at + 1),
        }
    }
    columns
}

/// The columns after the first one, in groups that fit beside it.
fn groups<'a>(first: &Range<usize>, others: &'a [Range<usize>], width: usize) -> Vec<&'a [Range<usize>]> {
    let mut groups = Vec::new();
    let (mut begin, mut taken) = (0, first.end);
    for (number, column) in others.iter().enumerate() {
        let more = GAP.len() + column.len();
        if taken + more > width && number > begin {
            groups.push(&others[begin..number]);
            (begin, taken) = (number, first.end);
        }
        taken += more;
    }
    groups.push(&others[begin..]);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_stand_below() {
        let table = [
            "step            median    best   worst   MB/s   hits",
            "scan, first     566 ms  557 ms  729 ms   1768  100 %",
            "write             10 s     9 s    13 s     98      -",
        ];
        let expected = [
            "step            median    best",
            "scan, first     566 ms  557 ms",
            "write             10 s     9 s",
            "",
            "step          worst  MB/s   hits",
            "scan, first  729 ms  1768  100 %",
            "write          13 s    98      -",
        ];
        let folded = folded(&table, 33).unwrap();
        let squeezed = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let squeezed_expected: Vec<String> =
            expected.iter().map(|line| squeezed(&(*line).to_owned())).collect();
        assert_eq!(folded.iter().map(squeezed).collect::<Vec<_>>(), squeezed_expected);
        assert!(folded.iter().all(|line| measure_text_width(line) <= 33), "{folded:#?}");
    }

    #[test]
    fn rows_that_say_nothing_in_a_further_table_are_left_out() {
        let table = [
            "figure           baseline  candidate  verdict",
            "tps                12,089     13,297  improved",
            "latency-p50         0.120      0.097  -",
        ];
        let expected = [
            "figure       baseline  candidate",
            "tps            12,089     13,297",
            "latency-p50     0.120      0.097",
            "",
            "figure       verdict",
            "tps          improved",
        ];
        assert_eq!(folded(&table, 40).unwrap(), expected);
    }

    #[test]
    fn text_in_the_last_column_wraps_below_itself() {
        let table = [
            "table   rows  rows because",
            "orders   500  as many as the size asked for leaves room for",
            "日本      20  few",
        ];
        let expected = [
            "table   rows  rows because",
            "orders   500  as many as the size asked",
            "              for leaves room for",
            "日本      20  few",
        ];
        assert_eq!(folded(&table, 40).unwrap(), expected);
    }

    #[test]
    fn what_fits_or_is_no_table_stays() {
        let table = ["a   b   c", "1   2   3"];
        assert_eq!(folded(&table, 9), None);
        let plan = ["plan", "  method       direct", "  size         1 GB and so on"];
        assert_eq!(folded(&plan, 20), None);
        assert_eq!(folded(&["a  b  \x1b[31mred\x1b[0m", "1  2  3"], 5), None);
    }

    #[test]
    fn no_cell_is_lost_at_any_width() {
        let table =
            ["one      two  three  four", "first      1      2  3 and more", "of all    10          -"];
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for width in 0..40 {
            let Some(folded) = folded(&table, width) else { continue };
            let words: Vec<String> = folded.iter().flat_map(|line| cells(line)).collect();
            for word in table.iter().flat_map(|line| cells(line)).filter(|word| word != "-") {
                assert!(words.contains(&word), "{width}: {word} is lost: {folded:#?}");
            }
        }
    }
}
