//! Routes from what is on record: endpoints and their keys, deployments and their replicas.

use crate::http::records::Kind;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    Timestamp,
    serving::Provisioning,
    spec::routes::{DeploymentRoute, EndpointAuth, EndpointKeys, EndpointRoute, Routes, Secret},
};
use ring::hmac;
use serde_json::Value;
use std::{collections::BTreeMap, net::SocketAddr};
use store::{Error, RecordKey, RecordRow, ServingRow, Tx, secrets::Keyring};

/// How long a request is held for a replica that is being replaced.
const REPLACED_MS: u64 = 10_000;

/// The routes of a site: of endpoints that are served there.
pub(super) fn routes(tx: &mut Tx<'_>, site: &str) -> Result<Routes, Error> {
    let mut routes = Routes::default();
    let endpoints = tx.records_of(Kind::OnlineEndpoint.table())?;
    if endpoints.is_empty() {
        return Ok(routes);
    }
    let (servings, replicas) = (tx.servings()?, tx.replicas()?);
    for row in endpoints {
        // Names are refused when they are taken; of those from before that rule, the first has it.
        if routes.endpoints.contains_key(&row.key.name) {
            continue;
        }
        let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
        if site_of(tx, &row.key.workspace, &body)? != site {
            continue;
        }
        let mut route = endpoint(tx, &row, &body)?;
        let own = servings.iter().filter(|serving| {
            serving.key.workspace == row.key.workspace
                && serving.key.endpoint == row.key.name
                && serving.cluster == site
                && serving.state != Provisioning::Deleting
        });
        for serving in own {
            let ready = replicas.iter().filter(|replica| replica.key == serving.key);
            let ready = ready.filter_map(|replica| replica.takes_requests()).collect();
            route.deployments.insert(serving.key.deployment.clone(), deployment(serving, ready));
        }
        routes.endpoints.insert(row.key.name.clone(), route);
    }
    Ok(routes)
}

/// Where an endpoint is served: on this machine, or on the cluster of the compute target that it names.
pub(crate) fn site_of(tx: &mut Tx<'_>, workspace: &str, endpoint: &Value) -> Result<String, Error> {
    let named = endpoint["properties"]["compute"].as_str().filter(|name| !name.is_empty());
    let Some(compute) = named.map(api::arm::reference::compute_name) else { return Ok(store::HERE.to_owned()) };
    Ok(tx.target(workspace, &compute)?.map_or_else(|| store::HERE.to_owned(), |target| target.cluster))
}

fn endpoint(tx: &mut Tx<'_>, row: &RecordRow, body: &Value) -> Result<EndpointRoute, Error> {
    let (properties, by_key) = (&body["properties"], is_opened_by_key(body));
    let keys = tx.record_secret(&row.key)?;
    let digest = |name: &str| keys.get(name).filter(|_| by_key).map(|key| Secret::new(digest(key)));
    Ok(EndpointRoute {
        auth_mode: if by_key { EndpointAuth::Key } else { EndpointAuth::AmlToken },
        keys: EndpointKeys { primary: digest("primaryKey"), secondary: digest("secondaryKey") },
        token_key: (!by_key).then(|| Secret::new(token_key(tx.keyring(), &row.key))),
        traffic: shares(&properties["traffic"]),
        mirror_traffic: shares(&properties["mirrorTraffic"]),
        ..EndpointRoute::default()
    })
}

fn deployment(serving: &ServingRow, replicas: Vec<SocketAddr>) -> DeploymentRoute {
    let requests = serving.settings.requests;
    let hold_ms = match &serving.state {
        Provisioning::Failed(_) if serving.good_generation.is_none() => requests.max_queue_wait_ms,
        _ if serving.settings.scale.least == 0 => serving.settings.start_seconds.saturating_mul(1000),
        _ => requests.max_queue_wait_ms.max(REPLACED_MS),
    };
    let scoring_path = serving.settings.scoring_path.clone();
    DeploymentRoute { replicas, scoring_path, request_settings: requests, hold_ms, ..DeploymentRoute::default() }
}

/// A token that opens an endpoint, as routers read it: the endpoint, when it ends, and a signature over both.
pub(crate) fn endpoint_token(keyring: &Keyring, key: &RecordKey, expires: Timestamp) -> String {
    let claim = format!("{}.{}", key.name, expires.0 / 1000);
    let signer = hmac::Key::new(hmac::HMAC_SHA256, token_key(keyring, key).as_bytes());
    format!("{claim}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&signer, claim.as_bytes())))
}

/// What opens an endpoint; `None` where there is none of that name.
pub(super) fn bearer(tx: &mut Tx<'_>, key: &RecordKey, expires: Timestamp) -> Result<Option<String>, Error> {
    let Some(row) = tx.record(key)? else { return Ok(None) };
    match is_opened_by_key(&serde_json::from_str(&row.body).unwrap_or_default()) {
        true => Ok(tx.record_secret(key)?.remove("primaryKey")),
        false => Ok(Some(endpoint_token(tx.keyring(), key, expires))),
    }
}

fn is_opened_by_key(body: &Value) -> bool {
    body["properties"]["authMode"].as_str().is_none_or(|mode| mode.eq_ignore_ascii_case("key"))
}

/// What tokens for an endpoint are signed with; never shown, and made anew whenever it is needed.
fn token_key(keyring: &Keyring, key: &RecordKey) -> String {
    keyring.sign(&format!("endpoint tokens {}/{}", key.workspace, key.name))
}

fn digest(key: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, key.as_bytes());
    format!("sha256:{}", store::secrets::hex(digest.as_ref()))
}

fn shares(map: &Value) -> BTreeMap<String, u32> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(name, share)| Some((name.clone(), u32::try_from(share.as_u64()?).ok()?))).collect()
}
