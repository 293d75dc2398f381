//! Certificates of nodes: what a node that has joined a managed cluster shows in place of a token.
//!
//! A node says in plain words who it is and until when (a [`Claim`], which is no secret), and the certificate of its connection
//! has to be one of our authority's for exactly that. So nothing is read out of a certificate but whether it has a name.
//! Invariants: the key of a node never leaves it; what a request for a certificate asks for besides its key is not looked at;
//! a certificate is good for one node, for a while, and for nothing where that node is gone.

use super::{Caller, Roles, Who, digest, unauthorized};
use crate::problem::Problem;
use axum::http::StatusCode;
use domain::Timestamp;
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::{
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName},
    server::ParsedCertificate,
};
use std::{fs, path::Path, sync::Arc, time::Duration};

/// How the codes of refusals begin after which a node joins again and is the same node.
pub const JOIN_AGAIN: &str = "Certificate";
/// The certificate did not come along.
pub const NOT_SHOWN: &str = "CertificateNotShown";
const EXPIRED: &str = "CertificateExpired";

/// The one certificate that the other end of a connection has shown, and has the key of.
#[derive(Debug, Clone)]
pub(crate) struct Shown(pub(crate) Arc<CertificateDer<'static>>);

/// Who a node says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) cluster: String,
    pub(crate) machine: String,
    /// The digest of the machine's own key.
    pub(crate) key: String,
    pub(crate) expires: Timestamp,
}

impl Claim {
    /// What stands where others have a token.
    pub(crate) fn bearer(&self) -> String {
        format!("node.{}/{}/{}/{}", self.cluster, self.machine, self.key, self.expires.0)
    }

    pub(crate) fn parse(header: &str) -> Option<Claim> {
        let token = header.strip_prefix("Bearer ").or_else(|| header.strip_prefix("bearer "))?;
        let (rest, expires) = token.trim().strip_prefix("node.")?.rsplit_once('/')?;
        let (rest, key) = rest.rsplit_once('/')?;
        let (cluster, machine) = rest.rsplit_once('/')?;
        let expires = Timestamp(expires.parse().ok()?);
        Some(Claim { cluster: cluster.to_owned(), machine: machine.to_owned(), key: key.to_owned(), expires })
    }

    /// The caller, if their certificate says the same.
    pub(crate) fn caller(self, shown: Option<&Shown>, now: Timestamp) -> Result<Caller, Problem> {
        let Some(Shown(certificate)) = shown else {
            let message =
                "a node's certificate did not come with this connection: TLS ends somewhere before this server";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, NOT_SHOWN, message));
        };
        if now.0 >= self.expires.0 {
            let message = "the node's certificate has expired; a node renews it in time, or joins again";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, EXPIRED, message));
        }
        if !has_name(certificate, &self.name()) {
            return Err(unauthorized("the certificate of this connection is another node's"));
        }
        let name = format!("{}/{}", self.cluster, self.machine);
        let who = Who::Machine { cluster: self.cluster, machine: self.machine, key: self.key };
        Ok(Caller::new(who, name, Roles::new()))
    }

    /// The name that a certificate for this has: no host is called so.
    fn name(&self) -> String {
        format!("{}.node.peregrine.internal", &digest(&self.bearer())[..48])
    }
}

fn has_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let parsed = ParsedCertificate::try_from(certificate).ok().zip(ServerName::try_from(name).ok());
    parsed.is_some_and(|(certificate, name)| verify_server_name(&certificate, &name).is_ok())
}

/// Our own authority, which signs the certificates of nodes.
pub(crate) struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    /// That of a home, where it has one that can sign.
    pub(crate) fn of(keys: &Path) -> Option<Authority> {
        let [certificate, key] =
            ["authority.pem", "authority.key"].map(|name| fs::read_to_string(keys.join(name)).ok());
        Some(Authority(Issuer::from_ca_cert_pem(&certificate?, KeyPair::from_pem(&key?).ok()?).ok()?))
    }

    /// A certificate in PEM for the key of a request (PKCS #10 in PEM), which its sender has to have.
    pub(crate) fn sign(&self, claim: &Claim, request: &str, now: Timestamp) -> Result<String, rcgen::Error> {
        let asked = CertificateSigningRequestParams::from_pem(request)?;
        let mut params = CertificateParams::new(vec![claim.name()])?;
        params.distinguished_name.push(DnType::CommonName, claim.machine.as_str());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        // To the second, as certificates have it.
        let at = |time: Timestamp| date_time_ymd(1970, 1, 1) + Duration::from_secs((time.0.max(0) / 1000) as u64);
        (params.not_before, params.not_after) = (at(now), at(claim.expires));
        Ok(params.signed_by(&asked.public_key, &self.0)?.pem())
    }
}

