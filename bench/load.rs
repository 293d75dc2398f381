//! Asks a tracking server over plain HTTP on many kept-alive connections, as fast as it answers, and says how fast that was.
//! Usage: load HOST:PORT TOKEN PREFIX CONNECTIONS SECONDS LIMIT WORK..., where WORK is one of
//!   batch METRICS[@FROM] RUN...   POST runs/log-batch; each connection logs to a run of its own, no point is sent twice; FROM is the first
//!   create EXPERIMENT        POST runs/create
//!   fill EXPERIMENT          a run with two metrics, a param and a tag (create, then log-batch); one line of answer a run
//!   post PATH BODY           the same request over and over
//!   get PATH                 the same request over and over
//! LIMIT ends it after so many requests (0: none), SECONDS after so long. Standard library only: `rustc -O load.rs`.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Keys of a batch: a training loop that logs this many metrics each step.
const KEYS: u64 = 20;

struct Line {
    stream: BufReader<TcpStream>,
    host: String,
    token: String,
    answer: Vec<u8>,
    /// How long the last answer took, from the first byte sent to the last received.
    spent: Duration,
}

impl Line {
    fn open(host: &str, token: &str) -> Line {
        let stream = TcpStream::connect(host).expect("the server listens");
        stream.set_nodelay(true).expect("loopback takes options");
        Line {
            stream: BufReader::with_capacity(1 << 16, stream),
            host: host.to_owned(),
            token: token.to_owned(),
            answer: Vec::new(),
            spent: Duration::ZERO,
        }
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> u16 {
        let allow =
            if self.token.is_empty() { String::new() } else { format!("authorization: Bearer {}\r\n", self.token) };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{allow}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        let begin = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes()).expect("the server reads");
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the server answers");
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("an answer has a status");
        let (mut length, mut chunked, mut last) = (0, false, false);
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("an answer has headers");
            let Some((name, value)) = line.split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().expect("a length is a number"),
                "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
                "connection" => last = value.trim().eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        self.answer.clear();
        if chunked {
            self.chunks()
        } else {
            self.take(length)
        }
        self.spent = begin.elapsed();
        if last {
            let again = Line::open(&self.host, &self.token);
            self.stream = again.stream;
        }
        status
    }

    fn take(&mut self, length: usize) {
        let from = self.answer.len();
        self.answer.resize(from + length, 0);
        self.stream.read_exact(&mut self.answer[from..]).expect("an answer has its body");
    }

    fn chunks(&mut self) {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a chunk has a length");
            let length = usize::from_str_radix(line.trim(), 16).expect("a length is a number");
            self.take(length + 2);
            self.answer.truncate(self.answer.len() - 2);
            if length == 0 {
                return;
            }
        }
    }

    /// The value of a text field of the answer; enough JSON for the ids asked for here.
    fn field(&self, name: &str) -> String {
        let text = String::from_utf8_lossy(&self.answer);
        let at = text.find(&format!("\"{name}\"")).unwrap_or_else(|| panic!("no `{name}` in {text}"));
        text[at + name.len() + 2..].split('"').nth(1).expect("a field has a value").to_owned()
    }
}

/// A curve with noise, so that values do not compress better than those of real training.
fn value(n: u64) -> f64 {
    let noise = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11;
    1.0 / (1.0 + n as f64 * 0.001) + noise as f64 / (1u64 << 53) as f64 * 0.1
}

fn batch(run: &str, metrics: u64, from: u64) -> String {
    let mut body = String::with_capacity(96 * metrics as usize + 64);
    write!(body, "{{\"run_id\":\"{run}\",\"metrics\":[").expect("text takes text");
    for i in 0..metrics {
        let n = from + i;
        let (key, step) = if metrics == 1 { (0, n) } else { (n % KEYS, n / KEYS) };
        let comma = if i == 0 { "" } else { "," };
        write!(
            body,
            "{comma}{{\"key\":\"metric_{key}\",\"value\":{},\"timestamp\":{},\"step\":{step}}}",
            value(n),
            1_700_000_000_000 + step * 250
        )
        .expect("text takes text");
    }
    body + "]}"
}

/// Which request: the number of all, of its connection, and which connection that is.
struct Turn {
    n: u64,
    own: u64,
    connection: usize,
}

