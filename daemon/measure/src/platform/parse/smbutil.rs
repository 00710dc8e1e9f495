//! `smbutil statshares -m POINT -f JSON` (SMBClient smbutil/statshares.c).

use serde_json::Value;

use super::options::dialect;
use crate::model::Negotiated;

/// What is kept: their key and ours. Not the counters of reconnects and compressed transfers, which change while the
/// session stays the same; not the user; not what was only offered (`SMB_NEGOTIATE`, `..._ALGORITHMS`).
const KEPT: &[(&str, &str)] = &[
    ("SIGNING_ON", "signing"),
    ("SIGNING_REQUIRED", "signing_required"),
    ("SMB_CURR_SIGN_ALGORITHM", "signing_algorithm"),
    ("ENCRYPTION_REQUIRED", "encryption_required"),
    ("SMB_CURR_ENCRYPT_ALGORITHM", "encryption_algorithm"),
    ("MULTI_CHANNEL_SUPPORTED", "multichannel"),
    ("MULTI_CREDIT_SUPPORTED", "multi_credit"),
    ("FILE_LEASING_SUPPORTED", "file_leasing"),
    ("DIR_LEASING_SUPPORTED", "folder_leasing"),
    ("DATA_CACHING_OFF", "data_caching_off"),
    ("META_DATA_CACHING_OFF", "metadata_caching_off"),
    ("PERSISTENT_HANDLES_SUPPORTED", "persistent_handles"),
    ("COMPRESSION_IO_THRESHOLD", "compression_threshold"),
    ("HIGH_FIDELITY", "high_fidelity"),
    ("FILE_IDS_SUPPORTED", "file_ids"),
    ("OS_X_SERVER", "apple_extensions"),
    ("UNIX_SUPPORT", "unix"),
    ("DFS_SHARE", "dfs"),
];

/// What was negotiated on the first share in the output, with the key `dialect` if it is known. Every key is optional:
/// macOS 14 and 15 added some. Output that is not JSON says nothing.
pub fn smbutil(output: &[u8]) -> Negotiated {
    let shares: Value = serde_json::from_slice(output).unwrap_or_default();
    let share = shares.get(0).unwrap_or(&Value::Null);
    let kept = KEPT.iter().filter_map(|(theirs, ours)| Some((*ours, text(share.get(theirs)?)?)));
    let version = share.get("SMB_VERSION").and_then(Value::as_str).and_then(dialect);
    let dialect = version.map(|version| ("dialect", version.to_owned()));
    kept.chain(dialect).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// `null` is how smbutil writes "off".
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("off".to_owned()),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MACOS_11: &[u8] = include_bytes!("../../../tests/fixtures/smbutil-macos11.json");
    const MACOS_15: &[u8] = include_bytes!("../../../tests/fixtures/smbutil-macos15.json");

    #[test]
    fn a_session_is_told_in_our_words() {
        let found = smbutil(MACOS_15);
        let value = |name: &str| found.get(name).map(String::as_str);
        assert_eq!(value("dialect"), Some("3.1.1"));
        assert_eq!(value("signing"), Some("yes"));
        assert_eq!(value("signing_algorithm"), Some("AES-128-GMAC"));
        assert_eq!(value("encryption_algorithm"), Some("off"));
        assert_eq!(value("data_caching_off"), Some("no"));
    }

    #[test]
    fn a_key_that_an_older_system_lacks_is_missing_and_not_no() {
        let found = smbutil(MACOS_11);
        assert_eq!(found.get("dialect").map(String::as_str), Some("3.0.2"));
        assert_eq!((found.get("signing_algorithm"), found.get("compression_threshold")), (None, None));
    }

    #[test]
    fn counters_and_user_are_left_out() {
        let text = format!("{:?}", smbutil(MACOS_15)).to_lowercase();
        assert!(!text.contains("501") && !text.contains("reconnect"), "{text}");
    }

    #[test]
    fn output_that_is_no_list_of_shares_says_nothing() {
        for output in
            ["", "[\n\n]", "{}", "[{\"SMB_VERSION\": [1]}]", "[1]", "smbutil: not found", "[{\"SIGN"]
        {
            assert_eq!(smbutil(output.as_bytes()), Negotiated::new(), "{output}");
        }
    }

    proptest! {
        #[test]
        fn any_text_ends_without_panic(text in "[\\[\\]{}\":,A-Z_a-z0-9 ]{0,200}") {
            prop_assert!(smbutil(text.as_bytes()).len() <= KEPT.len() + 1);
        }
    }
}
