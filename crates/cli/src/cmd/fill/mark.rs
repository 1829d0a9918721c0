//! Parses marks of a volume.

use std::str::FromStr;

use fill::limits::{Mark, Percent};

use crate::app::size::Size;

/// Marks by percent used (`80%`) or bytes free (`10GB`), separated by commas, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marks(pub(crate) Vec<Mark>);

impl FromStr for Marks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut marks = Vec::new();
        for part in text.split(',') {
            let mark = mark(part.trim())?;
            if !marks.contains(&mark) {
                marks.push(mark);
            }
        }
        Ok(Self(marks))
    }
}

fn mark(text: &str) -> Result<Mark, String> {
    if text.is_empty() {
        return Err("a mark is missing: give them like 80%,90%,10GB".to_owned());
    }
    let Some(number) = text.strip_suffix('%') else {
        let size = text.parse::<Size>().map_err(|_| {
            format!("\"{text}\" is not a mark: give percent used, like 80%, or a free size, like 10GB")
        })?;
        return Ok(Mark::Free(size.0));
    };
    let percent = number.trim_end().parse().ok().and_then(Percent::new);
    percent
        .map(Mark::Used)
        .ok_or_else(|| format!("\"{text}\" is not a mark: give a whole number of percent, 1% to 99%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(percent: u8) -> Mark {
        Mark::Used(Percent::new(percent).unwrap())
    }

    #[test]
    fn marks_are_percent_used_or_bytes_free() {
        for (text, marks) in [
            ("80%", vec![used(80)]),
            ("80%, 90 %,95%", vec![used(80), used(90), used(95)]),
            ("10GB,1%,99%", vec![Mark::Free(10_000_000_000), used(1), used(99)]),
            ("80%,80%,1GiB,1GiB", vec![used(80), Mark::Free(1 << 30)]),
        ] {
            assert_eq!(text.parse(), Ok(Marks(marks)), "{text}");
        }
    }

    #[test]
    fn what_is_no_mark_says_how_to_write_one() {
        for (text, remedy) in [
            ("", "80%,90%,10GB"),
            ("80%,", "80%,90%,10GB"),
            ("80", "80%"),
            ("0%", "1% to 99%"),
            ("100%", "1% to 99%"),
            ("97.5%", "a whole number of percent"),
            ("-5%", "1% to 99%"),
            ("most", "percent used"),
        ] {
            let error = text.parse::<Marks>().unwrap_err();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }
}
