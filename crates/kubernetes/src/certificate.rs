//! Whether a certificate, its key and the host that callers use go together. Asks nobody.

use crate::health::CertificateSeen;
use rustls::{
    client::verify_server_name,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    server::ParsedCertificate,
    sign::CertifiedKey,
};

/// Judges a chain and a key in PEM; an empty host is not asked about.
pub fn judge(chain: &[u8], key: &[u8], host: &str) -> CertificateSeen {
    match mistake(chain, key, host) {
        None => CertificateSeen::Good,
        Some(why) => CertificateSeen::Bad(why),
    }
}

fn mistake(chain: &[u8], key: &[u8], host: &str) -> Option<String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let Ok(chain) = chain else { return Some("the certificate is not PEM".to_owned()) };
    let Some(own) = chain.first().cloned() else { return Some("there is no certificate in the PEM".to_owned()) };
    let Ok(key) = PrivateKeyDer::from_pem_slice(key) else { return Some("the key is not PEM".to_owned()) };
    let Ok(parsed) = ParsedCertificate::try_from(&own) else {
        return Some("the certificate cannot be read".to_owned());
    };
    if let Err(error) = CertifiedKey::from_der(chain, key, &ring::default_provider()) {
        return Some(format!("the certificate and the key do not go together ({error})"));
    }
    let name = Some(host).filter(|host| !host.is_empty())?;
    let Ok(wanted) = ServerName::try_from(name) else { return Some(format!("`{name}` is no name of a host")) };
    let named = verify_server_name(&parsed, &wanted);
    named.is_err().then(|| format!("the certificate is not for `{name}`, the host of `sslCname`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(host: &str) -> (String, String) {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_is_good_with_its_own_key_for_its_own_host() {
        let (one, other) = (made("serve.example.org"), made("*.example.org"));
        for (chain, key, host, expect) in [
            (&one.0, &one.1, "serve.example.org", None),
            (&other.0, &other.1, "any.example.org", None),
            (&one.0, &one.1, "", None),
            (&one.0, &one.1, "other.example.org", Some("not for `other.example.org`")),
            (&one.0, &other.1, "serve.example.org", Some("do not go together")),
            (&one.1, &one.1, "serve.example.org", Some("no certificate")),
            (&one.0, &one.0, "serve.example.org", Some("the key is not PEM")),
        ] {
            let seen = judge(chain.as_bytes(), key.as_bytes(), host);
            match (expect, seen) {
                (None, seen) => assert_eq!(seen, CertificateSeen::Good, "{host}"),
                (Some(words), CertificateSeen::Bad(why)) => assert!(why.contains(words), "{why}"),
                (Some(words), seen) => panic!("{words}: {seen:?}"),
            }
        }
    }
}
