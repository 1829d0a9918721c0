//! `pgrig tps --matrix`'s arguments, and the matrix that they make.

use clap::Args;
use tps::matrix::{Axis, Matrix};

use crate::app::failure::Usage;
use crate::cmd::tps::args::TpsArgs;

/// Default number of trials of each cell.
const TRIALS: usize = 3;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Matrix")]
pub(crate) struct MatrixArgs {
    /// Measure every combination (cell) of the values of all axes. Give --matrix once for each axis. Axes:
    /// durability; clients=1,2,4; protocol=simple,prepared; a server setting, for example work_mem=4MB,64MB. The values of durability are
    /// normal, async (synchronous_commit off), dangerous (fsync, full_page_writes and synchronous_commit off) and unlogged (unlogged tables); durability=normal,async measures two of them. pgrig restores changed settings and tables at the end,
    /// also after an error or Ctrl-C
    #[arg(long, value_name = "AXIS", value_delimiter = ' ')]
    pub(crate) matrix: Vec<Axis>,

    /// With scripts of your own (-f): make these tables unlogged for durability=unlogged
    #[arg(long, value_name = "TABLE,TABLE", value_delimiter = ',', requires = "matrix")]
    pub(crate) tables: Vec<String>,

    /// Permit pgrig to turn off fsync and full_page_writes, or to make tables unlogged, on a server that is not its own. During the
    /// measurement, a crash of the machine may then destroy every database of that server, and a crash of the server
    /// empties the unlogged tables
    #[arg(long, requires = "matrix")]
    pub(crate) allow_dangerous_settings: bool,
}

impl MatrixArgs {
    /// Whether a matrix is asked for.
    pub(crate) fn is_asked(&self) -> bool {
        !self.matrix.is_empty()
    }
}

impl TpsArgs {
    /// The matrix. Each --set is an axis too.
    ///
    /// # Errors
    /// If an option does not go with a matrix.
    pub(crate) fn matrix(&self) -> Result<Matrix, Usage> {
        if !self.fail_if.is_empty() {
            return Err(Usage(
                "--fail-if judges one run, not a matrix: leave out --fail-if or --matrix".to_owned(),
            ));
        }
        let set = self.server.address.embedded.set.iter().map(|(name, values)| {
            format!("{name}={values}")
                .parse()
                .map_err(|error| Usage(format!("--set {name}={values}: {error}")))
        });
        let axes = self.matrix.matrix.iter().cloned().map(Ok).chain(set).collect::<Result<Vec<Axis>, _>>()?;
        let given = [("-c", "clients", self.client.is_some()), ("-M", "protocol", self.protocol.is_some())];
        for (option, name, is_given) in given {
            if is_given && axes.iter().any(|axis| axis.name() == name) {
                let text = format!("--matrix {name}=… sets the {name}: leave out {option}");
                return Err(Usage(text));
            }
        }
        Ok(Matrix {
            axes,
            trials: self.trials.map_or(TRIALS, usize::from),
            tables: self.matrix.tables.clone(),
            allow_dangerous: self.matrix.allow_dangerous_settings,
        })
    }
}
