//! Routes from what is on record: endpoints and their keys, deployments and their replicas.

use crate::{auth::allow, http::records::Kind};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    Role, Timestamp,
    resources::parse_bytes,
    serving::Provisioning,
    spec::routes::{Cors, DeploymentRoute, EndpointAuth, EndpointKeys, EndpointRoute, KnownCaller, Routes, Secret},
};
use ring::hmac;
use serde_json::Value;
use std::{collections::BTreeMap, net::SocketAddr};
use store::{Error, PrincipalRow, RecordKey, RecordRow, ServingRow, Tx, secrets::Keyring};

/// Properties of an endpoint: pages of which origins may call it, and how long a request may be.
pub(crate) const CORS: &str = "peregrine.cors_origins";
pub(crate) const MAX_BODY: &str = "peregrine.max_body_bytes";
/// How long a request is held for a replica that is being replaced.
const REPLACED_MS: u64 = 10_000;

/// The routes of a site: of endpoints that are served there. `signers` is asked only where callers prove who they are.
pub(super) fn routes(
    tx: &mut Tx<'_>,
    site: &str,
    signers: impl Fn() -> BTreeMap<String, String>,
    now: Timestamp,
) -> Result<Routes, Error> {
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
        if route.auth_mode == EndpointAuth::AadToken {
            (route.callers, route.signers) = (callers(tx, &row.key.workspace, now)?, signers());
        }
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
    let properties = &body["properties"];
    let auth_mode = auth_mode(body);
    let by_key = auth_mode == EndpointAuth::Key;
    let keys = tx.record_secret(&row.key)?;
    let (usual, written) = (EndpointRoute::default(), |key: &str| properties["properties"][key].as_str());
    let digest = |name: &str| keys.get(name).filter(|_| by_key).map(|key| Secret::new(digest(key)));
    Ok(EndpointRoute {
        auth_mode,
        keys: EndpointKeys { primary: digest("primaryKey"), secondary: digest("secondaryKey") },
        token_key: (!by_key).then(|| Secret::new(token_key(tx.keyring(), &row.key))),
        traffic: shares(&properties["traffic"]),
        mirror_traffic: shares(&properties["mirrorTraffic"]),
        max_body_bytes: written(MAX_BODY).and_then(parse_bytes).unwrap_or(usual.max_body_bytes),
        cors: written(CORS).and_then(|text| Cors::parse(text).ok()),
        ..usual
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
    match auth_mode(&serde_json::from_str(&row.body).unwrap_or_default()) {
        EndpointAuth::Key => Ok(tx.record_secret(key)?.remove("primaryKey")),
        _ => Ok(Some(endpoint_token(tx.keyring(), key, expires))),
    }
}

fn auth_mode(body: &Value) -> EndpointAuth {
    match body["properties"]["authMode"].as_str().unwrap_or("Key") {
        mode if mode.eq_ignore_ascii_case("key") => EndpointAuth::Key,
        mode if mode.eq_ignore_ascii_case("aadtoken") => EndpointAuth::AadToken,
        _ => EndpointAuth::AmlToken,
    }
}

/// Everyone who is known, and whether they may call endpoints of a workspace.
fn callers(tx: &mut Tx<'_>, workspace: &str, now: Timestamp) -> Result<BTreeMap<String, KnownCaller>, Error> {
    let over = |row: &PrincipalRow| row.revoked_at.is_some() || row.expires_at.is_some_and(|at| at <= now);
    let people = tx.principals()?.into_iter().filter(|row| !over(row)).map(|row| {
        let may_score = allow(&row.roles, workspace, Role::Contributor);
        (row.id, KnownCaller { digest: row.digest, may_score, expires_at: row.expires_at })
    });
    let jobs = (format!("job:{workspace}/"), KnownCaller { may_score: true, ..KnownCaller::default() });
    Ok(people.chain([jobs]).collect())
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
