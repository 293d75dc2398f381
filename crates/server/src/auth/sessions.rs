//! Sessions of browsers: a one-time link becomes a cookie, and a cookie is believed like a token.
//!
//! A cookie names its session and is signed, so a server that was started again still knows it. What a browser adds by
//! itself proves nothing about who meant a request: a change needs a header that only our page can send, and every
//! request must come from our own origin. Invariant: a link opens one session, once, within a minute or two; a session
//! ends an hour after its page was last seen, and half a day after it began whatever happens.

use super::{Caller, Tokens, Who, digest, unauthorized};
use crate::problem::Problem;
use axum::http::{HeaderMap, Method, Uri, header};
use domain::Timestamp;
use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::PathBuf,
    sync::{Mutex, MutexGuard, OnceLock},
};
use store::secrets::{Keyring, hex, write_owner_only};

/// The header of our own page's requests, which no other page can send here.
pub(crate) const MARK: &str = "x-peregrine-studio";
const LINK_MS: i64 = 120_000;
const QUIET_MS: i64 = 3_600_000;
const WHOLE_MS: i64 = 12 * QUIET_MS;
/// Whoever can read the key files of this home, in a claim.
pub(super) const HOME: &str = "home";

/// A browser that was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// A principal's id, or the word for this home.
    who: String,
    id: String,
    began: Timestamp,
    pub(crate) until: Timestamp,
}

/// Links that nobody has used yet, and sessions that were ended before their time.
#[derive(Default)]
pub(crate) struct Sessions {
    links: Mutex<HashMap<String, (String, Timestamp)>>,
    over: Mutex<HashMap<String, Timestamp>>,
    /// Where the ended ones are written down, a line each: a server that was started again must not believe them.
    file: OnceLock<PathBuf>,
}

impl Sessions {
    /// Reads which sessions were ended, and writes down from now on which are.
    pub(crate) fn remember(&self, file: PathBuf, now: Timestamp) -> io::Result<()> {
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let ended = lines.filter_map(|(id, until)| Some((id.to_owned(), Timestamp(until.parse().ok()?))));
        let ended: HashMap<String, Timestamp> = ended.filter(|(_, until)| now < *until).collect();
        let kept: String = ended.iter().map(|(id, until)| line(id, *until)).collect();
        write_owner_only(&file, kept.as_bytes())?;
        *self.over() = ended;
        let _only_once = self.file.set(file);
        Ok(())
    }

    /// A code that opens one session for the caller; `None` for callers that are not people.
    pub(crate) fn link(&self, caller: &Caller, keyring: &Keyring, now: Timestamp) -> Option<String> {
        let who = match &caller.who {
            Who::Home => HOME.to_owned(),
            Who::Principal(id) => id.clone(),
            _ => return None,
        };
        let code = hex(&keyring.random::<32>());
        let mut links = self.links.lock().expect("nothing panics while it holds the links");
        links.retain(|_, (_, until)| now < *until);
        links.insert(digest(&code), (who, Timestamp(now.0 + LINK_MS)));
        Some(code)
    }

    /// The session that a code opens, this once.
    pub(crate) fn enter(&self, code: &str, keyring: &Keyring, now: Timestamp) -> Option<Session> {
        let mut links = self.links.lock().expect("nothing panics while it holds the links");
        let (who, until) = links.remove(&digest(code))?;
        let session = Session { who, id: hex(&keyring.random::<16>()), began: now, until: now };
        (now < until).then(|| renewed(session, now))
    }

    /// Whether a code that is good would put another person into a browser that someone is signed in with.
    pub(crate) fn replaces(&self, signed_in: &Caller, code: &str, now: Timestamp) -> bool {
        let links = self.links.lock().expect("nothing panics while it holds the links");
        let good = links.get(&digest(code)).filter(|(_, until)| now < *until);
        good.is_some_and(|(who, _)| match &signed_in.who {
            Who::Home => who != HOME,
            Who::Principal(id) => who != id,
            _ => true,
        })
    }

    /// The session of a cookie whose time is not over.
    pub(crate) fn of(&self, headers: &HeaderMap, keyring: &Keyring, now: Timestamp) -> Option<Session> {
        let session = parse(&cookie(headers, keyring)?, keyring)?;
        let over = self.over().contains_key(&session.id);
        (!over && now < session.until).then_some(session)
    }

