//! The binary `peregrine`: the command line, and the roles it starts.
//!
//! `args` is what people type, `config` what they have set, `commands` what is done about it, `output` how it is
//! shown. `roles` runs a server or an agent, `local` finds or starts the server of this machine.

mod args;
mod assemble;
mod commands;
mod config;
mod doctor;
mod failure;
mod gen_docs;
mod local;
mod node;
#[cfg(feature = "kubernetes")]
mod operator;
mod output;
mod outside;
mod pod;
mod post;
mod roles;
mod serving;
mod sites;
mod spec_file;
mod upload;

use args::{
    Cli, Noun,
    machine::{ServerVerb, Start},
};
use clap::Parser;
use commands::Context;
use config::Flags;
use failure::{Done, Exit, Failure};
use output::Output;
use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(args::without_ml(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(cli) {
        Ok(code) => code,
        Err(failure) => tell(&failure),
    }
}

fn run(mut cli: Cli) -> Done<ExitCode> {
    if cli.global.debug {
        trace_to_stderr();
    }
    let registry = cli.registry();
    let mut flags = cli.global.settings();
    if let Noun::Server(ServerVerb::Start(start)) = &cli.noun {
        flags.extend(start_settings(start));
    }
    let mut config = config::load(cli.global.home.as_deref(), &flags)?;
    config.workspace = registry.unwrap_or(config.workspace);
    if cli.noun.is_local() {
        config.url = None;
    }
    let output = Output::new(config.output, cli.global.query.as_deref(), cli.global.quiet)?;
    commands::run(&Context { config, output }, cli.noun)
}

/// What the flags of `server start` say about settings.
fn start_settings(start: &Start) -> Flags {
    let path = |path: &std::path::PathBuf| path.display().to_string();
    let given = [
        ("server.listen", "--listen", start.listen.clone()),
        ("server.http", "--http", start.http.clone()),
        ("server.tls_cert", "--tls-cert", start.tls_cert.as_ref().map(path)),
        ("server.tls_key", "--tls-key", start.tls_key.as_ref().map(path)),
        ("store.url", "--store-url", start.store_url.clone()),
    ];
    given.into_iter().filter_map(|(key, flag, value)| Some((key, flag, value?))).collect()
}

/// What the parser has to say: help on stdout, mistakes on stderr.
fn usage(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    if error.use_stderr() {
        let _ = std::io::stderr().write_all(text.as_bytes());
        return ExitCode::from(Exit::Input as u8);
    }
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn tell(failure: &Failure) -> ExitCode {
    if failure.exit != Exit::BrokenPipe {
        let mut text = failure.to_string();
        // Only the word that opens the block; the text reads the same without colour.
        if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
            text = text.replacen("error:", "\x1b[1;31merror:\x1b[0m", 1);
        }
        let _ = writeln!(std::io::stderr(), "{text}");
    }
    ExitCode::from(failure.exit as u8)
}

fn trace_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::new("debug");
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
