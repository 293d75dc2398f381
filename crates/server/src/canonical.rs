//! Resource paths in any case: clients spell `resourceGroups` in more than one way.

use axum::http::{Uri, uri::PathAndQuery};

/// Words of resource paths, as the route table spells them.
const WORDS: &[&str] = &[
    "subscriptions",
    "resourceGroups",
    "providers",
    "workspaces",
    "jobs",
    "computes",
    "datastores",
    "codes",
    "environments",
    "data",
    "models",
    "components",
    "versions",
    "cancel",
    "why",
    "samples",
    "metrics",
    "stream",
    "artifacts",
    "listNodes",
    "listSecrets",
    "startPendingUpload",
    "locations",
    "vmSizes",
    "usages",
    "usage",
    "quotas",
    "updateQuotas",
    "teams",
    "operations",
    "operationResults",
    "start",
    "stop",
    "restart",
    "schedules",
    "trigger",
    "onlineEndpoints",
    "batchEndpoints",
    "deployments",
    "listKeys",
    "regenerateKeys",
    "token",
    "getLogs",
    "activity",
    "try",
    "uses",
    "registries",
    "tempdatarefs",
    "datarefs",
    "import",
    "experiments",
    "runs",
    "details",
    "children",
    "serviceinstances",
    "rundata",
    "dataversion",
];

/// Services beside the resources, which stand before a resource path.
const SERVICES: &[&str] =
    &["/history/v1.0", "/metric/v2.0", "/data/v1.0", "/modelregistry/v1.0", FRONT, "/mlflow/v1.0", "/mlflow/v2.0"];
/// The provider of template deployments.
const RESOURCES: &str = "Microsoft.Resources";
/// Where clients look for the resources of a data plane.
const FRONT: &str = "/mferp/managementfrontend";
/// How many parts name a workspace; what follows it under a dialect that is not ours is left alone.
const WORKSPACE_PARTS: usize = 8;

/// The same address with its words spelled as the table spells them; names are left alone.
pub(crate) fn canonical(uri: &Uri) -> Option<Uri> {
    let whole = uri.path();
    if let Some(long) = crate::http::registries::long_path(whole) {
        return with_path(uri, long);
    }
    // Pages of MLflow's own call the same API at an address of their own.
    if let Some((before, after)) = whole.split_once("/ajax-api/")
        && (before.is_empty() || before.starts_with("/mlflow/"))
    {
        let plain = format!("{before}/api/{after}");
        let uri = with_path(uri, plain)?;
        return Some(canonical(&uri).unwrap_or(uri));
    }
    let (service, path) = split_service(whole);
    let is_resource = path.get(1..14).is_some_and(|head| head.eq_ignore_ascii_case("subscriptions"));
    if !is_resource {
        return None;
    }
    let foreign = service.starts_with("/mlflow");
    let mut out = String::with_capacity(whole.len());
    // The front of the management plane is the resources themselves.
    let front = service == FRONT;
    out.push_str(if front { "" } else { service });
    let mut free = false;
    for (at, part) in path.split('/').skip(1).enumerate() {
        free |= foreign && at >= WORKSPACE_PARTS;
        let word = match part {
            _ if free => part,
            part if part.eq_ignore_ascii_case(api::arm::PROVIDER) => api::arm::PROVIDER,
            part if part.eq_ignore_ascii_case(RESOURCES) => RESOURCES,
            part if at % 2 == 0 => WORDS.iter().find(|word| word.eq_ignore_ascii_case(part)).unwrap_or(&part),
            part => part,
        };
        free |= at % 2 == 0 && word == "artifacts";
        out.push('/');
        out.push_str(word);
    }
    if out.len() > 1 && out.ends_with('/') && !free {
        out.pop();
    }
    if out == whole {
        return None;
    }
    with_path(uri, out)
}

fn with_path(uri: &Uri, path: String) -> Option<Uri> {
    let target = uri.query().map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
}

/// The service a path begins with, as the table spells it, and the rest.
fn split_service(path: &str) -> (&'static str, &str) {
    let begins = |service: &&&str| {
        path.get(..service.len()).is_some_and(|head| head.eq_ignore_ascii_case(service))
            && path[service.len()..].starts_with('/')
    };
    SERVICES.iter().find(begins).map_or(("", path), |service| (*service, &path[service.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_respelled_and_names_are_not() {
        let shown = |path: &str| canonical(&path.parse().unwrap()).map(|uri| uri.to_string());
        let spelled = "/SUBSCRIPTIONS/Jobs/resourcegroups/VERSIONS/providers/microsoft.machinelearningservices/Workspaces/DATA/JOBS/Models?a=B";
        let expect = "/subscriptions/Jobs/resourceGroups/VERSIONS/providers/Microsoft.MachineLearningServices/workspaces/DATA/jobs/Models?a=B";
        assert_eq!(shown(spelled).as_deref(), Some(expect));
        assert_eq!(shown("/healthz"), None);
        let file = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w/jobs/j/artifacts/Data/MODELS";
        assert_eq!(shown(file), None);
    }

    #[test]
    fn a_service_before_the_path_is_respelled_with_it() {
        let shown = |path: &str| canonical(&path.parse().unwrap()).map(|uri| uri.to_string());
        let ws = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w";
        let spelled = "/History/V1.0/subscriptions/s/RESOURCEGROUPS/g/providers/microsoft.machinelearningservices/workspaces/w/Runs/DETAILS/Details";
        assert_eq!(shown(spelled), Some(format!("/history/v1.0{ws}/runs/DETAILS/details")));
        for file in [
            format!("/history/v1.0{ws}/runs/r/artifacts/Data/MODELS/Jobs"),
            format!("/mlflow/v2.0{ws}/api/2.0/mlflow-artifacts/artifacts/DATA/RUNS/Jobs/Models"),
            "/history/v1.0/healthz".to_owned(),
            "/historyv1.0/subscriptions".to_owned(),
        ] {
            assert_eq!(shown(&file), None, "{file}");
        }
        let mlflow = format!("/mlflow/v1.0{}/api/2.0/mlflow/runs/get", ws.replace("resourceGroups", "resourcegroups"));
        assert_eq!(shown(&mlflow), Some(format!("/mlflow/v1.0{ws}/api/2.0/mlflow/runs/get")));
    }
}
