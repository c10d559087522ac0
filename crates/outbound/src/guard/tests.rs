//! Every refused range in every spelling, names that lead to them, and what an operator admits.

use super::{Guard, Lookup, Rules};
use reqwest::dns::Resolve as _;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

fn guard(allow: &[&str]) -> Guard {
    let allow = allow.iter().map(|text| text.parse().expect("a range")).collect();
    Guard::new(Rules { allow, allow_http: false })
}

/// A lookup that knows one answer for every name.
fn leading_to(addresses: &[&str]) -> Lookup {
    let found: Vec<IpAddr> = addresses.iter().map(|text| text.parse().expect("an address")).collect();
    Arc::new(move |_| {
        let found = found.clone();
        Box::pin(async move { if found.is_empty() { Err(io::Error::other("no such name")) } else { Ok(found) } })
    })
}

/// The first, last and a middle address of each range of IPv4 that is refused, and its neighbours that are public.
const V4: [(&str, &[&str]); 17] = [
    ("of this network", &["0.0.0.0", "0.255.255.255"]),
    ("private", &["10.0.0.0", "10.1.2.3", "10.255.255.255"]),
    ("a carrier's network", &["100.64.0.0", "100.127.255.255"]),
    ("loopback", &["127.0.0.0", "127.0.0.1", "127.255.255.255"]),
    ("Azure", &["168.63.129.16"]),
    ("link-local", &["169.254.0.0", "169.254.169.254", "169.254.255.255"]),
    ("private", &["172.16.0.0", "172.31.255.255"]),
    ("protocol assignments", &["192.0.0.0", "192.0.0.170", "192.0.0.255"]),
    ("documentation", &["192.0.2.0", "192.0.2.255"]),
    ("6to4", &["192.88.99.0", "192.88.99.255"]),
    ("private", &["192.168.0.0", "192.168.255.255"]),
    ("benchmarks", &["198.18.0.0", "198.19.255.255"]),
    ("documentation", &["198.51.100.0", "198.51.100.255"]),
    ("documentation", &["203.0.113.0", "203.0.113.255"]),
    ("multicast", &["224.0.0.0", "239.255.255.255"]),
    ("class E", &["240.0.0.0", "255.255.255.254"]),
    ("broadcast", &["255.255.255.255"]),
];