    /// The caller behind a browser's cookie.
    pub(crate) fn caller(
        &self,
        tokens: &Tokens,
        keyring: &Keyring,
        (method, headers): (&Method, &HeaderMap),
        now: Timestamp,
    ) -> Result<Caller, Problem> {
        from_our_page(method, headers)?;
        let caller = self.of(headers, keyring, now).and_then(|session| tokens.named(&session.who, now));
        caller.ok_or_else(|| unauthorized("the session is over; `peregrine studio` opens a new one"))
    }

    /// Ends a session: its cookie is refused from now on. An error means that a server started again would believe it.
    pub(crate) fn end(&self, session: &Session, now: Timestamp) -> io::Result<()> {
        let until = Timestamp(session.began.0 + WHOLE_MS);
        let mut over = self.over();
        over.retain(|_, until| now < *until);
        over.insert(session.id.clone(), until);
        let Some(file) = self.file.get() else { return Ok(()) };
        let mut file = fs::OpenOptions::new().append(true).create(true).open(file)?;
        file.write_all(line(&session.id, until).as_bytes())?;
        file.sync_data()
    }

    fn over(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        self.over.lock().expect("nothing panics while it holds the sessions")
    }
}

fn line(id: &str, until: Timestamp) -> String {
    format!("{id} {}\n", until.0)
}

/// The same session, good for another while.
pub(crate) fn renewed(session: Session, now: Timestamp) -> Session {
    let until = Timestamp((now.0 + QUIET_MS).min(session.began.0 + WHOLE_MS));
    Session { until, ..session }
}

/// Whether a browser brought a session along, good or not.
pub(crate) fn has_cookie(headers: &HeaderMap, keyring: &Keyring) -> bool {
    cookie(headers, keyring).is_some()
}

/// What makes a browser keep a session, or with none forget it.
pub(crate) fn set_cookie(session: Option<&Session>, keyring: &Keyring, now: Timestamp) -> String {
    let (value, seconds) = match session {
        // A browser counts in whole seconds; the server knows better when it is over.
        Some(session) => (written(session, keyring), (session.until.0 - now.0 + 999) / 1000),
        None => (String::new(), 0),
    };
    format!("{}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Strict", name(keyring))
}

/// Browsers keep one jar for all ports of a host, so each home has a name of its own.
fn name(keyring: &Keyring) -> String {
    format!("__Host-peregrine-{}", &keyring.sign("name of the studio's cookie")[..8])
}

fn written(Session { who, id, began, until }: &Session, keyring: &Keyring) -> String {
    let claim = format!("{who}/{id}/{}/{}", began.0, until.0);
    let signature = keyring.sign(&format!("studio {claim}"));
    format!("{claim}.{signature}")
}

fn parse(cookie: &str, keyring: &Keyring) -> Option<Session> {
    let (claim, signature) = cookie.rsplit_once('.')?;
    if !keyring.signed(&format!("studio {claim}"), signature) {
        return None;
    }
    let parts: Vec<&str> = claim.split('/').collect();
    let [who, id, began, until] = parts[..] else { return None };
    let time = |text: &str| text.parse().ok().map(Timestamp);
    Some(Session { who: who.into(), id: id.into(), began: time(began)?, until: time(until)? })
}

