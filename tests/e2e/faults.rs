//! Bad input and faults: each gets words that name the place, the cause and the next step, the right exit code, and
//! leaves the server and other jobs well.

mod code;
mod database;
pub(crate) mod door;
mod files;
pub(crate) mod machine;
mod outputs;
mod processes;
mod secrets;
mod tokens;

/// Whether this process may do what only root may. Says so aloud where not.
fn root(test: &str) -> bool {
    let root = std::fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !root {
        eprintln!("SKIPPED: {test}: needs root");
    }
    root
}
