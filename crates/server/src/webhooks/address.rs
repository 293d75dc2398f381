//! Whom webhooks may call: nobody inside the network this server stands in, unless its operator says so.
//!
//! Invariant: the address that is connected to is one that was looked at. Names are resolved once, here, and what is
//! found is what the connection uses; addresses that are written out are looked at as they are.

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// How long a name may take to be found.
const LOOKUP: Duration = Duration::from_secs(5);

/// How far webhooks reach: `anywhere` is also plain http, this machine and private networks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    pub(crate) anywhere: bool,
}

/// Why an address is not called.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    #[error("Invalid webhook URL: it must be a whole address such as https://example.org/hook")]
    NotAnUrl,
    #[error("Invalid webhook URL scheme: '{0}'. Allowed schemes are: {1}.")]
    Scheme(String, &'static str),
    #[error("Webhook URL must not include a user or password")]
    Credentials,
    #[error("Cannot resolve webhook URL hostname '{0}'")]
    Unknown(String),
    #[error("Webhook URL must not resolve to a non-public IP address. '{0}' is inside the server's own network")]
    Inside(String),
}

impl Reach {
    /// The address as it may be called, looked up as it would be.
    pub(crate) async fn check(self, url: &str) -> Result<Url, Unreachable> {
        let url = self.read(url)?;
        let host = url.host_str().ok_or(Unreachable::NotAnUrl)?;
        match literal(host) {
            Some(_) => {}
            None => drop(self.look_up(host).await?),
        }
        Ok(url)
    }

    /// The address, if nothing speaks against it before its name is looked up.
    pub(super) fn read(self, url: &str) -> Result<Url, Unreachable> {
        let url = Url::parse(url).map_err(|_| Unreachable::NotAnUrl)?;
        let (schemes, told): (&[&str], _) =
            if self.anywhere { (&["https", "http"], "https, http") } else { (&["https"], "https") };
        if !schemes.contains(&url.scheme()) {
            return Err(Unreachable::Scheme(url.scheme().to_owned(), told));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Unreachable::Credentials);
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(Unreachable::NotAnUrl)?;
        match literal(host) {
            Some(ip) if !self.may_call(ip) => Err(Unreachable::Inside(host.to_owned())),
            _ => Ok(url),
        }
    }

    async fn look_up(self, host: &str) -> Result<Vec<SocketAddr>, Unreachable> {
        let unknown = || Unreachable::Unknown(host.to_owned());
        let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((host, 0))).await;
        let found: Vec<SocketAddr> = found.map_err(|_| unknown())?.map_err(|_| unknown())?.collect();
        match found.iter().all(|address| self.may_call(address.ip())) {
            _ if found.is_empty() => Err(unknown()),
            true => Ok(found),
            false => Err(Unreachable::Inside(host.to_owned())),
        }
    }

    fn may_call(self, ip: IpAddr) -> bool {
        self.anywhere || is_public(ip)
    }
}

impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = *self;
        Box::pin(async move {
            let found = reach.look_up(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The address a host is, where it is written out.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_4(ip),
        IpAddr::V6(ip) => is_public_6(ip),
    }
}

fn is_public_4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let shared = a == 100 && b & 0xc0 == 64;
    let protocols = (a, b, c) == (192, 0, 0);
    let benchmarks = a == 198 && b & 0xfe == 18;
    let barred = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation();
    !(barred || a == 0 || a >= 224 || shared || protocols || benchmarks)
}

/// Of the newer addresses only those handed out to the public are, less the examples and tunnels among them. An older
/// address inside a newer one is looked at as what it is.
fn is_public_6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    let older = |high: u16, low: u16| is_public_4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => older(high, low),
        [0x2002, high, low, ..] => older(high, low),
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_whole_world_can_reach_is_public() {
        for (ip, public) in [
            ("8.8.8.8", true),
            ("192.88.99.1", true),
            ("127.0.0.1", false),
            ("127.255.0.9", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("100.128.0.1", true),
            ("198.18.0.1", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1111", true),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("ff02::1", false),
            ("2001:db8::1", false),
            ("2001:0:53aa:64c::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("64:ff9b::a00:1", false),
            ("64:ff9b:1::1", false),
            ("2002:7f00:1::", false),
        ] {
            assert_eq!(is_public(ip.parse().unwrap()), public, "{ip}");
        }
    }

    #[tokio::test]
    async fn an_address_is_called_only_as_far_as_webhooks_reach() {
        for (url, public, anywhere) in [
            ("https://192.88.99.1/x", true, true),
            ("http://192.88.99.1/x", false, true),
            ("https://127.0.0.1/x", false, true),
            ("https://127.1/x", false, true),
            ("https://0x7f000001/x", false, true),
            ("https://2130706433/", false, true),
            ("https://[::1]:9/x", false, true),
            ("https://localhost/x", false, true),
            ("https://user:word@192.88.99.1/", false, false),
            ("https://name.invalid/", false, false),
            ("file:///etc/passwd", false, false),
            ("gopher://192.88.99.1/", false, false),
            ("unix:/run/x.sock", false, false),
            ("https://", false, false),
            ("hello", false, false),
            ("", false, false),
        ] {
            assert_eq!(Reach { anywhere: false }.check(url).await.is_ok(), public, "{url}");
            assert_eq!(Reach { anywhere: true }.check(url).await.is_ok(), anywhere, "{url} anywhere");
        }
    }
}
