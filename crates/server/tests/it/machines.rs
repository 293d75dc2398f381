//! `/node/v1`: stand-in machines join a managed cluster, and what they say is compared with what is known.

use crate::{Server, ask, settings};
use api::{Client, ClientError, Connection};
use domain::{
    AttemptId, Resources, Timestamp,
    machine::{MachineFacts, NodeAnswer, NodeJoin, NodeJoined, NodePoll, Standing},
};
use reqwest::Method;
use serde_json::json;
use server::Settings;
use store::MachineRow;

const CLUSTER: &str = "@default/crew";

async fn ordered(server: &Server, name: &str) -> Client {
    let row = MachineRow {
        cluster: CLUSTER.into(),
        name: name.into(),
        standing: Standing::Preparing,
        reason: String::new(),
        ordered: Resources { cpu_milli: 4000, memory_bytes: 8 << 30, gpus: 1 },
        facts: MachineFacts::default(),
        joined: String::new(),
        created_at: server::clock::now(),
        since: server::clock::now(),
        seen_at: None,
    };
    server.store.write(move |tx| tx.put_machine(&row)).await.unwrap();
    server.with_token(&server::join_token(server.store.keyring(), CLUSTER, name))
}

fn facts(cpus: u64, gpus: u32) -> MachineFacts {
    let capacity = Resources { cpu_milli: cpus * 1000, memory_bytes: 8 << 30, gpus };
    MachineFacts { host: "box".into(), address: "10.0.0.7".into(), capacity, version: "1".into(), door: None }
}

async fn join(machine: &Client, key: char, facts: MachineFacts) -> Result<NodeJoined, ClientError> {
    machine.post("/node/v1/join", &NodeJoin { key: key.to_string().repeat(64), facts, request: None }).await
}

fn status<T>(answer: Result<T, ClientError>) -> u16 {
    match answer {
        Err(ClientError::Refused { status, .. }) => status,
        Err(error) => panic!("{error}"),
        Ok(_) => 200,
    }
}

