//! Submits many small jobs over plain HTTP and waits until the server has recorded the end of each.
//! Usage: submit HOST:PORT TOKEN COUNT CONNECTIONS PREFIX COMMAND [COMPUTE]. Standard library only: `rustc -O submit.rs`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

const WORKSPACE: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default/providers/\
                         Microsoft.MachineLearningServices/workspaces/default";

struct Line {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Line {
    fn open(host: &str, token: &str) -> Line {
        let stream = TcpStream::connect(host).expect("the server listens");
        stream.set_nodelay(true).expect("loopback takes options");
        Line { stream: BufReader::new(stream), token: token.to_owned() }
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: b\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("the server reads");
        let mut head = String::new();
        self.stream.read_line(&mut head).expect("the server answers");
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("an answer has a status");
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("an answer has headers");
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().expect("a length is a number");
                }
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("an answer has its body");
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

fn ended(line: &mut Line) -> usize {
    let (_, text) = line.ask("GET", "/metrics", "");
    text.lines()
        .filter(|l| l.starts_with("peregrine_jobs_ended_total{is=\"Completed\""))
        .filter_map(|l| l.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, token, count, connections, prefix, command, compute @ ..] = args.as_slice() else {
        panic!("see the top of this file")
    };
    let compute = compute.first().map_or(String::new(), |name| format!("\"computeId\":\"{WORKSPACE}/computes/{name}\","));
    let (count, connections): (usize, usize) = (count.parse().unwrap(), connections.parse().unwrap());
    let mut watch = Line::open(host, token);
    let before = ended(&mut watch);
    let body = format!(
        "{{\"properties\":{{\"jobType\":\"Command\",{compute}\"command\":\"{command}\",\"environmentId\":\"azureml:bench:1\",\
         \"experimentName\":\"bench\",\"resources\":{{\"instanceCount\":1}}}}}}"
    );
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut line = Line::open(host, token);
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    let (status, text) = line.ask("PUT", &format!("{WORKSPACE}/jobs/{prefix}-{n}"), &body);
                    assert_eq!(status, 201, "{text}");
                }
            });
        }
    });
    let submitted = start.elapsed();
    loop {
        let left = count - (ended(&mut watch) - before);
        if left == 0 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "{left} of {count} have not ended");
        // Asking costs the server something, too: rarely while much is left.
        thread::sleep(Duration::from_millis((left as u64 / 20).clamp(5, 100)));
    }
    let all = start.elapsed();
    println!("submits_per_s={:.1} jobs_per_s={:.1}", count as f64 / submitted.as_secs_f64(), count as f64 / all.as_secs_f64());
}
