//! Two nodes over real TLS on loopback: one that lends what it has, and ones that refuse, lie, hang or are gone.

use super::*;
use crate::data::cache::Claim;
use domain::kept::Door;
use object_store::path::Path as Key;
use std::{collections::BTreeMap, fs};
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
    server::TlsStream,
};

const FILES: [(&str, &str); 3] = [("a/b", "first"), ("a.txt", ""), ("z", "second")];

#[test]
fn only_a_plain_request_for_an_entry_is_understood() {
    let key = "0a".repeat(32);
    let request = |first: &str, second: &str| format!("{first}\r\nHost: x\r\n{second}\r\n\r\n");
    let good = request(&format!("GET /{key} HTTP/1.1"), "authorization: Bearer 1.2");
    assert_eq!(asked(&good), Some((key.as_str(), "1.2")));
    for (first, second) in [
        (format!("GET /{key} HTTP/1.1"), "Accept: Bearer 1.2"),
        (format!("GET /../{} HTTP/1.1", &key[3..]), "Authorization: Bearer 1.2"),
        (format!("GET /{} HTTP/1.1", key.to_uppercase()), "Authorization: Bearer 1.2"),
        (format!("POST /{key} HTTP/1.1"), "Authorization: Bearer 1.2"),
        (format!("GET /{key}/ok HTTP/1.1"), "Authorization: Bearer 1.2"),
        (format!("GET /{key} HTTP/1.1"), "Authorization: Basic 1.2"),
    ] {
        assert_eq!(asked(&request(&first, second)), None, "{first} {second}");
    }
}

/// A node with an entry of [`FILES`], what its store says of them, and one that may fetch it.
struct Nodes {
    folder: tempfile::TempDir,
    shelf: Shelf,
    listing: Listing,
    peer: Peer,
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Nodes {
    async fn new() -> Nodes {
        let folder = tempfile::tempdir().unwrap();
        let meta = |(name, text): (&str, &str)| {
            let meta = ObjectMeta {
                location: Key::from(name),
                last_modified: Default::default(),
                size: text.len() as u64,
                e_tag: Some("1".to_owned()),
                version: None,
            };
            (name.to_owned(), meta)
        };
        let listing = Listing::of("s3://b/k", FILES.map(meta).into());
        let shelf = Shelf::new(&folder.path().join("shared"), folder.path());
        let Claim::Missing(filling) = shelf.cache.claim(&listing.key(), "h").await.unwrap() else {
            panic!("it is there")
        };
        for (name, text) in FILES {
            let path = filling.data().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        filling.finish("s3://b/k", None).unwrap();
        assert!(shelf.sum_one());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let secret = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], secret)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door =
            Door { address: listener.local_addr().unwrap().to_string(), authority: made.cert.pem(), apart: false };
        let token = peer::token("secret", &listing.key(), Timestamp(0));
        let peer = Peer { node: "n".to_owned(), door, token, sum: shelf.kept()[0].sum.clone() };
        Nodes { folder, shelf, listing, peer, listener, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    /// Fetches while `answer` speaks for the other node; what became of it.
    async fn fetch(&self, answer: impl AsyncFnOnce(&mut TlsStream<tokio::net::TcpStream>)) -> Result<u64, String> {
        let to = self.folder.path().join("to");
        let (mut got, tally, key) = (0, Tally::default(), self.listing.key());
        let lends = async {
            let (stream, _) = self.listener.accept().await.unwrap();
            let mut stream = self.acceptor.accept(stream).await.unwrap();
            answer(&mut stream).await;
        };
        let taken = take(&self.peer, &key, &self.listing, (&to, &mut got, &tally));
        let (taken, ()) = tokio::join!(taken, lends);
        match taken {
            Ok(()) => {
                let found = files_in_order(&to).unwrap().into_iter();
                let found: BTreeMap<String, String> =
                    found.map(|name| (name.clone(), fs::read_to_string(to.join(name)).unwrap())).collect();
                assert_eq!(found, FILES.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
                Ok(tally.moved().peers)
            }
            Err(Fault::Peer(why)) => Err(why),
            Err(Fault::Disk(error)) => panic!("{error}"),
        }
    }
}

async fn send(stream: &mut TlsStream<tokio::net::TcpStream>, text: &str) {
    read_request(stream).await.unwrap().unwrap();
    // The other end may have heard enough.
    let _gone = stream.write_all(text.as_bytes()).await;
    let _gone = stream.shutdown().await;
}

#[tokio::test]
async fn an_entry_is_lent_whole_to_who_has_its_token() {
    let mut nodes = Nodes::new().await;
    let honest = async |nodes: &Nodes, now: i64| {
        nodes.fetch(async |stream| drop(nodes.shelf.answer(stream, "secret", Timestamp(now)).await)).await
    };
    assert_eq!(honest(&nodes, 0).await, Ok(11));
    assert_eq!(honest(&nodes, peer::LIFE_MS).await, Err("it answered 403".to_owned()), "its time is over");
    nodes.peer.token = peer::token("secret", &"0".repeat(64), Timestamp(0));
    assert_eq!(honest(&nodes, 0).await, Err("it answered 403".to_owned()), "a token is for one entry");
    nodes.peer.token = peer::token("secret", &nodes.listing.key(), Timestamp(0));
    fs::remove_dir_all(nodes.folder.path().join("shared")).unwrap();
    assert_eq!(honest(&nodes, 0).await, Err("it answered 404".to_owned()), "it was evicted");
}

#[tokio::test]
async fn a_neighbour_that_lies_hangs_or_goes_is_found_out() {
    let mut nodes = Nodes::new().await;
    let reply = |text: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    for (text, why) in [
        (reply("firstsecone"), "its bytes are not the ones it said it has"),
        (reply("firstsecondand"), "it sent more than there is"),
        (reply("firstse"), "it broke off"),
    ] {
        assert_eq!(nodes.fetch(async |stream| send(stream, &text).await).await, Err(why.to_owned()));
    }
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nfirst";
    assert!(nodes.fetch(async |stream| send(stream, cut).await).await.is_err());
    let silent = nodes.fetch(async |_| tokio::time::sleep(SILENCE_LIMIT * 2).await).await.unwrap_err();
    assert!(silent.contains("was silent"), "{silent}");
    // Somebody else, or nobody, at its address.
    nodes.peer.door.authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    let to = nodes.folder.path().join("to");
    let mut got = 0;
    let key = nodes.listing.key();
    for _ in 0..2 {
        let tally = Tally::default();
        let refused = take(&nodes.peer, &key, &nodes.listing, (&to, &mut got, &tally));
        let greets = async {
            let accepted = timeout(SILENCE_LIMIT, nodes.listener.accept()).await;
            if let Ok(Ok((stream, _))) = accepted {
                let _refused = nodes.acceptor.accept(stream).await;
            }
        };
        assert!(matches!(tokio::join!(refused, greets).0, Err(Fault::Peer(_))));
        nodes.peer.door.address = "127.0.0.1:9".to_owned();
    }
    assert_eq!(got, 0);
}
