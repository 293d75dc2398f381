//! Signed links: a query string that opens one container, or one folder of it, for a time.
//!
//! Invariant: a link says what it opens in the text that is signed, so nothing in it can be changed.

use domain::Timestamp;
use store::secrets::Keyring;

/// A query string that opens one container until `expires`. `write` also lets it change things.
pub(crate) fn sign_link(
    keyring: &Keyring,
    workspace: &str,
    container: &str,
    write: bool,
    expires: Timestamp,
) -> String {
    sign_folder_link(keyring, workspace, container, "", write, expires)
}

/// A query string that opens the blobs whose names begin with `folder`.
pub(crate) fn sign_folder_link(
    keyring: &Keyring,
    workspace: &str,
    container: &str,
    folder: &str,
    write: bool,
    expires: Timestamp,
) -> String {
    let rights = if write { "racwdl" } else { "rl" };
    let seconds = expires.0 / 1000;
    let signature = keyring.sign(&link_text(workspace, container, folder, rights, seconds));
    let folder = percent_encoding::utf8_percent_encode(folder, percent_encoding::NON_ALPHANUMERIC);
    let inside = if folder.clone().next().is_some() { format!("&sdd={folder}") } else { String::new() };
    format!("sv=2021-06-08&sr=c&sp={rights}&se={seconds}{inside}&sig={signature}")
}

/// Whether a query string opens this blob of this container now, for writing if `write`.
pub(crate) fn link_opens(
    keyring: &Keyring,
    query: &str,
    workspace: &str,
    container: &str,
    path: &str,
    write: bool,
    now: Timestamp,
) -> bool {
    let part = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    let (Some(rights), Some(expires), Some(signature)) = (part("sp"), part("se"), part("sig")) else { return false };
    let Ok(seconds) = expires.parse::<i64>() else { return false };
    let folder = percent_encoding::percent_decode_str(part("sdd").unwrap_or_default()).decode_utf8_lossy();
    now.0 / 1000 < seconds
        && (!write || rights.contains('w'))
        && path.starts_with(folder.as_ref())
        && keyring.signed(&link_text(workspace, container, &folder, rights, seconds), signature)
}

/// What is signed. Each part is preceded by its length, so that no part can pass for two.
fn link_text(workspace: &str, container: &str, folder: &str, rights: &str, seconds: i64) -> String {
    let parts = ["link", workspace, container, rights, &seconds.to_string(), folder];
    parts.map(|part| format!("{}:{part}", part.len())).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_its_own_container_for_its_time_and_rights() {
        let home = tempfile::tempdir().unwrap();
        let store = store::Store::open(home.path()).unwrap();
        let ring = store.keyring();
        let opens = |link: &str, container: &str, path: &str, write: bool, at: i64| {
            link_opens(ring, link, "w", container, path, write, Timestamp(at))
        };
        let read = sign_link(ring, "w", "c", false, Timestamp(10_000));
        assert!(opens(&read, "c", "x", false, 5_000));
        assert!(!opens(&read, "c", "x", true, 5_000));
        assert!(!opens(&read, "d", "x", false, 5_000));
        assert!(!opens(&read, "c", "x", false, 20_000));
        assert!(!opens(&read.replace("sp=rl", "sp=racwdl"), "c", "x", true, 5_000));
        let odd = sign_folder_link(ring, "w", "c racwdl 99 x", "", false, Timestamp(10_000));
        let signature = odd.split("sig=").nth(1).unwrap();
        let forged = format!("sp=racwdl&se=99&sdd=x%20rl%2010%20&sig={signature}");
        assert!(!opens(&forged, "c", "x rl 10 y", true, 5_000));
        let narrow = sign_folder_link(ring, "w", "c", "run/1 ü/", false, Timestamp(10_000));
        assert!(opens(&narrow, "c", "run/1 ü/log.txt", false, 5_000));
        assert!(!opens(&narrow, "c", "run/2/log.txt", false, 5_000));
        assert!(!opens(&narrow.replace("run%2F1", "run%2F2"), "c", "run/2 ü/x", false, 5_000));
    }
}
