//! Finds mounts that look like the same folder of a NAS, from the mount table alone. No server and no name
//! service is contacted; [`crate::same_folder`] tests whether two folders really are the same.

use std::net::IpAddr;

use longhaul_measure::parse::{percent_decode, server_name};
use longhaul_model::Mount;

/// The similarity of two mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MountSimilarity {
    /// Both mounts come from the same server.
    SameServer,
    /// Both mounts come from the same server and have the same folder name there.
    SameFolder,
}

/// Two similar mounts, as indices into the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountPair {
    /// Index of the first mount.
    pub a: usize,
    /// Index of the second mount, greater than `a`.
    pub b: usize,
    /// Similarity of the two mounts.
    pub similarity: MountSimilarity,
}

/// Returns all pairs of similar network and user-space mounts, in the order of the list.
pub fn similar_pairs(mounts: &[Mount]) -> Vec<MountPair> {
    let each = |a: usize| (a + 1..mounts.len()).map(move |b| (a, b));
    let pair = |(a, b)| Some(MountPair { a, b, similarity: similarity(&mounts[a], &mounts[b])? });
    (0..mounts.len()).flat_map(each).filter_map(pair).collect()
}

fn similarity(a: &Mount, b: &Mount) -> Option<MountSimilarity> {
    if ![a, b].iter().all(|mount| mount.protocol.family().is_remote()) || a.source.is_empty() {
        return None;
    }
    if a.source == b.source {
        return Some(MountSimilarity::SameFolder);
    }
    if !is_same_server(&server_name(&a.source), &server_name(&b.source)) {
        return None;
    }
    match (folder_name(&a.source), folder_name(&b.source)) {
        (Some(a), Some(b)) if a == b => Some(MountSimilarity::SameFolder),
        _ => Some(MountSimilarity::SameServer),
    }
}

/// Returns whether two mounts come from the same server, by its name or its address. The source of an automount names no server.
pub fn have_same_server(a: &Mount, b: &Mount) -> bool {
    similarity(a, b).is_some() || a.server.is_some() && a.server == b.server
}

/// Returns whether two server names are the same host. `nas` and `nas.example.net` match; a name never matches
/// an address, because that would need a name lookup.
fn is_same_server(a: &str, b: &str) -> bool {
    let first = |name: &str| match name.parse::<IpAddr>() {
        Ok(_) => name.to_owned(),
        Err(_) => name.split('.').next().unwrap_or_default().to_owned(),
    };
    let is_complete = |name: &str| !name.contains('.') || name.parse::<IpAddr>().is_ok();
    let same_host = !first(a).is_empty() && first(a) == first(b);
    same_host && (a == b || is_complete(a) || is_complete(b))
}

/// Returns the last folder name of a mount source: `media` for `nas:/volume1/media` and for `//nas/media`.
fn folder_name(source: &str) -> Option<String> {
    let path = source.split_once("//").map_or(source, |(_, rest)| rest);
    let (_, path) = path.split_once('/')?;
    let last = path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty())?;
    Some(percent_decode(last).to_lowercase())
}

#[cfg(test)]
mod tests {
    use longhaul_model::Protocol;
    use proptest::prelude::*;

    use super::*;

    fn mount(source: &str, protocol: Protocol) -> Mount {
        Mount::new("/mnt/x", source, protocol)
    }

    fn similarity_of(a: &str, b: &str) -> Option<MountSimilarity> {
        similarity(&mount(a, Protocol::Smb(None)), &mount(b, Protocol::Nfs(None)))
    }

    #[test]
    fn same_folder_over_two_protocols_is_recognized() {
        for (a, b) in [
            ("//nas/media", "nas:/volume1/media"),
            ("//NAS._smb._tcp.local/Media", "nas.local:/media"),
            ("//nas/my%20media", "nas:/srv/my media/"),
            ("//nas.example.net/media", "nas:/media"),
            ("//192.168.1.5/media", "192.168.1.5:/export/media"),
            ("//mynas._afpovertcp._tcp.local/Media", "//mynas/media"),
            ("//[fe80::1%25en0]/media", "[fe80::1%25en0]:/media"),
        ] {
            assert_eq!(similarity_of(a, b), Some(MountSimilarity::SameFolder), "{a} {b}");
        }
    }

    #[test]
    fn other_folder_of_the_same_server_is_only_same_server() {
        assert_eq!(similarity_of("//nas/media", "nas:/volume1/photos"), Some(MountSimilarity::SameServer));
        assert_eq!(similarity_of("//nas/media", "nas:/"), Some(MountSimilarity::SameServer));
    }

    #[test]
    fn other_servers_and_addresses_are_not_similar() {
        for (a, b) in [
            ("//nas/media", "nas2:/media"),
            ("//nas/media", "192.168.1.5:/media"),
            ("//nas.home/media", "nas.office:/media"),
            ("//192.168.1.5/media", "192.168.1.6:/media"),
            ("", ""),
            ("//", ":/"),
            (":", ".x"),
        ] {
            assert_eq!(similarity_of(a, b), None, "{a} {b}");
        }
    }

    #[test]
    fn two_mounts_of_one_source_are_similar_local_disks_are_not() {
        let local = || mount("/dev/sda1", Protocol::Local("ext4".to_owned()));
        let fuse = || mount("/srv/x", Protocol::Fuse(None));
        let found = similar_pairs(&[local(), fuse(), local(), fuse()]);
        assert_eq!(found, [MountPair { a: 1, b: 3, similarity: MountSimilarity::SameFolder }]);
    }

    #[test]
    fn servers_are_the_same_by_name_or_address() {
        let smb = mount("//nas/media", Protocol::Smb(None));
        let nfs = |source: &str| mount(source, Protocol::Nfs(None));
        assert!(have_same_server(&smb, &nfs("nas:/photos")) && !have_same_server(&smb, &nfs("other:/media")));
        let at = |source: &str, address: [u8; 4]| Mount { server: Some(address.into()), ..nfs(source) };
        assert!(have_same_server(&at("nas:/x", [192, 0, 2, 5]), &at("192.0.2.5:/y", [192, 0, 2, 5])));
        assert!(!have_same_server(&at("nas:/x", [192, 0, 2, 5]), &at("b:/x", [192, 0, 2, 6])));
        let automount = || mount("map auto_nfs", Protocol::Other("autofs".to_owned()));
        assert!(!have_same_server(&automount(), &automount()), "the same map may name many servers");
    }

    proptest! {
        #[test]
        fn similarity_does_not_depend_on_the_order(a in ".{0,40}", b in ".{0,40}") {
            prop_assert_eq!(similarity_of(&a, &b), similarity_of(&b, &a));
        }
    }
}
