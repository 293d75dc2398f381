//! A deployment that goes to zero and comes back, by the bench's own script in its shortest form.

use crate::harness::{binary, said};
use std::{path::Path, process::Command};

#[test]
fn scale_to_zero_and_back_loses_no_request() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/serve.py");
    let mut bench = Command::new("timeout");
    bench.arg("400").arg("python3").arg(script).arg("zero").env("PEREGRINE_BIN", binary());
    bench.env("PEREGRINE_REPLICA", "python").env("CYCLES", "6").env("LANES", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    let done = said(bench.output().unwrap());
    eprintln!("{}", done.out);
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
}
