//! Arguments of `pgrig completions`.

use clap::Args;
use clap_complete::Shell;

/// Print a script that completes pgrig's commands and options in a shell
///
/// Write the script into the directory from which your shell loads completions. PowerShell: add `pgrig completions
/// powershell | Out-String | Invoke-Expression` to the profile.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig completions bash > pgrig         # for bash-completion\n  \
    pgrig completions zsh > _pgrig         # for a directory of fpath\n  \
    pgrig completions fish > pgrig.fish    # for ~/.config/fish/completions")]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}