fn cookie(headers: &HeaderMap, keyring: &Keyring) -> Option<String> {
    let name = name(keyring);
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

/// Refuses what another page made a browser send.
pub(crate) fn from_our_page(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text("host").unwrap_or_default();
    let foreign_site = text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let ours = |origin: &str| origin.parse::<Uri>().is_ok_and(|uri| uri.authority().is_some_and(|at| at == host));
    let foreign_origin = text("origin").is_some_and(|origin| !ours(origin));
    let unmarked = !matches!(*method, Method::GET | Method::HEAD) && text(MARK).is_none();
    if foreign_site || foreign_origin || unmarked {
        let message =
            "a session answers to the studio's own page only; other programs send `Authorization: Bearer <token>`";
        return Err(Problem::forbidden(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(work: impl FnOnce(&Sessions, &Tokens, &Keyring) -> T) -> T {
        let home = tempfile::tempdir().unwrap();
        let store = store::Store::open(home.path()).unwrap();
        let tokens = Tokens::load_or_make(home.path(), store.keyring(), Timestamp(1)).unwrap();
        work(&Sessions::default(), &tokens, store.keyring())
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn sent(session: &Session, keyring: &Keyring, now: i64) -> HeaderMap {
        let set = set_cookie(Some(session), keyring, Timestamp(now));
        headers(&[("cookie", &format!("a=b; {}", set.split(';').next().unwrap()))])
    }

    #[test]
    fn a_link_opens_one_session_once_and_soon() {
        with(|sessions, tokens, keyring| {
            let me = tokens.named(HOME, Timestamp(1)).unwrap();
            let code = sessions.link(&me, keyring, Timestamp(0)).unwrap();
            let session = sessions.enter(&code, keyring, Timestamp(10)).unwrap();
            assert!(sessions.enter(&code, keyring, Timestamp(10)).is_none(), "a second time");
            let found = sessions.of(&sent(&session, keyring, 10), keyring, Timestamp(20)).unwrap();
            assert_eq!(tokens.named(&found.who, Timestamp(20)).unwrap().who, Who::Home);
            let late = sessions.link(&me, keyring, Timestamp(0)).unwrap();
            assert!(sessions.enter(&late, keyring, Timestamp(LINK_MS)).is_none());
            assert!(sessions.enter("nonsense", keyring, Timestamp(10)).is_none());
            let agent = Caller::new(Who::Agent, "agent", Default::default());
            assert!(sessions.link(&agent, keyring, Timestamp(0)).is_none());
        });
    }

    #[test]
    fn a_session_ends_when_it_is_quiet_when_it_is_old_and_when_it_is_left() {
        with(|sessions, tokens, keyring| {
            let code = sessions.link(&tokens.named(HOME, Timestamp(1)).unwrap(), keyring, Timestamp(0)).unwrap();
            let session = sessions.enter(&code, keyring, Timestamp(0)).unwrap();
            let good = |session: &Session, now: i64| {
                sessions.of(&sent(session, keyring, now), keyring, Timestamp(now)).is_some()
            };
            assert!(good(&session, QUIET_MS - 1) && !good(&session, QUIET_MS));
            let later = renewed(session.clone(), Timestamp(QUIET_MS - 1));
            assert!(good(&later, QUIET_MS + 1));
            assert_eq!(renewed(session.clone(), Timestamp(WHOLE_MS - 1)).until, Timestamp(WHOLE_MS));
            let mut forged = sent(&session, keyring, 0);
            let text = forged["cookie"].to_str().unwrap().replace(HOME, "someone");
            forged.insert("cookie", text.parse().unwrap());
            assert!(sessions.of(&forged, keyring, Timestamp(1)).is_none());
            sessions.end(&later, Timestamp(5)).unwrap();
            assert!(!good(&session, 6) && !good(&later, 6));
        });
    }

    #[test]
    fn a_session_that_was_left_is_over_for_the_next_server_too() {
        with(|first, tokens, keyring| {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("left");
            let enter = |at: i64| {
                let code = first.link(&tokens.named(HOME, Timestamp(1)).unwrap(), keyring, Timestamp(at)).unwrap();
                first.enter(&code, keyring, Timestamp(at)).unwrap()
            };
            first.remember(file.clone(), Timestamp(0)).unwrap();
            let [left, stays] = [enter(0), enter(0)];
            first.end(&left, Timestamp(5)).unwrap();
            let next = Sessions::default();
            next.remember(file.clone(), Timestamp(6)).unwrap();
            let good = |session: &Session| next.of(&sent(session, keyring, 6), keyring, Timestamp(6)).is_some();
            assert_eq!((good(&left), good(&stays)), (false, true));
            next.end(&stays, Timestamp(7)).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
            Sessions::default().remember(file.clone(), Timestamp(WHOLE_MS)).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "", "what is over by itself needs no line");
        });
    }

    #[test]
    fn what_another_page_sends_is_refused() {
        let at = ("host", "127.0.0.1:7423");
        for (method, pairs, fits) in [
            (Method::GET, &[at][..], true),
            (Method::GET, &[at, ("sec-fetch-site", "same-origin")], true),
            (Method::GET, &[at, ("sec-fetch-site", "none")], true),
            (Method::GET, &[at, ("sec-fetch-site", "cross-site")], false),
            (Method::GET, &[at, ("sec-fetch-site", "same-site")], false),
            (Method::POST, &[at], false),
            (Method::POST, &[at, (MARK, "1")], true),
            (Method::POST, &[at, (MARK, "1"), ("origin", "https://127.0.0.1:7423")], true),
            (Method::POST, &[at, (MARK, "1"), ("origin", "https://127.0.0.1:9999")], false),
            (Method::POST, &[at, (MARK, "1"), ("origin", "https://elsewhere.example")], false),
            (Method::DELETE, &[at, (MARK, "1"), ("origin", "null")], false),
        ] {
            assert_eq!(from_our_page(&method, &headers(pairs)).is_ok(), fits, "{method} {pairs:?}");
        }
    }
}