async fn row(server: &Server, name: &str) -> MachineRow {
    let name = name.to_owned();
    server.store.read(move |tx| tx.machine(CLUSTER, &name)).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_name_is_joined_by_one_machine_which_may_ask_again() {
    let server = Server::start().await;
    let machine = ordered(&server, "crew-a").await;
    let first = join(&machine, 'k', facts(4, 1)).await.unwrap();
    assert_eq!(join(&machine, 'k', facts(4, 1)).await.unwrap(), first, "an answer that was lost is given again");
    assert_eq!(status(join(&machine, 'o', facts(4, 1)).await), 409, "another machine");
    assert_eq!(
        status(machine.post::<NodeAnswer>("/node/v1/poll", &NodePoll::default()).await),
        403,
        "not with this token"
    );
    assert_eq!(row(&server, "crew-a").await.standing, Standing::Ready);
    let stranger = server.with_token("join.@default/crew/crew-a.0000");
    assert_eq!(status(join(&stranger, 'k', facts(4, 1)).await), 401);
    let unknown = server.with_token(&server::join_token(server.store.keyring(), CLUSTER, "crew-b"));
    assert_eq!(status(join(&unknown, 'k', facts(4, 1)).await), 410, "nobody ordered it");
    // What a node may see is its own.
    let node = server.with_token(&first.token);
    for (method, path) in [(Method::GET, "jobs"), (Method::GET, "computes"), (Method::POST, "computes/crew/preempt")] {
        let path = crate::under_workspace(path);
        assert_eq!(ask(&node, method, &path, Some(json!({}))).await.status, 403, "{path}");
    }
    server.store.write(|tx| tx.drop_machine(CLUSTER, "crew-a")).await.unwrap();
    assert_eq!(status(node.post::<NodeAnswer>("/node/v1/poll", &NodePoll::default()).await), 401, "it is gone");
}

#[tokio::test]
async fn a_machine_that_is_less_than_was_ordered_is_of_no_use() {
    let server = Server::start().await;
    for (name, told) in [("crew-cpu", facts(2, 1)), ("crew-gpu", facts(8, 0))] {
        let machine = ordered(&server, name).await;
        let token = join(&machine, 'k', told.clone()).await.unwrap().token;
        let after = row(&server, name).await;
        assert_eq!(after.standing, Standing::Unusable, "{name}");
        assert!(after.reason.contains("were ordered"), "{}", after.reason);
        let poll = NodePoll { facts: told, holds: Vec::new(), keeps: None, leaving: false };
        let answer: NodeAnswer = server.with_token(&token).post("/node/v1/poll", &poll).await.unwrap();
        assert!(answer.leave, "it is told to go");
    }
}

#[tokio::test]
async fn a_node_drops_what_is_not_its_own_any_more() {
    let server = Server::start().await;
    let machine = ordered(&server, "crew-a").await;
    let token = join(&machine, 'k', facts(4, 1)).await.unwrap().token;
    let attempt = AttemptId::parse("att_7_0").unwrap();
    let part = domain::machine::NodePart { attempt: attempt.clone(), part: 0, fate: domain::machine::PartFate::Runs };
    let poll = NodePoll { facts: facts(4, 1), holds: vec![part], keeps: None, leaving: false };
    let answer: NodeAnswer = server.with_token(&token).post("/node/v1/poll", &poll).await.unwrap();
    assert_eq!((answer.remove, answer.launch.len(), answer.leave), (vec![attempt], 0, false));
    assert!(row(&server, "crew-a").await.seen_at > Some(Timestamp(0)));
}

#[tokio::test]
async fn a_machine_that_is_told_to_stop_is_taken_back_with_notice() {
    let server = Server::start().await;
    let machine = ordered(&server, "crew-a").await;
    let node = server.with_token(&join(&machine, 'k', facts(4, 1)).await.unwrap().token);
    let poll = NodePoll { facts: facts(4, 1), holds: Vec::new(), keeps: None, leaving: true };
    let answer: NodeAnswer = node.post("/node/v1/poll", &poll).await.unwrap();
    assert!(answer.leave, "its job is asked to end");
    let after = row(&server, "crew-a").await;
    assert_eq!((after.standing, after.reason.as_str()), (Standing::Preempted, "its machine was told to stop"));
    // It stays so, whatever it says.
    let poll = NodePoll { leaving: false, ..poll };
    let answer: NodeAnswer = node.post("/node/v1/poll", &poll).await.unwrap();
    assert!(answer.leave);
}

/// A machine with a key for certificates, as it calls the server.
struct Certified {
    server: Connection,
    pair: String,
    joined: NodeJoined,
}

impl Certified {
    async fn join(server: &Server, name: &str) -> Certified {
        let machine = ordered(server, name).await;
        let authority = std::fs::read(server.home.path().join("keys/authority.pem")).unwrap();
        let connection = Connection { url: machine.url().into(), token: String::new(), authority: Some(authority) };
        let pair = server::node_key().unwrap();
        let joined = machine.post("/node/v1/join", &request(&pair)).await.unwrap();
        Certified { server: connection, pair, joined }
    }

    /// A caller who says this and shows the certificate of this machine.
    fn saying(&self, claim: &str) -> Client {
        let identity = format!("{}{}", self.pair, self.joined.certificate.as_ref().unwrap().pem);
        let connection = Connection { token: claim.to_owned(), ..self.server.clone() };
        Client::certified(connection, Some(identity.as_bytes())).unwrap()
    }

    fn claim(&self) -> &str {
        &self.joined.certificate.as_ref().unwrap().claim
    }

    async fn renewed(mut self) -> Certified {
        self.joined = self.saying(self.claim()).post("/node/v1/join", &request(&self.pair)).await.unwrap();
        self
    }
}

fn request(pair: &str) -> NodeJoin {
    NodeJoin { key: "k".repeat(64), facts: facts(4, 1), request: Some(server::node_request(pair).unwrap()) }
}

async fn polled(client: &Client) -> Result<NodeAnswer, ClientError> {
    // One that has something to tell is answered at once.
    let poll = NodePoll { facts: facts(4, 1), holds: Vec::new(), keeps: Some(Vec::new()), leaving: false };
    client.post("/node/v1/poll", &poll).await
}

fn code(answer: Result<NodeAnswer, ClientError>) -> String {
    match answer {
        Err(ClientError::Refused { code, .. }) => code,
        Err(ClientError::Unreachable { .. }) => "unreachable".to_owned(),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn a_node_is_known_by_its_certificate_and_gets_no_token() {
    let server = Server::start().await;
    let (one, two) = (Certified::join(&server, "crew-a").await, Certified::join(&server, "crew-b").await);
    assert_eq!(one.joined.token, "");
    assert!(!serde_json::to_string(&one.joined).unwrap().contains("machine."), "{:?}", one.joined);
    polled(&one.saying(one.claim())).await.unwrap();

    // What it says of itself is no secret, and worth nothing without the certificate.
    assert_eq!(code(polled(&server.with_token(one.claim())).await), server::NOT_SHOWN);
    assert_eq!(code(polled(&two.saying(one.claim())).await), "AuthenticationFailed", "the certificate of another node");
    assert_eq!(code(polled(&one.saying("")).await), "AuthenticationFailed", "nobody is meant");
    let elsewhere = Server::start().await;
    let foreign = Certified::join(&elsewhere, "crew-a").await;
    let foreign = Certified { server: one.server.clone(), ..foreign };
    assert_eq!(code(polled(&foreign.saying(one.claim())).await), "unreachable", "of a foreign authority");
    let jobs = crate::under_workspace("jobs");
    assert_eq!(ask(&one.saying(one.claim()), Method::GET, &jobs, None).await.status, 403);

    // Renewed by itself, it is the same node.
    let one = one.renewed().await;
    polled(&one.saying(one.claim())).await.unwrap();
    let bad = NodeJoin { request: Some("nonsense".into()), ..request(&one.pair) };
    let refused = one.saying(one.claim()).post::<NodeJoined>("/node/v1/join", &bad).await;
    assert_eq!(status(refused), 400);
    // Where nobody sees certificates, a node asks for a token instead; who has shown one needs none.
    assert_eq!(status(join(&one.saying(one.claim()), 'k', facts(4, 1)).await), 403);
    let joining = server.with_token(&server::join_token(server.store.keyring(), CLUSTER, "crew-a"));
    let token = join(&joining, 'k', facts(4, 1)).await.unwrap().token;
    polled(&server.with_token(&token)).await.unwrap();

    server.store.write(|tx| tx.drop_machine(CLUSTER, "crew-a")).await.unwrap();
    assert_eq!(code(polled(&one.saying(one.claim())).await), "AuthenticationFailed", "it is gone");
    polled(&two.saying(two.claim())).await.unwrap();
}

#[tokio::test]
async fn a_certificate_that_was_not_renewed_is_refused() {
    let life = std::time::Duration::from_secs(2);
    let server = Server::start_with(Settings { node_certificate: life, ..settings() }).await;
    let one = Certified::join(&server, "crew-a").await;
    let open = one.saying(one.claim());
    polled(&open).await.unwrap();
    let one = one.renewed().await;
    let later = one.saying(one.claim());
    tokio::time::sleep(life + std::time::Duration::from_secs(1)).await;
    // On a connection that is open since before, and on a new one.
    assert!(["CertificateExpired", "unreachable"].contains(&code(polled(&open).await).as_str()));
    assert_eq!(code(polled(&later).await), "unreachable");
    // The token to join is good for the same machine still.
    let machine = server.with_token(&server::join_token(server.store.keyring(), CLUSTER, "crew-a"));
    let joined = machine.post("/node/v1/join", &request(&one.pair)).await.unwrap();
    let again = Certified { joined, ..one };
    polled(&again.saying(again.claim())).await.unwrap();
}

#[tokio::test]
async fn a_cluster_that_has_nodes_is_not_moved_and_nobody_moves_another_s_kubeconfig() {
    let server = Server::start().await;
    let crew = |namespace: &str, more: serde_json::Value| {
        let mut provider = json!({"type": "kubernetes", "image": "lab/train:1", "namespace": namespace,
            "serverUrl": "https://ml:7423"});
        provider.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_D1_v2",
            "scaleSettings": {"maxNodeCount": 2, "minNodeCount": 0}, "nodeProvider": provider}}})
    };
    let config = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
                  clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t}}]\n";
    let sent = json!({"kubeconfig": config});
    server.put("computes/crew", crew("ml", sent.clone())).await.expect(201);
    server.put("computes/crew", crew("ml", json!({"image": "lab/train:2"}))).await.expect(200);
    let (_, message) = server.put("computes/crew", crew("other", json!({}))).await.refused(400);
    assert!(message.contains("`kubeconfig_file`"), "{message}");
    server.put("computes/crew", crew("ml", json!({"serviceAccount": "admin"}))).await.refused(400);
    ordered(&server, "crew-a").await;
    let (_, message) = server.put("computes/crew", crew("other", sent.clone())).await.refused(409);
    assert!(message.contains("has 1 node"), "{message}");
    server.put("computes/crew", crew("ml", sent.clone())).await.expect(200);
    server.store.write(|tx| tx.drop_machine(CLUSTER, "crew-a")).await.unwrap();
    server.put("computes/crew", crew("other", sent)).await.expect(200);
}

