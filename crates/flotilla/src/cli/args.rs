//! Options that every command for agents takes.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A flag that may also say no, so that it can overrule what is configured: `--verbose`, `--verbose=false`.
macro_rules! switch {
    () => {
        clap::builder::BoolishValueParser::new()
    };
}
pub(super) use switch;

/// A number to count from one on.
pub fn from_one(text: &str) -> Result<u64, String> {
    let number = text.parse::<u64>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "must be a whole number, 1 or more".to_owned())
}

/// A whole number as the protocol has them, and not below `least`.
pub fn at_least(least: i32) -> impl Fn(&str) -> Result<i32, String> + Clone {
    move |text| {
        let number = text.parse::<i32>().ok().filter(|number| *number >= least);
        number.ok_or_else(|| format!("must be a whole number, {least} or more"))
    }
}

/// Where to listen: this machine's address, not a name, and a port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:7420 or [::1]:7420".to_owned())
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which agent")]
pub struct ClientArgs {
    /// The agent: a host, the URL of its card, or the path of a card
    #[arg(short, long, value_name = "REF", global = true)]
    pub agent_card: Option<String>,
    /// An agent of the hub, by its name
    #[arg(long, value_name = "NAME", global = true, conflicts_with = "agent_card")]
    pub agent: Option<String>,
    /// The hub to use where no card is named (FLOTILLA_URL); its key is
    /// FLOTILLA_KEY
    #[arg(long, value_name = "URL", global = true)]
    pub hub: Option<String>,
    /// Prefer this binding: JSONRPC, HTTP+JSON or GRPC (may be repeated, the
    /// best first)
    #[arg(long, value_name = "BINDING", global = true)]
    pub transport: Vec<String>,
    /// Protocol version: one of 1.x to signal, or 0.3 to speak A2A 0.3 instead
    #[arg(long, value_name = "VERSION", global = true)]
    pub a2a_version: Option<String>,
    /// Add a service parameter, sent as a header (may be repeated)
    #[arg(long, value_name = "K:V", global = true)]
    pub svc_param: Vec<String>,

    /// Bearer token. Others on this machine can see it in the process list,
    /// and it stays in the shell's history: better set A2ACLI_BEARER
    #[arg(long, value_name = "TOKEN", global = true, help_heading = "Credentials")]
    pub bearer: Option<String>,
    /// API key. As visible to others as --bearer: better set A2ACLI_API_KEY
    #[arg(long, value_name = "KEY", global = true, help_heading = "Credentials")]
    pub api_key: Option<String>,
    /// Accept any certificate (development only; warns)
    #[arg(
        long, value_name = "BOOL", global = true, help_heading = "Credentials", num_args = 0..=1,
        require_equals = true, default_missing_value = "true", hide_possible_values = true, value_parser = switch!()
    )]
    pub insecure: Option<bool>,

    /// Format of the result: text or json
    #[arg(short, long, value_name = "FORMAT", global = true, help_heading = "Output")]
    pub output: Option<String>,
    /// Show all that was exchanged: history, metadata, every part
    #[arg(
        long, value_name = "BOOL", global = true, help_heading = "Output", num_args = 0..=1,
        require_equals = true, default_missing_value = "true", hide_possible_values = true, value_parser = switch!()
    )]
    pub verbose: Option<bool>,
    /// Log what goes over the wire to standard error, credentials masked
    #[arg(
        long, value_name = "BOOL", global = true, help_heading = "Output", num_args = 0..=1,
        require_equals = true, default_missing_value = "true", hide_possible_values = true, value_parser = switch!()
    )]
    pub debug: Option<bool>,
    /// Give up after this long, such as 30s or 5m
    #[arg(long, value_name = "TIME", global = true, help_heading = "Output")]
    pub timeout: Option<String>,
    /// A .env file with settings, in place of the nearest one
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub config: Option<PathBuf>,

    /// Where the hub is that a configuration at hand describes, if nobody names one.
    #[arg(skip)]
    pub configured_hub: Option<String>,
}

/// Options of commands that speak with the hub itself, and call no agent.
#[derive(Debug, Clone, Default, Args)]
pub struct HubArgs {
    /// The hub (FLOTILLA_URL) [default: http://127.0.0.1:7420]
    #[arg(long, value_name = "URL", global = true)]
    pub hub: Option<String>,
    /// Accept any certificate (development only; warns)
    #[arg(
        long, value_name = "BOOL", global = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true, value_parser = switch!()
    )]
    pub insecure: Option<bool>,
    /// Format of the result: text or json
    #[arg(short, long, value_name = "FORMAT", global = true, help_heading = "Output")]
    pub output: Option<String>,
    /// Log what goes over the wire to standard error, credentials masked
    #[arg(
        long, value_name = "BOOL", global = true, help_heading = "Output", num_args = 0..=1,
        require_equals = true, default_missing_value = "true", hide_possible_values = true, value_parser = switch!()
    )]
    pub debug: Option<bool>,
    /// Give up after this long, such as 30s or 5m
    #[arg(long, value_name = "TIME", global = true, help_heading = "Output")]
    pub timeout: Option<String>,
    /// A .env file with settings, in place of the nearest one
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub config: Option<PathBuf>,
}

impl HubArgs {
    /// The same among all options there are.
    pub fn client(&self) -> ClientArgs {
        let Self { hub, insecure, output, debug, timeout, config } = self.clone();
        ClientArgs { hub, insecure, output, debug, timeout, config, ..ClientArgs::default() }
    }
}
