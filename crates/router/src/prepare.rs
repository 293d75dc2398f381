//! From a request's head to a decision: who is asked, may they, which deployment; and the head that a replica will see.
//!
//! All of it in one go and without waiting, so that nothing borrowed from the buffer has to outlive it.

use crate::{
    answer::Answer,
    auth::{self, Denied},
    http::{
        self, MAX_FIELDS,
        head::{self, BadHead, Framing, Request},
        names::{Name, name, words},
        target::{self, Target},
    },
    table::{Deployment, Endpoint, Table},
    ticket::Ticket,
    trace,
    worker::Worker,
};
use std::{io::Write, mem::MaybeUninit, net::IpAddr, sync::Arc};

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) address: IpAddr,
    /// Over TLS.
    pub(crate) secure: bool,
}

/// What is to be done with a request.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) deployment: Arc<Deployment>,
    pub(crate) framing: Framing,
    pub(crate) max_body: u64,
    pub(crate) expects: bool,
    /// Who gets a copy, and the head of it.
    pub(crate) mirror: Option<(Arc<Deployment>, Vec<u8>)>,
}

/// Decides about a request; for one that goes on, `out` holds the head for the replica afterwards. Also says how long
/// the body is, for whoever has to skip it.
pub(crate) fn prepare(
    worker: &Worker,
    caller: &Caller,
    head: &[u8],
    out: &mut Vec<u8>,
) -> (Ticket, Framing, Result<Plan, Answer>) {
    let mut ticket = Ticket::new(worker.chance.guid());
    let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    match head::parse(head, &mut room) {
        Ok(request) => {
            ticket.note(&request, worker.log.is_some());
            let plan = decide(worker, caller, &request, &mut ticket, out);
            (ticket, request.framing, plan)
        }
        // Where such a body would end is anyone's guess.
        Err(bad) => (ticket, Framing::Chunked, Err(Answer::bad_head(bad))),
    }
}

fn decide(
    worker: &Worker,
    caller: &Caller,
    request: &Request,
    ticket: &mut Ticket,
    out: &mut Vec<u8>,
) -> Result<Plan, Answer> {
    let target = target::parse(request.target)
        .ok_or_else(|| Answer::bad_head(BadHead::Malformed("its target is not a path, or leads upwards")))?;
    let table = worker.routes.table();
    let endpoint = match target.endpoint {
        Some(name) => table.endpoint(name),
        None => table.host(target.authority.map(str::as_bytes).or(request.host).unwrap_or_default()),
    };
    let Some(endpoint) = endpoint else {
        return Err(nowhere(worker, &target));
    };
    ticket.endpoint = Some(Arc::clone(endpoint));
    cross_origin(endpoint, request, ticket)?;
    admitted(worker, caller, (&table, endpoint), request)?;
    let deployment = deployment(worker, endpoint, request)?;
    ticket.deployment = Some(Arc::clone(deployment));
    if let Framing::Length(length) = request.framing
        && length > endpoint.max_body
    {
        return Err(Answer::too_large(endpoint.max_body));
    }
    let compose = Compose { worker, caller, request, target: &target, id: &ticket.id, client_id: ticket.client_id() };
    compose.head(deployment, out);
    let mirror = match request.deployment {
        None if !request.websocket => endpoint.mirror(&worker.chance),
        _ => None,
    };
    let copied = |shadow: &Arc<Deployment>| {
        let mut head = worker.buffers.small();
        compose.head(shadow, &mut head);
        (Arc::clone(shadow), head)
    };
    Ok(Plan {
        deployment: Arc::clone(deployment),
        framing: request.framing,
        max_body: endpoint.max_body,
        expects: request.expects && request.modern,
        mirror: mirror.map(copied),
    })
}

fn nowhere(worker: &Worker, target: &Target) -> Answer {
    match (target.endpoint, target.path) {
        (None, "/healthz") if worker.is_draining() => Answer::busy("Draining", "this router is about to stop"),
        (None, "/healthz") => Answer::empty(200),
        (Some(name), _) => Answer::client(404, "NoEndpoint", format!("there is no endpoint `{}`", clipped(name))),
        (None, _) => Answer::client(404, "NoEndpoint", "an endpoint answers at `/api/v1/endpoint/<name>/score`"),
    }
}

fn clipped(name: &str) -> &str {
    &name[..name.len().min(64)]
}

