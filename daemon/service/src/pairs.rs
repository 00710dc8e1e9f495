//! Which mounts look like one and the same folder of a NAS, by what the mount table says. Nothing is asked of a server
//! or a name service; whether it is so, [`crate::same`] finds out.

use std::net::IpAddr;

use longhaul_measure::model::{Family, Mount};
use longhaul_measure::platform::parse::{percent_decoded, server};

/// How much two mounts look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// They come from one server.
    SameServer,
    /// They come from one server, and their folders there have one name.
    SameFolder,
}

/// Two mounts that look alike, by their places in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The first.
    pub a: usize,
    /// The second, further down.
    pub b: usize,
    /// How much they look alike.
    pub likeness: Likeness,
}

/// All pairs of network and user-space mounts that look alike, in the order of the list.
pub fn pairs(mounts: &[Mount]) -> Vec<Pair> {
    let each = |a: usize| (a + 1..mounts.len()).map(move |b| (a, b));
    let pair = |(a, b)| Some(Pair { a, b, likeness: likeness(&mounts[a], &mounts[b])? });
    (0..mounts.len()).flat_map(each).filter_map(pair).collect()
}

fn likeness(a: &Mount, b: &Mount) -> Option<Likeness> {
    if ![a, b].iter().all(|mount| is_remote(mount)) || a.source.is_empty() {
        return None;
    }
    if a.source == b.source {
        return Some(Likeness::SameFolder);
    }
    if !is_same_server(&server_name(&a.source), &server_name(&b.source)) {
        return None;
    }
    match (folder_name(&a.source), folder_name(&b.source)) {
        (Some(a), Some(b)) if a == b => Some(Likeness::SameFolder),
        _ => Some(Likeness::SameServer),
    }
}

fn is_remote(mount: &Mount) -> bool {
    match mount.protocol.family() {
        Family::Network | Family::Fuse => true,
        Family::Local | Family::Other => false,
    }
}

/// A server's name without what says only how it was found: Bonjour's service and domain (`NAS._smb._tcp.local`).
fn server_name(source: &str) -> String {
    let name = percent_decoded(server(source)).to_lowercase();
    let name = name.split("._").next().unwrap_or_default();
    name.trim_end_matches('.').trim_end_matches(".local").to_owned()
}

/// `nas` and `nas.example.net` are taken for one; addresses and names are not, as that would have to be asked.
fn is_same_server(a: &str, b: &str) -> bool {
    let first = |name: &str| match name.parse::<IpAddr>() {
        Ok(_) => name.to_owned(),
        Err(_) => name.split('.').next().unwrap_or_default().to_owned(),
    };
    let whole = |name: &str| !name.contains('.') || name.parse::<IpAddr>().is_ok();
    let same_host = !first(a).is_empty() && first(a) == first(b);
    same_host && (a == b || whole(a) || whole(b))
}

/// The last name in a source: `media` of `nas:/volume1/media` and of `//nas/media`.
fn folder_name(source: &str) -> Option<String> {
    let path = source.split_once("//").map_or(source, |(_, rest)| rest);
    let (_, path) = path.split_once('/')?;
    let last = path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty())?;
    Some(percent_decoded(last).to_lowercase())
}

#[cfg(test)]
mod tests {
    use longhaul_measure::model::{Negotiated, Protocol};
    use proptest::prelude::*;

    use super::*;

    fn mount(source: &str, protocol: Protocol) -> Mount {
        Mount {
            point: "/mnt/x".into(),
            source: source.to_owned(),
            protocol,
            negotiated: Negotiated::new(),
            read_only: false,
            free_bytes: None,
            total_bytes: None,
            server: None,
            device: None,
        }
    }

    fn likeness_of(a: &str, b: &str) -> Option<Likeness> {
        likeness(&mount(a, Protocol::Smb(None)), &mount(b, Protocol::Nfs(None)))
    }

    #[test]
    fn one_folder_by_two_protocols_is_recognised() {
        for (a, b) in [
            ("//nas/media", "nas:/volume1/media"),
            ("//NAS._smb._tcp.local/Media", "nas.local:/media"),
            ("//nas/my%20media", "nas:/srv/my media/"),
            ("//nas.example.net/media", "nas:/media"),
            ("//192.168.1.5/media", "192.168.1.5:/export/media"),
            ("//mynas._afpovertcp._tcp.local/Media", "//mynas/media"),
            ("//[fe80::1%25en0]/media", "[fe80::1%25en0]:/media"),
        ] {
            assert_eq!(likeness_of(a, b), Some(Likeness::SameFolder), "{a} {b}");
        }
    }

    #[test]
    fn another_folder_of_one_server_is_only_the_same_server() {
        assert_eq!(likeness_of("//nas/media", "nas:/volume1/photos"), Some(Likeness::SameServer));
        assert_eq!(likeness_of("//nas/media", "nas:/"), Some(Likeness::SameServer));
    }

    #[test]
    fn other_servers_and_what_would_have_to_be_asked_are_no_pair() {
        for (a, b) in [
            ("//nas/media", "nas2:/media"),
            ("//nas/media", "192.168.1.5:/media"),
            ("//nas.home/media", "nas.office:/media"),
            ("//192.168.1.5/media", "192.168.1.6:/media"),
            ("", ""),
            ("//", ":/"),
            (":", ".x"),
        ] {
            assert_eq!(likeness_of(a, b), None, "{a} {b}");
        }
    }

    #[test]
    fn a_local_disk_pairs_with_nothing_and_a_second_mount_of_one_source_does() {
        let local = || mount("/dev/sda1", Protocol::Local("ext4".to_owned()));
        let fuse = || mount("/srv/x", Protocol::Fuse(None));
        let found = pairs(&[local(), fuse(), local(), fuse()]);
        assert_eq!(found, [Pair { a: 1, b: 3, likeness: Likeness::SameFolder }]);
    }

    proptest! {
        #[test]
        fn likeness_does_not_depend_on_the_order(a in ".{0,40}", b in ".{0,40}") {
            prop_assert_eq!(likeness_of(&a, &b), likeness_of(&b, &a));
        }
    }
}