/// One request of the work.
fn request(line: &mut Line, prefix: &str, work: &[String], turn: Turn) -> u16 {
    let Turn { n, own, connection } = turn;
    let api = format!("{prefix}/api/2.0/mlflow");
    match work[0].as_str() {
        "batch" => {
            let (metrics, from) = work[1].split_once('@').unwrap_or((&work[1], "0"));
            let number = |text: &str| text.parse::<u64>().expect("METRICS and FROM are numbers");
            let (metrics, from) = (number(metrics), number(from));
            let run = &work[2 + connection % (work.len() - 2)];
            let lane = (connection / (work.len() - 2)) as u64;
            let body = batch(run, metrics, from + (own + lane * 10_000_000) * metrics);
            line.ask("POST", &format!("{api}/runs/log-batch"), &body)
        }
        "create" => {
            let body = format!(
                "{{\"experiment_id\":\"{}\",\"start_time\":{},\"run_name\":\"r{n}\"}}",
                work[1],
                1_700_000_000_000 + n
            );
            line.ask("POST", &format!("{api}/runs/create"), &body)
        }
        "fill" => {
            let body = format!(
                "{{\"experiment_id\":\"{}\",\"start_time\":{},\"run_name\":\"r{n}\"}}",
                work[1],
                1_700_000_000_000 + n
            );
            let status = line.ask("POST", &format!("{api}/runs/create"), &body);
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&line.answer));
            let run = line.field("run_id");
            let body = format!(
                "{{\"run_id\":\"{run}\",\"metrics\":[{{\"key\":\"acc\",\"value\":{},\"timestamp\":1,\"step\":0}},{{\"key\":\"loss\",\"value\":{},\
                 \"timestamp\":1,\"step\":0}}],\"params\":[{{\"key\":\"lr\",\"value\":\"0.{}\"}}],\"tags\":[{{\"key\":\"team\",\"value\":\"t{}\"}}]}}",
                spread(n),
                1.0 - spread(n),
                n % 10,
                n % 7
            );
            line.ask("POST", &format!("{api}/runs/log-batch"), &body)
        }
        "post" => line.ask("POST", &format!("{prefix}{}", work[1]), &work[2]),
        "get" => line.ask("GET", &format!("{prefix}{}", work[1]), ""),
        other => panic!("no work `{other}`; see the top of this file"),
    }
}

/// A number in 0..1 that is different for every run.
fn spread(n: u64) -> f64 {
    (n.wrapping_mul(7919) % 1_000_003) as f64 / 1_000_003.0
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, token, prefix, connections, seconds, limit, work @ ..] = args.as_slice() else {
        panic!("see the top of this file")
    };
    let number = |text: &String| text.parse::<u64>().expect("CONNECTIONS, SECONDS and LIMIT are numbers");
    let (connections, limit, time) =
        (number(connections) as usize, number(limit), Duration::from_secs(number(seconds)));
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    let mut taken: Vec<Duration> = thread::scope(|scope| {
        let one = |connection: usize| {
            let (next, failed) = (&next, &failed);
            scope.spawn(move || {
                let (mut line, mut taken) = (Line::open(host, token), Vec::new());
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if (limit > 0 && n >= limit) || start.elapsed() >= time {
                        return taken;
                    }
                    let status = request(&mut line, prefix, work, Turn { n, own: taken.len() as u64, connection });
                    taken.push(line.spent);
                    if status != 200 && failed.fetch_add(1, Ordering::Relaxed) == 0 {
                        eprintln!("{status}: {}", String::from_utf8_lossy(&line.answer[..line.answer.len().min(400)]));
                    }
                }
            })
        };
        let all: Vec<_> = (0..connections).map(one).collect();
        all.into_iter().flat_map(|t| t.join().expect("a connection ends well")).collect()
    });
    let spent = start.elapsed().as_secs_f64();
    taken.sort_unstable();
    let at = |share: f64| {
        taken
            .get(((taken.len() as f64 * share) as usize).min(taken.len().saturating_sub(1)))
            .map_or(0.0, |t| t.as_secs_f64() * 1000.0)
    };
    println!(
        "requests={} failed={} seconds={spent:.3} per_s={:.1} p50_ms={:.3} p99_ms={:.3} max_ms={:.3}",
        taken.len(),
        failed.load(Ordering::Relaxed),
        taken.len() as f64 / spent,
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
