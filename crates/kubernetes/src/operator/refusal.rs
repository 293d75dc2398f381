//! Why the cluster did not do what it was asked, and what that means for the attempt.

use super::explain::brief;

/// What becomes of something the cluster refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// May go better later; said in the job's wait meanwhile.
    Later(String),
    /// Would be refused again.
    Never { code: &'static str, why: String },
    /// What an earlier making left is still being deleted.
    Busy,
}

impl Refusal {
    pub(crate) fn of(error: &kube::Error) -> Refusal {
        let kube::Error::Api(status) = error else {
            return Refusal::Later("the cluster's API server does not answer; it is asked again".to_owned());
        };
        let said = brief(&status.message);
        let is = |words: &str| status.message.contains(words);
        match status.code {
            403 if is("exceeded quota") => Refusal::Later(format!("the namespace's quota is used up: {said}")),
            403 if is("is being terminated") => {
                Refusal::Later(format!("the namespace is being deleted; make it anew or detach the target: {said}"))
            }
            403 if is("error looking up service account") => {
                Refusal::Later(format!("the namespace has no such service account yet: {said}"))
            }
            403 if is("cannot create resource") || is("cannot get resource") => Refusal::Later(format!(
                "the extension lacks a permission; `peregrine extension upgrade` restores it: {said}"
            )),
            // Who we are is proven anew with the next request.
            401 => Refusal::Later(format!("the cluster does not know the extension's token: {said}")),
            // Two quotas were counted at the same moment.
            409 => Refusal::Later(format!("the cluster is busy: {said}")),
            404 if is("namespaces") => {
                Refusal::Later(format!("the target's namespace does not exist; make it or detach the target: {said}"))
            }
            404 => Refusal::Later(format!("the cluster does not know this kind of object: {said}")),
            // Not answering is not refusing.
            500 if is("failed calling webhook") => {
                Refusal::Later(format!("an admission webhook does not answer: {said}"))
            }
            408 | 410 => Refusal::Later(format!("the cluster is slow: {said}")),
            400..429 => Refusal::Never { code: "Refused", why: format!("the cluster refused the job's pod: {said}") },
            _ => Refusal::Later(format!("the cluster cannot take the job's pod now: {said}")),
        }
    }
}

pub(crate) fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

/// It was not made because it exists.
pub(crate) fn is_there(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "AlreadyExists")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn shown(code: u16, message: &str) -> String {
        match Refusal::of(&kube::Error::Api(Status::failure(message, "").with_code(code).boxed())) {
            Refusal::Later(text) => format!("later: {text}"),
            Refusal::Never { code, why } => format!("never: {code}: {why}"),
            Refusal::Busy => "busy".to_owned(),
        }
    }

    #[test]
    fn a_refusal_is_final_only_when_it_would_be_the_same_again() {
        for (code, message, expect) in [
            (
                403,
                "pods \"x\" is forbidden: exceeded quota: q, requested: cpu=4",
                "later: the namespace's quota is used up",
            ),
            (
                403,
                "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"",
                "never: Refused: the cluster refused",
            ),
            (400, "admission webhook \"v.example\" denied the request: no", "never: Refused: the cluster refused"),
            (422, "Pod \"x\" is invalid: spec", "never: Refused"),
            (
                500,
                "Internal error occurred: failed calling webhook \"v\": context deadline exceeded",
                "later: an admission webhook does not answer",
            ),
            (401, "Unauthorized", "later: the cluster does not know the extension's token"),
            (408, "Timeout: request did not complete", "later: the cluster is slow"),
            (404, "namespaces \"ml\" not found", "later: the target's namespace does not exist"),
            (
                403,
                "unable to create new content in namespace ml because it is being terminated",
                "later: the namespace is being deleted",
            ),
            (
                403,
                "pods \"x\" is forbidden: error looking up service account ml/default: serviceaccount \"default\" not found",
                "later: the namespace has no such service account yet",
            ),
            (
                403,
                "pods is forbidden: User \"x\" cannot create resource \"pods\"",
                "later: the extension lacks a permission",
            ),
            (429, "too many requests", "later: the cluster cannot take"),
            (503, "etcd is away", "later: the cluster cannot take"),
        ] {
            let shown = shown(code, message);
            assert!(shown.starts_with(expect), "{message}: {shown}");
        }
    }
}