/// A new key of a node, in PEM.
pub fn node_key() -> Result<String, rcgen::Error> {
    Ok(KeyPair::generate()?.serialize_pem())
}

/// A request for a certificate for this key, in PEM.
pub fn node_request(key: &str) -> Result<String, rcgen::Error> {
    CertificateParams::new(Vec::new())?.serialize_request(&KeyPair::from_pem(key)?)?.pem()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{
        RootCertStore,
        pki_types::{UnixTime, pem::PemObject},
        server::WebPkiClientVerifier,
    };

    const HOUR_MS: i64 = 3_600_000;

    fn claim(machine: &str, expires: i64) -> Claim {
        Claim { cluster: "@w/crew".into(), machine: machine.into(), key: "k1".into(), expires: Timestamp(expires) }
    }

    /// An authority in a folder, as the server makes it at its first start.
    fn home() -> (tempfile::TempDir, Authority) {
        let keys = tempfile::tempdir().unwrap();
        crate::tls::Certificates::Own { keys: keys.path().to_owned() }.files().unwrap();
        let authority = Authority::of(keys.path()).unwrap();
        (keys, authority)
    }

    fn parsed(pem: &str) -> Shown {
        Shown(Arc::new(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()))
    }

    /// Whether TLS takes a certificate at a time, as a listener of this home would.
    fn is_taken(keys: &Path, shown: &Shown, now: Timestamp) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(keys.join("authority.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_millis(now.0 as u64));
        verifier.verify_client_cert(&shown.0, &[], now).is_ok()
    }

    #[test]
    fn a_certificate_is_good_for_one_node_of_this_server_for_a_while() {
        let (keys, authority) = home();
        let begin = Timestamp(1_800_000_000_000);
        let mine = claim("crew-a", begin.0 + HOUR_MS);
        let request = node_request(&node_key().unwrap()).unwrap();
        let shown = parsed(&authority.sign(&mine, &request, begin).unwrap());
        let caller = |claim: &Claim, now| claim.clone().caller(Some(&shown), now);
        let who = Who::Machine { cluster: "@w/crew".into(), machine: "crew-a".into(), key: "k1".into() };
        assert_eq!(caller(&mine, begin).unwrap().who, who);
        assert_eq!(Claim::parse(&format!("Bearer {}", mine.bearer())), Some(mine.clone()));

        for (of, other) in [
            ("another node", claim("crew-b", mine.expires.0)),
            ("another cluster", Claim { cluster: "@w/other".into(), ..mine.clone() }),
            ("another machine of that name", Claim { key: "k2".into(), ..mine.clone() }),
            ("a longer life", claim("crew-a", mine.expires.0 + 1)),
        ] {
            assert!(caller(&other, begin).is_err(), "{of}");
        }
        assert_eq!(caller(&mine, mine.expires).unwrap_err().code, EXPIRED);
        let unseen = mine.clone().caller(None, begin).unwrap_err();
        assert_eq!(unseen.code, NOT_SHOWN);

        assert!(is_taken(keys.path(), &shown, begin));
        assert!(!is_taken(keys.path(), &shown, Timestamp(mine.expires.0 + 1000)));
        assert!(!is_taken(keys.path(), &shown, Timestamp(begin.0 - 1000)));
        let (others, other) = home();
        assert!(!is_taken(others.path(), &shown, begin), "of a foreign authority");
        let foreign = parsed(&other.sign(&mine, &request, begin).unwrap());
        assert!(!is_taken(keys.path(), &foreign, begin));
    }

    #[test]
    fn a_request_is_signed_by_who_has_its_key_and_gets_no_more_than_its_key() {
        let (_keys, authority) = home();
        let begin = Timestamp(1_800_000_000_000);
        let mine = claim("crew-a", begin.0 + HOUR_MS);
        let pair = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![claim("crew-b", mine.expires.0).name()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let request = params.serialize_request(&pair).unwrap().pem().unwrap();
        let shown = parsed(&authority.sign(&mine, &request, begin).unwrap());
        assert!(has_name(&shown.0, &mine.name()) && !has_name(&shown.0, &claim("crew-b", mine.expires.0).name()));
        for bad in ["", "not a request", &pair.serialize_pem()] {
            assert!(authority.sign(&mine, bad, begin).is_err(), "{bad}");
        }
        // A letter of its signature, which is at the end, is another.
        let lines: Vec<&str> = request.trim_end().lines().collect();
        let line = lines[lines.len() - 2];
        let other = if line.starts_with('A') { 'B' } else { 'A' };
        let forged = request.replace(line, &format!("{other}{}", &line[1..]));
        assert!(authority.sign(&mine, &forged, begin).is_err());
    }
}