#[tokio::test]
async fn a_cluster_that_has_nodes_is_not_told_to_look_for_them_elsewhere() {
    let server = Server::start().await;
    let crew = |provider: serde_json::Value| {
        json!({"properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_D1_v2",
            "scaleSettings": {"maxNodeCount": 2, "minNodeCount": 0}, "nodeProvider": provider}}})
    };
    let ssh = |user: &str, port: u16, hosts: serde_json::Value| {
        crew(json!({"type": "ssh", "user": user, "port": port, "hosts": hosts}))
    };
    let program = |name: &str| crew(json!({"type": "command", "program": name}));
    server.put("computes/crew", ssh("ada", 22, json!(["10.0.0.7", "10.0.0.8"]))).await.expect(201);
    ordered(&server, "crew-a").await;
    for (key, changed) in [
        ("type", program("lab")),
        ("user", ssh("bob", 22, json!(["10.0.0.7", "10.0.0.8"]))),
        ("port", ssh("ada", 2222, json!(["10.0.0.7", "10.0.0.8"]))),
        ("hosts", ssh("ada", 22, json!(["10.0.0.7", "10.0.0.9"]))),
        ("hosts", ssh("ada", 22, json!(["10.0.0.7", {"address": "10.0.0.8", "port": 2222}]))),
    ] {
        let (_, message) = server.put("computes/crew", changed).await.refused(409);
        let expect = format!("if `{key}` were another");
        assert!(message.contains(&expect) && message.contains("`min_instances: 0`"), "{message}");
    }
    // One more is no harm, nor is another way to write the same.
    let more = json!([{"address": "10.0.0.7", "port": 22}, "10.0.0.8", "10.0.0.9"]);
    server.put("computes/crew", ssh("ada", 22, more)).await.expect(200);
    server.store.write(|tx| tx.drop_machine(CLUSTER, "crew-a")).await.unwrap();
    server.put("computes/crew", program("lab")).await.expect(200);
    ordered(&server, "crew-b").await;
    let (_, message) = server.put("computes/crew", program("other")).await.refused(409);
    assert!(message.contains("if `program` were another"), "{message}");
}
