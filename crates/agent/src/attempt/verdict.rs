//! What the end of an attempt's processes means for it, in words for its user.

use super::{Halt, Stop, command, logs::Logs, parallel, process::AllEnded, serve, share};
use crate::keeper::LinkError;
use domain::{Assignment, job::Failure};

/// What the end of the processes means for the attempt.
pub(super) fn verdict(ended: &AllEnded, assignment: &Assignment, logs: &Logs) -> Result<(), Halt> {
    if let Some(reason) = ended.stopped.clone() {
        return Err(Halt::Stopped(if ended.leaves { Stop::Leave(reason) } else { Stop::Asked(reason) }));
    }
    if ended.timed_out {
        let seconds = assignment.plan.timeout_seconds.unwrap_or(0);
        let reason = format!("it ran longer than its `limits.timeout` of {seconds} s");
        return Err(Halt::Stopped(Stop::Asked(reason)));
    }
    if let Some(unfit) = ended.unfit.clone() {
        return Err(Failure { last_lines: logs.tail(ended.rank), ..unfit }.into());
    }
    let replica = assignment.plan.serve.as_ref();
    let of_rank = if share::ranks(assignment) > 1 { format!(" of rank {}", ended.rank) } else { String::new() };
    let mut failure = match (ended.code, ended.signal) {
        (Some(0), _) if replica.is_some() => {
            Failure::new("ReplicaEnded", "the command ended by itself; a replica has to answer until it is stopped")
        }
        (Some(0), _) => return Ok(()),
        _ if ended.lost => Failure::new(
            "ExitCodeLost",
            "the keeper process was killed while the command ran, so how the command ended is not known; see its log",
        ),
        _ if ended.out_of_memory => {
            let planned = assignment.plan.limits.map_or(0, |limits| limits.memory_bytes);
            let limit = if ended.memory_limit > 0 { ended.memory_limit } else { planned };
            let limit = domain::resources::humane_bytes(limit);
            Failure::new(
                "UserError.OutOfMemory",
                format!("the command{of_rank} used more memory than its limit of {limit} and was killed"),
            )
        }
        (Some(127), _) => Failure::new(
            "UserError.CommandNotFound",
            format!("the command{of_rank} exited with code 127: a program was not found"),
        ),
        (Some(code), _) => Failure::new("UserError.ExitCode", format!("the command{of_rank} exited with code {code}")),
        (None, Some(signal)) => {
            let hint = if signal == 9 { "; the machine may have run out of memory" } else { "" };
            Failure::new(
                "UserError.Signal",
                format!("the command{of_rank} was ended by signal {signal} ({}){hint}", name_of(signal)),
            )
        }
        (None, None) => Failure::new("ExitCodeLost", "how the command ended is not known"),
    };
    failure.exit_code = ended.code.or_else(|| ended.signal.map(|signal| 128 + signal));
    failure.signal = ended.signal;
    failure.last_lines = logs.tail(ended.rank);
    if assignment.plan.parallel.is_some() {
        failure = parallel::explain(failure, &logs.end(ended.rank));
    }
    if let Some(serving) = replica {
        failure = serve::explain(serving, failure, &logs.end(ended.rank));
    }
    Err(failure.into())
}

/// Why a process is none.
pub(super) fn unstarted(program: &str, error: &LinkError) -> Failure {
    match error {
        LinkError::Missing if command::is_shell(program) => Failure {
            exit_code: Some(127),
            ..Failure::new(
                "UserError.NoShell",
                format!(
                    "there is no `{program}` here, and the command needs a shell (next step: use an image with one, or make the command a single program with plain arguments)"
                ),
            )
        },
        LinkError::Missing => Failure {
            exit_code: Some(127),
            ..Failure::new("UserError.CommandNotFound", format!("the program `{program}` was not found on the node"))
        },
        other => Failure {
            exit_code: Some(126),
            ..Failure::new("UserError.CommandNotStarted", format!("`{program}` did not start: {other}"))
        },
    }
}

fn name_of(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => "see `man 7 signal`",
    }
}
