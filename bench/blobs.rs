//! Writes and reads blobs over plain HTTP with as little of its own as can be, and files the same way beside it.
//! Usage: blobs http://HOST:PORT/PATH QUERY up|blocks|down|raw|raw-one COUNT BYTES CONNECTIONS [FOLDER]
//! `up` and `down` move COUNT blobs, `blocks` one blob of COUNT blocks, `raw` writes and syncs COUNT files in FOLDER,
//! `raw-one` one file of COUNT pieces. Prints seconds. Standard library only: `rustc -O blobs.rs`.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Instant,
};

struct Line {
    stream: BufReader<TcpStream>,
    spare: Vec<u8>,
}

impl Line {
    fn open(host: &str) -> Line {
        let stream = TcpStream::connect(host).expect("the server listens");
        stream.set_nodelay(true).expect("loopback takes options");
        Line { stream: BufReader::with_capacity(64 << 10, stream), spare: vec![0; 1 << 20] }
    }

    /// Sends a request and throws the answer's body away; says how long that was.
    fn ask(&mut self, method: &str, target: &str, body: &[u8]) -> usize {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: b\r\nx-ms-blob-type: BlockBlob\r\nx-ms-version: 2021-06-08\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if body.len() < 64 << 10 {
            self.stream.get_mut().write_all(&[head.as_bytes(), body].concat()).expect("the server reads");
        } else {
            self.stream.get_mut().write_all(head.as_bytes()).expect("the server reads");
            self.stream.get_mut().write_all(body).expect("the server reads");
        }
        let mut status = String::new();
        self.stream.read_line(&mut status).expect("the server answers");
        assert!(status.split(' ').nth(1).is_some_and(|code| code.starts_with('2')), "{method} {target}: {status}");
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
        let mut left = length;
        while left > 0 {
            let most = left.min(self.spare.len());
            let got = self.stream.read(&mut self.spare[..most]).expect("an answer has its body");
            assert!(got > 0, "the answer broke off");
            left -= got;
        }
        length
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, query, mode, count, bytes, connections, rest @ ..] = args.as_slice() else { panic!("see the top of this file") };
    let (count, bytes, connections): (usize, usize, usize) =
        (count.parse().unwrap(), bytes.parse().unwrap(), connections.parse().unwrap());
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("an address has a path");
    let body: Vec<u8> = (0..bytes).map(|n| (n as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let next = AtomicUsize::new(0);
    let block = |n: usize| base64(&format!("{n:08}"));
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut line = if mode.starts_with("raw") { None } else { Some(Line::open(host)) };
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count || mode == "raw-one" {
                        break;
                    }
                    match (mode.as_str(), &mut line) {
                        ("up", Some(line)) => drop(line.ask("PUT", &format!("/{path}/{n}?{query}"), &body)),
                        ("down", Some(line)) => {
                            let target = if query.is_empty() { format!("/{path}/{n}") } else { format!("/{path}/{n}?{query}") };
                            assert_eq!(line.ask("GET", &target, b""), bytes);
                        }
                        ("blocks", Some(line)) => {
                            line.ask("PUT", &format!("/{path}/0?comp=block&blockid={}&{query}", block(n)), &body);
                        }
                        _ => {
                            let mut file = File::create(format!("{}/{n}", rest[0])).expect("the folder is there");
                            file.write_all(&body).and_then(|()| file.sync_all()).expect("the disk has room");
                        }
                    }
                }
            });
        }
    });
    if mode == "blocks" {
        let list: String = (0..count).map(|n| format!("<Latest>{}</Latest>", block(n))).collect();
        Line::open(host).ask("PUT", &format!("/{path}/0?comp=blocklist&{query}"), format!("<BlockList>{list}</BlockList>").as_bytes());
    }
    if mode == "raw-one" {
        let mut file = File::create(format!("{}/0", rest[0])).expect("the folder is there");
        (0..count).for_each(|_| file.write_all(&body).expect("the disk has room"));
        file.sync_all().expect("the disk has room");
    }
    println!("{:.4}", start.elapsed().as_secs_f64());
}

/// Eight digits, and a zero before them, in base64: twelve letters that need no padding.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = format!("0{text}");
    text.as_bytes()
        .chunks(3)
        .flat_map(|three| {
            let word = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
            [18, 12, 6, 0].map(|shift| char::from(LETTERS[(word >> shift & 63) as usize]))
        })
        .collect()
}
