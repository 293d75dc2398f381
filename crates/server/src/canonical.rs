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
    "artifacts",
    "listNodes",
    "listSecrets",
    "startPendingUpload",
    "locations",
    "vmSizes",
    "usages",
    "operations",
    "operationResults",
    "start",
    "stop",
    "restart",
    "schedules",
    "onlineEndpoints",
    "batchEndpoints",
    "deployments",
    "listKeys",
    "regenerateKeys",
    "token",
    "getLogs",
];

/// Where clients look for the parts of the tree that are not of the resource manager proper.
const FRONT: &str = "/mferp/managementfrontend";

/// The same address with its words spelled as the table spells them; names are left alone.
pub(crate) fn canonical(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    // The front of the management plane is the same tree under another prefix.
    let bare = path.strip_prefix(FRONT).filter(|rest| rest.starts_with('/'));
    let path = bare.unwrap_or(path);
    let is_resource = path.get(1..14).is_some_and(|head| head.eq_ignore_ascii_case("subscriptions"));
    if !is_resource {
        return None;
    }
    let mut out = String::with_capacity(path.len());
    let mut changed = bare.is_some();
    let mut free = false;
    for (at, part) in path.split('/').skip(1).enumerate() {
        let word = match part {
            _ if free => part,
            part if part.eq_ignore_ascii_case(api::arm::PROVIDER) => api::arm::PROVIDER,
            part if at % 2 == 0 => WORDS.iter().find(|word| word.eq_ignore_ascii_case(part)).unwrap_or(&part),
            part => part,
        };
        changed |= word != part;
        free |= at % 2 == 0 && word == "artifacts";
        out.push('/');
        out.push_str(word);
    }
    if out.len() > 1 && out.ends_with('/') && !free {
        out.pop();
        changed = true;
    }
    if !changed {
        return None;
    }
    let target = uri.query().map_or_else(|| out.clone(), |query| format!("{out}?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
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
}
