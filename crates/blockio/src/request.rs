//! The request: sizes, clients, statements.

use measure::human::bytes;
use serde::Serialize;

use crate::error::BlockioError;

/// Smallest size, bytes: of a smaller table, a hundredth would be less than a copy of the settings.
pub(crate) const SMALLEST: u64 = 10_000_000;
/// Largest size of a table, bytes: PostgreSQL's limit with blocks of 8 kB is 32 TiB.
pub(crate) const LARGEST: u64 = 30_000_000_000_000;

/// The statements to run. Results of different modes are not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// pgrig's own: the same rows on every server.
    Own,
    /// The statements of the published Complete Block Check, whose rows are the server's settings.
    Compat,
}

impl Mode {
    /// The name in run documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Compat => "compat",
        }
    }
}

/// The request, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The statements: pgrig's or the published ones.
    pub mode: Mode,
    /// Size of each client's table, bytes; in [`Mode::Compat`] 10⁹ for each "GB" of the article, which makes about 9
    /// % more.
    pub size: u64,
    /// Number of trials; each runs all steps.
    pub trials: u16,
    /// Number of connections at once, each with a table of its own.
    pub clients: u16,
    /// Schema of the tables; none for a schema of pgrig's own.
    pub schema: Option<String>,
    /// Whether the tables stay after the run.
    pub keep: bool,
    /// Memory of the server's machine as the user knows it, bytes.
    pub memory: Option<u64>,
}

impl Request {
    /// Refuses requests that cannot work on any server.
    ///
    /// # Errors
    /// [`BlockioError::Size`], [`BlockioError::Combination`].
    pub fn check(&self) -> Result<(), BlockioError> {
        if !(SMALLEST..=LARGEST).contains(&self.size) {
            return Err(BlockioError::Size { size: bytes(self.size) });
        }
        if self.mode == Mode::Compat && self.clients > 1 {
            return Err(BlockioError::Combination(
                "--compat runs the published statements, which use one client: leave out --clients or --compat",
            ));
        }
        Ok(())
    }

    /// The article's `SIZEGB`, as its reader types it.
    pub(super) fn size_gb(&self) -> String {
        (self.size as f64 / 1e9).to_string()
    }
}
