//! Connections to replicas that are open and idle; each worker has its own.

use crate::table::Replica;
use std::{cell::RefCell, collections::HashMap, io, time::Duration};
use tokio::{net::TcpStream, time::Instant};

/// The most idle connections kept for one replica.
const KEPT: usize = 256;

/// Idle connections by replica, last used last.
#[derive(Debug, Default)]
pub(crate) struct Pool(RefCell<HashMap<u64, Vec<(TcpStream, Instant)>>>);

impl Pool {
    /// An open connection that was used less than `idle` ago. Many servers close what is idle for two seconds, and a
    /// request sent into that moment would be lost.
    pub(crate) fn take(&self, replica: &Replica, idle: Duration, now: Instant) -> Option<TcpStream> {
        let mut pool = self.0.borrow_mut();
        let open = pool.get_mut(&replica.id)?;
        while let Some((stream, since)) = open.pop() {
            if now.duration_since(since) >= idle {
                open.clear();
                return None;
            }
            // A replica that has closed its end, or talks unasked, is not used again.
            if matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                return Some(stream);
            }
        }
        None
    }

    pub(crate) fn put(&self, replica: &Replica, stream: TcpStream, now: Instant) {
        let mut pool = self.0.borrow_mut();
        let open = pool.entry(replica.id).or_default();
        if open.len() < KEPT {
            open.push((stream, now));
        }
    }

    /// Closes what nobody used for `idle`.
    pub(crate) fn sweep(&self, idle: Duration, now: Instant) {
        self.0.borrow_mut().retain(|_, open| {
            open.retain(|(_, since)| now.duration_since(*since) < idle);
            !open.is_empty()
        });
    }
}
