//! Commands of other tools that back up and restore.

use backup::{Tool, Way};
use clap::Args;

use crate::app::failure::Usage;

/// The name of a single tool without one.
const NAME: &str = "tool";

/// Options of other tools.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Other tools")]
#[expect(clippy::struct_field_names, reason = "they are the names of the options")]
pub(crate) struct ToolArgs {
    /// Rehearse another tool: back up with this shell command (see below). For several tools, repeat
    /// --tool-backup and --tool-restore together
    #[arg(long, value_name = "COMMAND", requires = "tool_restore")]
    pub(crate) tool_backup: Vec<String>,

    /// Restore the backup of --tool-backup with this shell command
    #[arg(long, value_name = "COMMAND", requires = "tool_backup")]
    pub(crate) tool_restore: Vec<String>,

    /// Store WAL with this shell command, for a --tool-restore with {time}; needs --load. pgrig starts it after the backup. After the load,
    /// pgrig closes its standard input: the command must then store the remaining WAL, and exit with 0. If several --tool-restore have {time}, give one --tool-wal for each of them, in the same order
    #[arg(long, value_name = "COMMAND", requires_all = ["tool_backup", "load"])]
    pub(crate) tool_wal: Vec<String>,

    /// Name of the tool in the results, for example pgbackrest; one for each --tool-backup [default: tool]
    #[arg(long, value_name = "NAME", requires = "tool_backup")]
    pub(crate) tool_name: Vec<String>,
}

impl ToolArgs {
    /// The ways of these tools.
    pub(crate) fn ways(&self) -> Result<Vec<Way>, Usage> {
        let Self { tool_backup: backups, tool_restore: restores, tool_wal: archivers, tool_name: names } =
            self;
        if backups.len() != restores.len() {
            return Err(Usage(format!(
                "there are {} --tool-backup and {} --tool-restore: give one of each for each tool, in the same order",
                backups.len(),
                restores.len()
            )));
        }
        let is_named = names.len() == backups.len();
        if !(is_named || names.is_empty() && backups.len() == 1) {
            return Err(Usage(format!(
                "there are {} --tool-backup and {} --tool-name: give one of each for each tool, in the same order",
                backups.len(),
                names.len()
            )));
        }
        let mut archivers = archivers.iter().map(String::as_str);
        let mut ways: Vec<Way> = Vec::new();
        for (number, (backup, restore)) in backups.iter().zip(restores).enumerate() {
            let name = names.get(number).map_or(NAME, String::as_str);
            let wal = if Tool::is_to_a_time(restore) { archivers.next() } else { None };
            let way = Tool::new(name, backup, restore, wal).map(Way::of_tool);
            let way = way.map_err(|error| Usage(error.to_string()))?;
            if ways.iter().any(|other| other.to_string() == name) {
                return Err(Usage(format!(
                    "two tools have the name {name}: give different ones with --tool-name"
                )));
            }
            ways.push(way);
        }
        if let Some(left) = archivers.next() {
            return Err(Usage(format!(
                "--tool-wal \"{left}\" belongs to no --tool-restore: give {{time}} in the restore command of each tool that stores WAL"
            )));
        }
        Ok(ways)
    }
}
