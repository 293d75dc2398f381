//! Field names that mean something to a router; all others pass.

/// A field by its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Host,
    ContentLength,
    TransferEncoding,
    Connection,
    Upgrade,
    Expect,
    Authorization,
    /// The deployment a caller asks for, and the one that answered.
    Deployment,
    RequestId,
    ClientRequestId,
    TraceParent,
    TraceState,
    Origin,
    /// `access-control-request-method`.
    AskedMethod,
    ForwardedProto,
    /// `access-control-allow-…` and the like, which the router answers for.
    Allow,
    /// The status and reason that the router fills in for a model's error.
    ModelError,
    /// Of one connection only; never passed on.
    Hop,
    Other,
}

/// What a field name means. Compared without regard to case.
pub(crate) fn name(text: &str) -> Name {
    let candidates: &[(&str, Name)] = match text.len() {
        2 => &[("te", Name::Hop)],
        4 => &[("host", Name::Host)],
        6 => &[("expect", Name::Expect), ("origin", Name::Origin)],
        7 => &[("upgrade", Name::Upgrade), ("trailer", Name::Hop)],
        10 => &[("connection", Name::Connection), ("keep-alive", Name::Hop), ("tracestate", Name::TraceState)],
        11 => &[("traceparent", Name::TraceParent)],
        12 => &[("x-request-id", Name::RequestId)],
        13 => &[("authorization", Name::Authorization)],
        14 => &[("content-length", Name::ContentLength), ("http2-settings", Name::Hop)],
        16 => &[("proxy-connection", Name::Hop)],
        17 => &[("transfer-encoding", Name::TransferEncoding), ("x-forwarded-proto", Name::ForwardedProto)],
        18 => &[("proxy-authenticate", Name::Hop)],
        19 => &[("proxy-authorization", Name::Hop)],
        22 => &[("x-ms-client-request-id", Name::ClientRequestId)],
        24 => &[("azureml-model-deployment", Name::Deployment)],
        27 => &[("access-control-allow-origin", Name::Allow)],
        29 => {
            &[("access-control-request-method", Name::AskedMethod), ("ms-azureml-model-error-reason", Name::ModelError)]
        }
        33 => &[("ms-azureml-model-error-statuscode", Name::ModelError)],
        _ => &[],
    };
    candidates.iter().find(|(known, _)| text.eq_ignore_ascii_case(known)).map_or(Name::Other, |(_, name)| *name)
}

/// Whether a list such as that of `connection` holds `word`.
pub(crate) fn lists(value: &[u8], word: &str) -> bool {
    words(value).any(|one| one.eq_ignore_ascii_case(word.as_bytes()))
}

/// The words of a list, without the spaces around them.
pub(crate) fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_found_by_its_length() {
        for (text, expected) in [
            ("HOST", Name::Host),
            ("Content-Length", Name::ContentLength),
            ("Transfer-Encoding", Name::TransferEncoding),
            ("X-Forwarded-Proto", Name::ForwardedProto),
            ("HTTP2-Settings", Name::Hop),
            ("TraceState", Name::TraceState),
            ("Proxy-Connection", Name::Hop),
            ("Proxy-Authenticate", Name::Hop),
            ("Proxy-Authorization", Name::Hop),
            ("X-Ms-Client-Request-Id", Name::ClientRequestId),
            ("AzureML-Model-Deployment", Name::Deployment),
            ("Access-Control-Allow-Origin", Name::Allow),
            ("Access-Control-Request-Method", Name::AskedMethod),
            ("MS-AzureML-Model-Error-Reason", Name::ModelError),
            ("MS-AzureML-Model-Error-StatusCode", Name::ModelError),
            ("content_length", Name::Other),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
    }

    #[test]
    fn lists_are_read_word_by_word() {
        assert!(lists(b"keep-alive, Upgrade", "upgrade"));
        assert!(!lists(b"upgraded", "upgrade"));
    }
}