fn admitted(
    worker: &Worker,
    caller: &Caller,
    (table, endpoint): (&Table, &Endpoint),
    request: &Request,
) -> Result<(), Answer> {
    let given = request.authorization;
    let Err(mut denied) = endpoint.access.check(given, worker.clock) else { return Ok(()) };
    let other = || auth::named(given).and_then(|name| table.endpoint(name));
    if denied == Denied::Wrong && other().is_some_and(|other| other.access.has_signed(given, worker.clock)) {
        denied = Denied::Elsewhere;
    }
    let limit = worker.limits.wrong_keys_per_minute;
    let counts = matches!(denied, Denied::Wrong);
    if counts && worker.wrong_keys.too_many(caller.address, limit, tokio::time::Instant::now()) {
        return Err(Answer::too_many_wrong_keys());
    }
    Err(Answer::denied(denied))
}

fn deployment<'e>(worker: &Worker, endpoint: &'e Endpoint, request: &Request) -> Result<&'e Arc<Deployment>, Answer> {
    let name = &endpoint.name;
    match request.deployment {
        Some(asked) => endpoint.deployment(asked).ok_or_else(|| {
            let asked = String::from_utf8_lossy(&asked[..asked.len().min(64)]).into_owned();
            Answer::client(404, "NoDeployment", format!("endpoint `{name}` has no deployment `{asked}`"))
        }),
        None => endpoint.choose(&worker.chance).ok_or_else(|| {
            let fix = "give one traffic, or name one in `azureml-model-deployment`";
            Answer::client(404, "NoTraffic", format!("no deployment of endpoint `{name}` has traffic; {fix}"))
        }),
    }
}

/// Answers a browser's question before the request, and remembers whom the answer may be shown to.
fn cross_origin(endpoint: &Endpoint, request: &Request, ticket: &mut Ticket) -> Result<(), Answer> {
    let (Some(cors), Some(origin)) = (&endpoint.cors, request.origin) else { return Ok(()) };
    let allowed = cors.origins.iter().find(|one| *one == "*" || one.as_bytes() == origin);
    let Some(allowed) = allowed else { return Ok(()) };
    ticket.origin = Some(allowed.as_str().into());
    if request.method != "OPTIONS" || request.asked_method.is_none() {
        return Ok(());
    }
    let answer = Answer::empty(204)
        .with("access-control-allow-methods", "GET, POST, OPTIONS")
        .with(
            "access-control-allow-headers",
            "authorization, content-type, azureml-model-deployment, x-ms-client-request-id, traceparent, tracestate",
        )
        .with("access-control-max-age", &cors.max_age_seconds.to_string());
    Err(answer)
}

/// Everything that goes into the head for a replica.
struct Compose<'c> {
    worker: &'c Worker,
    caller: &'c Caller,
    request: &'c Request<'c, 'c>,
    target: &'c Target<'c>,
    id: &'c [u8],
    client_id: &'c [u8],
}

impl Compose<'_> {
    fn head(&self, deployment: &Deployment, out: &mut Vec<u8>) {
        let request = self.request;
        let path = match self.target.path {
            "/score" => &*deployment.scoring_path,
            "" => "/",
            path => path,
        };
        for part in [request.method, " ", path, self.target.query, " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        if request.host.is_none() {
            http::field(out, "host", b"localhost");
        }
        let traced = request.traceparent.is_some_and(trace::is_valid);
        for field in request.fields {
            if self.passes(field.name, traced) {
                http::field(out, field.name, field.value);
            }
        }
        if !traced {
            http::field(out, "traceparent", &trace::begin(&self.worker.chance));
        }
        self.added(out);
        out.extend_from_slice(b"\r\n");
    }

    fn passes(&self, field: &str, traced: bool) -> bool {
        match name(field) {
            Name::Other | Name::Host => self.request.nominated.is_none_or(|list| !nominates(list, field)),
            Name::TraceParent | Name::TraceState => traced,
            Name::Origin | Name::AskedMethod | Name::ForwardedProto => true,
            // The caller's key is between the caller and us; all else is ours to write.
            _ => false,
        }
    }

    fn added(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"x-forwarded-for: ");
        write!(out, "{}\r\n", self.caller.address).expect("a vector takes everything");
        if !self.request.forwarded_proto {
            http::field(out, "x-forwarded-proto", if self.caller.secure { b"https" } else { b"http" });
        }
        http::field(out, "x-request-id", self.id);
        if !self.client_id.is_empty() {
            http::field(out, "x-ms-client-request-id", self.client_id);
        }
        match self.request.framing {
            Framing::Absent => {}
            Framing::Length(length) => {
                out.extend_from_slice(b"content-length: ");
                http::decimal(out, length);
                out.extend_from_slice(b"\r\n");
            }
            Framing::Chunked => http::field(out, "transfer-encoding", b"chunked"),
        }
        if self.request.websocket {
            out.extend_from_slice(b"connection: upgrade\r\nupgrade: websocket\r\n");
        }
    }
}

fn nominates(list: &[u8], field: &str) -> bool {
    !field.eq_ignore_ascii_case("host") && words(list).any(|word| word.eq_ignore_ascii_case(field.as_bytes()))
}
