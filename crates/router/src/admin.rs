//! The admin port: metrics, readiness and demand, for machines on the inside. It is not for callers and asks nobody for a key.

use crate::{
    answer::reason,
    http::{MAX_HEAD, Scan, scan},
    metrics,
    table::Routes,
};
use serde_json::json;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(5);

/// Answers for as long as it is polled. One request a connection is enough for what asks here.
pub(crate) async fn serve(listener: Option<std::net::TcpListener>, routes: &Routes, stopped: &watch::Receiver<bool>) {
    let Some(Ok(listener)) = listener.map(TcpListener::from_std) else { return std::future::pending().await };
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let (routes, stopped) = (routes.clone(), stopped.clone());
                connections.spawn_local(async move {
                    let _ = timeout(PATIENCE, answer(stream, &routes, &stopped)).await;
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn answer(mut stream: TcpStream, routes: &Routes, stopped: &watch::Receiver<bool>) {
    let mut bytes = Vec::with_capacity(4096);
    while !matches!(scan(&bytes, 0), Scan::End(_)) {
        if bytes.len() > MAX_HEAD || stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let line = bytes.split(|b| *b == b'\r').next().unwrap_or_default();
    let (status, kind, body) = match line.splitn(3, |b| *b == b' ').nth(1) {
        Some(b"/metrics") => (200, "text/plain; version=0.0.4", metrics::render(routes)),
        Some(b"/demand") => (200, "application/json", demand(routes)),
        Some(b"/healthz") => (200, "text/plain", "ok\n".to_owned()),
        Some(b"/readyz") if *stopped.borrow() => (503, "text/plain", "stopping\n".to_owned()),
        Some(b"/readyz") => (200, "text/plain", "ok\n".to_owned()),
        _ => (404, "text/plain", "there are /metrics, /demand, /healthz and /readyz\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        reason(status),
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn demand(routes: &Routes) -> String {
    let deployments: Vec<_> = routes
        .demand()
        .into_iter()
        .map(|d| json!({"endpoint": d.endpoint, "deployment": d.deployment, "in_flight": d.in_flight, "queued": d.queued, "replicas": d.replicas}))
        .collect();
    let leaving: Vec<_> =
        routes.leaving().into_iter().map(|(at, busy)| json!({"replica": at.to_string(), "in_flight": busy})).collect();
    json!({"deployments": deployments, "leaving": leaving}).to_string()
}
