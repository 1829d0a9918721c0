//! Arguments of `pgrig completions`.

use clap::Args;
use clap_complete::Shell;

/// Print a script that completes pgrig's commands and options in a shell
///
/// The shell reads the script when it starts. PowerShell: add `pgrig completions powershell | Out-String |
/// Invoke-Expression` to the profile.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig completions bash > ~/.local/share/bash-completion/completions/pgrig\n  \
    pgrig completions zsh > ~/.zfunc/_pgrig    # if fpath has ~/.zfunc\n  \
    pgrig completions fish > ~/.config/fish/completions/pgrig.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}