const V6: [(&str, &[&str]); 20] = [
    ("unspecified", &["::"]),
    ("loopback", &["::1", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001"]),
    ("IPv4 address in IPv6 form", &["::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8", "0:0:0:0:0:ffff:a00:1"]),
    ("translated form", &["::ffff:0:127.0.0.1"]),
    ("compatible form", &["::127.0.0.1", "::7f00:1"]),
    ("NAT64", &["64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe"]),
    ("local NAT64", &["64:ff9b:1::1"]),
    ("discarding", &["100::1", "100::ffff:ffff:ffff:ffff"]),
    ("dummy", &["100:0:0:1::1"]),
    ("Teredo", &["2001::1", "2001:0:ffff::"]),
    ("2001::/23", &["2001:1::1", "2001:20::1", "2001:1ff::1"]),
    ("documentation", &["2001:db8::1"]),
    ("6to4", &["2002:7f00:1::", "2002:a00:1::1"]),
    ("documentation", &["3fff::1", "3fff:fff::1"]),
    ("SRv6", &["5f00::1"]),
    ("unique local", &["fc00::1", "fd00:ec2::254", "fdff::1"]),
    ("link-local", &["fe80::1", "febf::1"]),
    ("site-local", &["fec0::1"]),
    ("multicast", &["ff02::1", "ffff::1"]),
    (
        "outside of 2000::/3",
        &[
            "1::1",
            "65::1",
            "101::1",
            "200::1",
            "3ff::1",
            "1fff:ffff::",
            "4000::1",
            "5eff::1",
            "5f01::1",
            "8000::",
            "fbff::1",
        ],
    ),
];

/// An IPv4 address in all the spellings a URL allows.
fn spellings(text: &str) -> Vec<String> {
    let [a, b, c, d] = text.parse::<std::net::Ipv4Addr>().expect("an address").octets().map(u32::from);
    let whole = a << 24 | b << 16 | c << 8 | d;
    vec![
        text.to_owned(),
        format!("{text}."),
        format!("{whole}"),
        format!("{whole}."),
        format!("0x{whole:x}"),
        format!("0X{whole:08X}"),
        format!("0{whole:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a}.{}", b << 16 | c << 8 | d),
        format!("{a}.{b}.{}", c << 8 | d),
        format!("{a}.0x{b:x}.0{c:o}.{d}"),
        text.replace('.', "%2e"),
        text.replace('.', "。"),
        text.chars().map(|c| c.to_digit(10).and_then(|n| char::from_u32(0xff10 + n)).unwrap_or(c)).collect(),
    ]
}

#[test]
fn every_refused_range_is_refused_in_every_spelling() {
    let guard = guard(&[]);
    for (kind, addresses) in V4 {
        for address in addresses {
            for spelling in spellings(address) {
                let url = format!("https://{spelling}:8443/hook");
                let refused = guard.parse(&url).expect_err(&url).0;
                assert!(refused.contains(kind), "{url}: {refused}");
            }
        }
    }
    for (kind, addresses) in V6 {
        for address in addresses {
            for url in [format!("https://[{address}]/"), format!("https://[{}]:1/", address.to_uppercase())] {
                let refused = guard.parse(&url).expect_err(&url).0;
                assert!(refused.contains(kind), "{url}: {refused}");
            }
        }
    }
}

#[test]
fn the_neighbours_of_refused_ranges_are_public() {
    let guard = guard(&[]);
    let public = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "8.8.8.8",
        "[2606:4700::1111]",
        "[2a00::1]",
        "[2001:200::1]",
        "[2003::1]",
        "168.63.129.15",
        "168.63.129.17",
        "[2000::]",
        "[3ffe:ffff::1]",
    ];
    for address in public {
        guard.parse(&format!("https://{address}/")).expect(address);
    }
}

#[tokio::test]
async fn a_name_is_judged_by_where_it_leads() {
    let all = V4.iter().chain(&V6);
    for (kind, addresses) in all {
        for address in *addresses {
            let guard = guard(&[]).with_lookup(leading_to(&[address]));
            for name in ["internal", "hook.example.com", "xn--mnchen-3ya.de", "münchen.de"] {
                let refused = guard.check(&format!("https://{name}/")).await.expect_err(address).0;
                assert!(refused.contains(kind), "{name} at {address}: {refused}");
            }
        }
    }
    // This name is this machine, whatever anybody says.
    for name in ["localhost", "LOCALHOST", "localhost.", "api.localhost", "api.localhost.", "ｌocalhost"] {
        let guard = guard(&[]).with_lookup(leading_to(&["8.8.8.8"]));
        let refused = guard.check(&format!("https://{name}/")).await.expect_err(name).0;
        assert!(refused.contains("loopback"), "{name}: {refused}");
    }
    let public = guard(&[]).with_lookup(leading_to(&["10.0.0.1", "8.8.8.8"]));
    public.check("https://both.example.com/").await.expect("one of its addresses is public");
    let unknown = guard(&[]).with_lookup(leading_to(&[]));
    unknown.check("https://not-yet.example.com/").await.expect("connecting will decide");
    assert!(unknown.check("http://not-yet.example.com/").await.unwrap_err().0.contains("use https"));
}

#[tokio::test]
async fn names_of_this_machine_lead_here_whatever_a_resolver_says() {
    for found in [&["8.8.8.8"][..], &[]] {
        let guard = guard(&["127.0.0.1"]).with_lookup(leading_to(found));
        for name in ["localhost", "abc.localhost", "abc.LocalHost."] {
            guard.check(&format!("http://{name}:8080/")).await.expect(name);
            let addresses = guard.resolver(false).resolve(name.parse().expect("a name")).await.expect(name);
            let addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
            assert_eq!(addresses, [IpAddr::from([127, 0, 0, 1])], "{name}: of its addresses the one that is admitted");
        }
    }
}

#[test]
fn credentials_other_schemes_and_hidden_characters_are_refused() {
    let guard = guard(&["0.0.0.0/0"]);
    let table = [
        ("https:///example.com/", "https://HOST/PATH"),
        ("https:example.com", "https://HOST/PATH"),
        ("HTTPS:/example.com", "https://HOST/PATH"),
        ("https://user@example.com/", "credentials"),
        ("https://user:pass@example.com/", "credentials"),
        ("https://@example.com/", "credentials"),
        ("https://example.com@127.0.0.1/", "credentials"),
        ("https://127.0.0.1#@example.com/\\", "backslashes"),
        ("ftp://example.com/", "http or https"),
        ("file:///etc/passwd", "http or https"),
        ("gopher://example.com/", "http or https"),
        ("javascript:alert(1)", "http or https"),
        ("unix:/run/docker.sock", "http or https"),
        ("https://", "not a URL"),
        ("//example.com/", "not a URL"),
        ("example.com/hook", "not a URL"),
        ("", "not a URL"),
        ("https://exa mple.com/", "spaces"),
        ("https://example.com/\r\nHost: evil", "spaces"),
        ("https://example.com\\@127.0.0.1/", "backslashes"),
        (" https://example.com/", "spaces"),
        ("https://example.com/\u{202e}gpj.exe", "invisible"),
        ("https://example.com/a\u{200b}b", "invisible"),
        ("https://example.com/\u{2066}x", "invisible"),
        ("https://example.com/\u{85}x", "control"),
        ("https://example.com:0/", "port 0"),
        ("http://127.0.0.1:0/", "port 0"),
        ("https://256.1.1.1/", "not a URL"),
        ("https://1.2.3.4.5/", "not a URL"),
        ("https://[::1/", "not a URL"),
        ("https://[fe80::1%25eth0]/", "not a URL"),
    ];
    for (url, why) in table {
        let refused = guard.parse(url).expect_err(url).0;
        assert!(refused.contains(why), "{url}: {refused}");
    }
    let long = format!("https://example.com/{}", "a".repeat(2048));
    assert!(guard.parse(&long).unwrap_err().0.contains("at most 2048"));
    guard.parse("https://example.com/path@with/at?x=@").expect("an at sign in a path is no credential");
}

#[tokio::test]
async fn what_the_operator_admits_may_be_called_in_the_clear() {
    let lan = guard(&["192.168.0.0/16", "127.0.0.1", "fd00::/8"]);
    for url in ["http://192.168.7.7:9/", "https://127.0.0.1/", "http://[fd12::1]/", "http://[::ffff:127.0.0.1]/"] {
        lan.parse(url).expect(url);
    }
    for url in ["http://127.0.0.2/", "https://10.0.0.1/", "http://[fe80::1]/"] {
        lan.parse(url).expect_err(url);
    }
    let named = lan.with_lookup(leading_to(&["192.168.7.7"]));
    named.check("http://printer.local/").await.expect("where it leads is admitted");
    let named = guard(&["192.168.0.0/16"]).with_lookup(leading_to(&["93.184.216.34"]));
    assert!(named.check("http://example.com/").await.unwrap_err().0.contains("over https only"));
    named.check("https://example.com/").await.expect("public, and over TLS");
    let open = Guard::new(Rules { allow: Vec::new(), allow_http: true }).with_lookup(leading_to(&["93.184.216.34"]));
    open.check("http://example.com/").await.expect("the operator allows http");
    assert!(guard(&[]).parse("http://8.8.8.8/").unwrap_err().0.contains("over https only"));
}
