//! Parser for the output of `smbutil statshares -m POINT -f JSON` (SMBClient smbutil/statshares.c:516), and for
//! the table that it prints without `-f`.

use serde_json::Value;

use super::options::dialect;
use longhaul_model::NegotiatedOptions;

/// Keys that are kept, each with longhaul's own name for it. Left out are the counters of reconnects and
/// compressed transfers, which change while the session stays the same; the user; and what was only offered
/// (`SMB_NEGOTIATE`, `..._ALGORITHMS`).
const KEPT_KEYS: &[(&str, &str)] = &[
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

/// Returns the negotiated options of the first share in the output, with the key `dialect` if it is known;
/// `None` if the output is not that of the tool. Every key is optional: macOS 14 and 15 added some.
pub fn smbutil(output: &[u8]) -> Option<NegotiatedOptions> {
    let options = match serde_json::from_slice::<Value>(output) {
        Ok(shares) => negotiated(|key| text(shares.get(0)?.get(key)?)),
        Err(_) => parse_table(&String::from_utf8_lossy(output)),
    };
    Some(options).filter(|options| !options.is_empty())
}

/// Returns the options of a share that are kept, given a function that returns the value for a key.
fn negotiated(value: impl Fn(&str) -> Option<String>) -> NegotiatedOptions {
    let kept = KEPT_KEYS.iter().filter_map(|(tool_key, name)| Some((*name, value(tool_key)?)));
    let version = value("SMB_VERSION");
    let dialect = version.as_deref().and_then(dialect).map(|version| ("dialect", version.to_owned()));
    kept.chain(dialect).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Parses the first share of the table: its name on a line of its own, then an indented line for each
/// attribute. A flag that is not set has no line, and algorithms are written with `_`.
fn parse_table(text: &str) -> NegotiatedOptions {
    let is_header = |line: &&str| line.starts_with("SHARE ") && line.contains("ATTRIBUTE TYPE");
    let mut lines = text.lines().skip_while(|line| !is_header(line)).skip(1);
    let is_attribute = |line: &str| line.starts_with(' ') && !line.trim().is_empty();
    let first = lines.find(|line| is_attribute(line));
    let attributes: Vec<&str> =
        first.into_iter().chain(lines.take_while(|line| is_attribute(line))).collect();
    negotiated(|key| {
        let pairs = attributes.iter().filter_map(|line| line.trim().split_once(' '));
        pairs.filter(|(name, _)| *name == key).map(|(_, value)| normalized_value(value.trim())).next()
    })
}

fn normalized_value(value: &str) -> String {
    match value {
        "TRUE" => "yes".to_owned(),
        "FALSE" => "no".to_owned(),
        "OFF" => "off".to_owned(),
        algorithm if algorithm.starts_with("AES_") => algorithm.replace('_', "-"),
        other => other.to_owned(),
    }
}

/// Converts a JSON value to text. The tool writes "off" as `null`.
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

    #[test]
    fn output_without_a_list_of_shares_is_rejected() {
        for output in
            ["", "[\n\n]", "{}", "[{\"SMB_VERSION\": [1]}]", "[1]", "smbutil: not found", "[{\"SIGN"]
        {
            assert_eq!(smbutil(output.as_bytes()), None, "{output}");
        }
    }
}
