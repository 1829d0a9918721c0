//! The messages of VACUUM (VERBOSE).

use serde::Serialize;

/// Bytes of one MB in PostgreSQL's messages (`BLCKSZ / (1024 * 1024)`, vacuumlazy.c).
const MEBIBYTE: f64 = 1_048_576.0;

/// The server's own rates of its VACUUM, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Rate of blocks not found in shared_buffers.
    pub read: f64,
    /// Rate of blocks made dirty.
    pub write: f64,
}

impl Rates {
    /// The sum over several clients; none if one of them is none.
    pub(crate) fn sum(all: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let both = |sum: Self, next: Self| Self { read: sum.read + next.read, write: sum.write + next.write };
        all.into_iter().reduce(|sum, next| sum.zip(next).map(|(sum, next)| both(sum, next))).flatten()
    }

    /// Reads the rates of the table from the first message that has them (messages of its TOAST
    /// table and ANALYZE come later). None before PostgreSQL 15, or if the server's messages are in
    /// another language.
    pub(crate) fn of<'m>(messages: impl IntoIterator<Item = &'m str>) -> Option<Self> {
        messages.into_iter().find_map(|message| {
            let rate = |name: &str| {
                let (_, rest) = message.split_once(name)?;
                let (number, _) = rest.split_once(" MB/s")?;
                Some(number.trim().parse::<f64>().ok()? * MEBIBYTE)
            };
            Some(Self { read: rate("avg read rate:")?, write: rate("avg write rate:")? })
        })
    }

    /// The rate as PostgreSQL prints it.
    pub fn as_printed(rate: f64) -> String {
        format!("{:.3}", rate / MEBIBYTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_own_rates_are_taken() {
        let table = "finished vacuuming \"x.y.z\": index scans: 0\n\
                     avg read rate: 937.057 MB/s, avg write rate: 1110.027 MB/s\nbuffer usage: 1 hits";
        let other = "finished vacuuming: avg read rate: 1.000 MB/s, avg write rate: 2.000 MB/s";
        let rates = Rates::of(["vacuuming \"x.y.z\"", table, other]).unwrap();
        assert_eq!(Rates::as_printed(rates.read), "937.057");
        assert_eq!(Rates::as_printed(rates.write), "1110.027");
        assert_eq!(Rates::of(["\"z\": found 0 removable, 352 nonremovable row versions"]), None);
    }
}
