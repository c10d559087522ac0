//! Address ranges: those that are not public, by name, and those an operator writes down.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses, as `10.0.0.0/8`, `fd00::/8` or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same_bits(u128::from(network.to_bits()), u128::from(address.to_bits()), 32, self.prefix)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_bits(network.to_bits(), address.to_bits(), 128, self.prefix)
            }
            _ => false,
        }
    }
}

fn same_bits(left: u128, right: u128, width: u8, prefix: u8) -> bool {
    prefix == 0 || (left ^ right) >> (width - prefix) == 0
}

impl FromStr for Cidr {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is no range of addresses: write one such as 10.0.0.0/8, fd00::/8 or 127.0.0.1");
        let (network, prefix) = text.split_once('/').map_or((text, None), |(n, p)| (n, Some(p)));
        let network: IpAddr = network.parse().map_err(|_| wrong())?;
        let width = if network.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        if prefix > width {
            return Err(wrong());
        }
        let cidr = Self { network, prefix };
        let rest = match network {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96 << prefix,
            IpAddr::V6(v6) => v6.to_bits().checked_shl(prefix.into()).unwrap_or(0),
        };
        // 10.1.2.3/8 is a slip: nobody knows whether the address or the length is meant.
        if rest != 0 && prefix < width {
            return Err(format!("'{text}' has bits set beyond its length; write the range's first address"));
        }
        Ok(cidr)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

type V4 = (Ipv4Addr, u8, &'static str);
type V6 = (Ipv6Addr, u8, &'static str);

/// What the IANA registries call special, or what leads into somebody's own network.
const REFUSED_V4: [V4; 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "of this network (0/8)"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "of a carrier's network (100.64/10)"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "the host of a machine at Azure"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "for protocol assignments (192.0.0/24)"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a 6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks (198.18/15)"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(255, 255, 255, 255), 32, "the broadcast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved (class E)"),
];

/// What is outside of 2000::/3, which is all that is public in IPv6.
const OUTSIDE: &str = "outside of 2000::/3";

const REFUSED_V6: [V6; 22] = [
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "a loopback address"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, "an IPv4 address in IPv6 form"),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, "an IPv4 address in translated form"),
    (Ipv6Addr::UNSPECIFIED, 96, "an IPv4 address in compatible form"),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, "behind NAT64"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "behind a local NAT64"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "for discarding"),
    (Ipv6Addr::new(0x100, 0, 0, 1, 0, 0, 0, 0), 64, "a dummy"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "a Teredo address"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "for protocol assignments (2001::/23)"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "a 6to4 address"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "a segment of SRv6"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "private (unique local)"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "a multicast address"),
    // The first that fits is told, so these come last.
    (Ipv6Addr::UNSPECIFIED, 3, OUTSIDE),
    (Ipv6Addr::new(0x4000, 0, 0, 0, 0, 0, 0, 0), 2, OUTSIDE),
    (Ipv6Addr::new(0x8000, 0, 0, 0, 0, 0, 0, 0), 1, OUTSIDE),
];

/// What an address is, if it is not a public one.
pub fn refused(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(_) => {
            let found = REFUSED_V4
                .iter()
                .find(|(network, prefix, _)| Cidr { network: (*network).into(), prefix: *prefix }.contains(address));
            found.map(|(_, _, kind)| *kind)
        }
        IpAddr::V6(_) => {
            let found = REFUSED_V6
                .iter()
                .find(|(network, prefix, _)| Cidr { network: (*network).into(), prefix: *prefix }.contains(address));
            found.map(|(_, _, kind)| *kind)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cidr;

    #[test]
    fn ranges_are_read_and_slips_are_told() {
        for text in ["10.0.0.0/8", "127.0.0.1/32", "0.0.0.0/0", "fd00::/8", "::1/128", "::/0"] {
            assert_eq!(text.parse::<Cidr>().map(|cidr| cidr.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("192.168.1.7".parse::<Cidr>().unwrap().to_string(), "192.168.1.7/32");
        for text in ["", "10", "10.0.0.0/33", "10.0.0.0/x", "fd00::/129", "localhost", "10.0.0.0/8/8"] {
            assert!(text.parse::<Cidr>().unwrap_err().contains("no range of addresses"), "{text}");
        }
        for text in ["10.1.2.3/8", "fd00::1/8", "0.0.0.1/0"] {
            assert!(text.parse::<Cidr>().unwrap_err().contains("beyond its length"), "{text}");
        }
    }

    #[test]
    fn the_edges_of_a_range_are_in_it() {
        let cidr: Cidr = "172.16.0.0/12".parse().unwrap();
        let has = |text: &str| cidr.contains(text.parse().unwrap());
        assert!(has("172.16.0.0") && has("172.31.255.255"));
        assert!(!has("172.15.255.255") && !has("172.32.0.0") && !has("::ffff:172.16.0.1"));
    }
}
