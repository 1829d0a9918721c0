//! Arguments of `pgrig completions`.

use clap::Args;
use clap_complete::Shell;

/// Print a script that completes pgrig's commands and options in a shell
///
/// Write the script into the directory from which your shell loads completions; the directory must exist. PowerShell: add `pgrig completions
/// powershell | Out-String | Invoke-Expression` to the profile.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig completions bash > ~/.local/share/bash-completion/completions/pgrig\n  \
    pgrig completions zsh > ~/.zfunc/_pgrig      # a directory of fpath\n  \
    pgrig completions fish > ~/.config/fish/completions/pgrig.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}
