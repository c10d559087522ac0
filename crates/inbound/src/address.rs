//! Where a request comes from: the peer's address, or what a trusted proxy says of it.

use http::HeaderMap;
use http::request::Parts;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The other end of the connection, as an extension of the request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Addresses that begin alike: `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no address or network: write one such as 10.0.0.7, 10.0.0.0/8 or fd00::/8");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

impl Network {
    fn holds(&self, address: IpAddr) -> bool {
        let shifted = |number: u128, width: u32| number.checked_shr(width - self.bits).unwrap_or(0);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                shifted(u32::from(own).into(), 32) == shifted(u32::from(other).into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => shifted(own.into(), 128) == shifted(other.into(), 128),
            _ => false,
        }
    }
}

/// The client's address. Each proxy appends whom it heard from, so the last one that is no proxy of ours is the client;
/// what stands before it anybody may have written.
pub fn of(request: &Parts, proxies: &[Network]) -> Option<IpAddr> {
    let Peer(peer) = *request.extensions.get::<Peer>()?;
    let trusted = |address: IpAddr| proxies.iter().any(|proxy| proxy.holds(address));
    if !trusted(peer) {
        return Some(peer);
    }
    let mut told = forwarded(&request.headers).into_iter().rev();
    let mut nearest = peer;
    for address in told.by_ref() {
        // Unreadable: whoever said so is as far as one can see.
        let Some(address) = address else { return Some(nearest) };
        if !trusted(address) {
            return Some(address);
        }
        nearest = address;
    }
    Some(nearest)
}

fn forwarded(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let values = headers.get_all("x-forwarded-for").iter();
    let texts = values.flat_map(|value| value.to_str().unwrap_or("unreadable").split(','));
    texts.map(|text| read(text.trim())).collect()
}

/// An address as proxies write it: bare, in brackets, or with a port.
fn read(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::{Network, Peer, of};
    use http::Request;

    fn client(peer: &str, told: &[&str], proxies: &[&str]) -> String {
        let mut request = Request::new(());
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        for line in told {
            request.headers_mut().append("x-forwarded-for", line.parse().unwrap());
        }
        let proxies: Vec<Network> = proxies.iter().map(|text| text.parse().unwrap()).collect();
        of(&request.into_parts().0, &proxies).unwrap().to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(client("9.9.9.9", &["1.2.3.4"], &[]), "9.9.9.9");
        assert_eq!(client("9.9.9.9", &["1.2.3.4"], &["10.0.0.0/8"]), "9.9.9.9");
        assert_eq!(client("10.1.2.3", &["1.2.3.4"], &["10.0.0.0/8"]), "1.2.3.4");
        assert_eq!(client("::ffff:10.1.2.3", &["1.2.3.4"], &["10.0.0.0/8"]), "1.2.3.4");
        assert_eq!(
            client("10.1.2.3", &["6.6.6.6, 1.2.3.4, 10.9.9.9"], &["10.0.0.0/8"]),
            "1.2.3.4",
            "the last stranger"
        );
        assert_eq!(client("10.1.2.3", &["6.6.6.6", "1.2.3.4"], &["10.0.0.0/8"]), "1.2.3.4");
        assert_eq!(client("10.1.2.3", &["1.2.3.4, nonsense"], &["10.0.0.0/8"]), "10.1.2.3");
        assert_eq!(client("10.1.2.3", &[], &["10.0.0.0/8"]), "10.1.2.3");
        assert_eq!(client("fd00::1", &["2001:db8::7"], &["fd00::/8"]), "2001:db8::7");
        for (told, expected) in [("8.8.8.8:1234", "8.8.8.8"), ("[2001:db8::1]:99", "2001:db8::1"), ("[::2]", "::2")] {
            assert_eq!(client("10.1.2.3", &[told], &["10.0.0.0/8"]), expected, "with a port");
        }
    }

    #[test]
    fn networks_are_read() {
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "x", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.holds("1.2.3.4".parse().unwrap()) && !all.holds("::1".parse().unwrap()));
    }
}
