//! The flags that are about settings and no settings themselves.

use std::path::PathBuf;

/// Where settings come from, and a look at them.
#[derive(Clone, Debug, clap::Args)]
pub struct ConfigArgs {
    /// Read settings from a TOML file; variables and flags go before it. PRISM_JUDGE_CONFIG names one as well.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check all settings, print them as a TOML file that says where each is from, without secrets, and end.
    #[arg(long)]
    pub print_config: bool,
}

/// Long names of these flags.
pub const FLAGS: [&str; 2] = ["config", "print-config"];
