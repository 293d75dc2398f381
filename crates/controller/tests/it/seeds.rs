//! Histories by seed, on all processors. `SIM_SEED=n` runs one seed, `SIM_SEEDS=n` that many; one that fails names itself.

use std::thread;

/// Runs each seed to its end; the first that fails on a thread is the last there.
pub(crate) fn each(usual: u64, run: impl Fn(u64) + Sync) {
    let from_env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match from_env("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("SIM_SEEDS").unwrap_or(usual),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for worker in 0..threads {
            let (mine, run) = (seeds.clone().skip(worker).step_by(threads), &run);
            scope.spawn(move || mine.for_each(|seed| named(seed, || run(seed))));
        }
    });
}

/// A history with time of its own.
pub(crate) fn alone<T>(history: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(history)
}

/// Says which seed it was when a check fails.
fn named(seed: u64, run: impl FnOnce()) {
    struct Named(u64);
    impl Drop for Named {
        fn drop(&mut self) {
            if thread::panicking() {
                eprintln!("seed {} failed; run it alone with `SIM_SEED={}`", self.0, self.0);
            }
        }
    }
    let _named = Named(seed);
    run();
}
