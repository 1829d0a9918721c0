//! Arguments of a forecast.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::app::duration::Length;
use crate::app::size::Size;
use crate::cmd::backup::load::LoadArgs;

/// Size that is measured at most, if nothing else is asked for.
pub(crate) const UP_TO: u64 = 256_000_000;
/// Percentage of rows that are updated before an incremental backup.
pub(crate) const CHANGES: f64 = 1.0;

/// Options of a forecast.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Forecast")]
pub(crate) struct SizedArgs {
    /// Forecast for tables and indexes of SIZE in total: pgrig fills three smaller databases on its own PostgreSQL, and rehearses
    /// each. With --model, or with -d and --up-to, SIZE defaults to the size of the original
    ///
    /// pgrig forecasts if you give --size, --up-to, --model or --schema-file. Otherwise it rehearses the database itself.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,

    /// Fill the largest of the three databases with SIZE; the others get a third and a ninth [default: 256MB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) up_to: Option<Size>,

    /// Fill the tables of this model (see pgrig model) [default: if -d, PGHOST or another variable names a database, a model from its
    /// catalogs; else pgbench's tables]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["schema_file", "dbname", "host", "port", "username"])]
    pub(crate) model: Option<PathBuf>,

    /// Fill the tables that this SQL file creates, for example the output of pg_dump --schema-only; - is standard input
    #[arg(long, aliases = ["ddl", "from"], value_name = "FILE", conflicts_with_all = ["dbname", "host", "port", "username"])]
    pub(crate) schema_file: Option<PathBuf>,

    /// For incremental backups: after the full backup, update PERCENT of each table's rows, chosen at random [default: 1]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) changes: Option<Percent>,

    /// Print the price of each backup for a month, if 10^9 bytes cost PRICE a month
    #[arg(long, value_name = "PRICE")]
    pub(crate) price_per_gb_month: Option<Price>,

    /// Print for each way whether its restore takes at most DURATION. pgrig compares DURATION with the upper end of the interval of
    /// the forecast. Without a forecast, it uses the interval of the measured restore times; with fewer than six trials, it uses
    /// the slowest restore. If no way meets DURATION, exit with status 3
    #[arg(long, value_name = "DURATION")]
    pub(crate) rto: Option<Length>,

    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

impl SizedArgs {
    /// Whether a forecast is asked for.
    pub(crate) fn any(&self) -> bool {
        self.size.is_some() || self.up_to.is_some() || self.model.is_some() || self.schema_file.is_some()
    }
}

/// A part of 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percent(pub(crate) f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().trim_end_matches('%').trim_end();
        match number.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Self(percent)),
            _ => Err(format!(
                "\"{text}\" is not a percentage: give a number above 0 and at most 100, for example 5"
            )),
        }
    }
}

/// A price of 10^9 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Price(pub(crate) f64);

impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse::<f64>() {
            Ok(price) if price > 0.0 && price.is_finite() => Ok(Self(price)),
            _ => Err(format!("\"{text}\" is not a price: give a number above 0, for example 0.023")),
        }
    }
}
