//! The folder or bucket of a collection.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longhaul_measure::private_files;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};

use crate::Error;
use crate::folder::SharedFolder;
use crate::http::UreqConnector;
use crate::layout::{MAX_FILE_BYTES, SCHEMA_PREFIX};

const BUCKET_SCHEME: &str = "s3://";
/// Attempts and time for one request, before the export ends with an error and the next one continues.
const MAX_RETRIES: usize = 6;
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Treatment of a folder in which no collection was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingCollection {
    /// It is an error: the folder may be where a share is usually mounted.
    Refuse,
    /// A collection is begun there.
    Begin,
}

/// The environment variables that a bucket may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketEnvironment {
    /// All variables whose name begins with `AWS_`.
    All,
    /// The key and the region only, because the administrator decides where results go: others name another server.
    KeyOnly,
    /// Like [`Self::KeyOnly`]; the credentials file is the user's, so it may have nothing else, either.
    KeyOnlyAlsoInFile,
}

/// An opened collection: a folder, or a part of a bucket.
#[derive(Debug, Clone)]
pub struct Collection {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The folder; `None` for a bucket.
    pub(crate) folder: Option<Arc<SharedFolder>>,
    pub(crate) root: Path,
    /// Address as the user wrote it.
    pub(crate) name: String,
}

/// Content of a file of a collection.
pub(crate) enum Content {
    Whole(Bytes),
    /// The file is larger than any that longhaul writes, and was not read to its end.
    TooLarge,
    /// There is no such file.
    Missing,
    /// The file is in a folder, and cannot be read.
    Unreadable(std::io::Error),
}

impl Collection {
    /// Opens a folder or a bucket: `s3://bucket/prefix`. A missing folder is not created: it may be a share that is not mounted.
    ///
    /// Region, endpoint and key come from the standard `AWS_...` environment variables, as far as they may be used, or from the
    /// credentials file, if one is given. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`Error::Location`], [`Error::Folder`], [`Error::Unreadable`], [`Error::NoCollection`], [`Error::Credentials`],
    /// [`Error::OtherServer`], [`Error::NoKey`], [`Error::Storage`].
    pub fn open(
        address: &str,
        credentials: Option<&FilePath>,
        missing: MissingCollection,
        environment: BucketEnvironment,
    ) -> Result<Self, Error> {
        match address.strip_prefix(BUCKET_SCHEME) {
            Some(bucket) => Self::open_bucket(address, bucket, credentials, environment),
            None if address.contains("://") || address.is_empty() => Err(Error::Location(address.to_owned())),
            None => Self::open_folder(address, missing),
        }
    }

    fn open_folder(address: &str, missing: MissingCollection) -> Result<Self, Error> {
        if !FilePath::new(address).is_dir() {
            return Err(Error::Folder(address.to_owned()));
        }
        let has_tables = has_tables(FilePath::new(address))
            .map_err(|source| Error::Unreadable { folder: address.to_owned(), source })?;
        if missing == MissingCollection::Refuse && !has_tables {
            return Err(Error::NoCollection(address.to_owned()));
        }
        let files = LocalFileSystem::new_with_prefix(address).map_err(Error::storage("open", &address))?;
        // A power cut must not leave an object without its content.
        let store = Arc::new(files.with_fsync(true));
        let folder = SharedFolder::open(FilePath::new(address))
            .map_err(|source| Error::Unreadable { folder: address.to_owned(), source })?;
        Ok(Self { store, folder: Some(Arc::new(folder)), root: Path::default(), name: address.to_owned() })
    }

    fn open_bucket(
        address: &str,
        bucket: &str,
        credentials: Option<&FilePath>,
        environment: BucketEnvironment,
    ) -> Result<Self, Error> {
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: MAX_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
        };
        let mut builder = environment
            .builder()
            .with_bucket_name(bucket)
            .with_retry(retry)
            .with_http_connector(UreqConnector);
        if let Some(path) = credentials {
            let credentials = Credentials::read(path)?;
            if environment == BucketEnvironment::KeyOnlyAlsoInFile && credentials.names_server() {
                let (path, collection) = (path.display().to_string(), address.to_owned());
                return Err(Error::OtherServer { path, collection });
            }
            let Credentials { id, secret, region, endpoint } = credentials;
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
            builder = region.into_iter().fold(builder, AmazonS3Builder::with_region);
            if let Some(endpoint) = endpoint {
                // A request is signed; the key is not sent with it.
                builder = builder.with_allow_http(endpoint.starts_with("http://")).with_endpoint(endpoint);
            }
        }
        require_key(&builder, address)?;
        let store = builder.build().map_err(Error::storage("open", &address))?;
        Ok(Self { store: Arc::new(store), folder: None, root: Path::from(prefix), name: address.to_owned() })
    }

    /// Reads a file, unless it is larger than any that longhaul writes.
    pub(crate) async fn read(&self, path: &Path) -> Result<Content, Error> {
        if let Some(folder) = &self.folder {
            return Ok(match folder.read(path, MAX_FILE_BYTES) {
                Ok(Some(bytes)) => Content::Whole(bytes.into()),
                Ok(None) => Content::TooLarge,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Content::Missing,
                Err(error) => Content::Unreadable(error),
            });
        }
        match self.store.get(path).await {
            Ok(found) if found.meta.size > MAX_FILE_BYTES => Ok(Content::TooLarge),
            Ok(found) => Ok(Content::Whole(found.bytes().await.map_err(Error::storage("read", path))?)),
            Err(object_store::Error::NotFound { .. }) => Ok(Content::Missing),
            Err(error) => Err(Error::storage("read", path)(error)),
        }
    }

    /// Writes a file whole: a reader sees the former state or the new one. A bucket shows an object only when it is complete; in a
    /// folder, a file gets its name only when it is complete.
    ///
    /// # Errors
    ///
    /// [`Error::LinkedFolder`], [`Error::Storage`].
    pub(crate) async fn write(&self, path: &Path, bytes: Vec<u8>) -> Result<(), Error> {
        self.refuse_link(path)?;
        let put = self.store.put(path, PutPayload::from(bytes)).await;
        put.map(drop).map_err(Error::storage("write", path))
    }

    /// Refuses a path below a folder of the collection that is a symbolic link, with which another computer could lead elsewhere.
    pub(crate) fn refuse_link(&self, path: &Path) -> Result<(), Error> {
        let linked = self.folder.as_ref().and_then(|folder| folder.linked_folder(path));
        linked.map_or(Ok(()), |folder| Err(Error::LinkedFolder { folder, collection: self.name.clone() }))
    }
}

impl BucketEnvironment {
    fn builder(self) -> AmazonS3Builder {
        match self {
            Self::All => AmazonS3Builder::from_env(),
            Self::KeyOnly | Self::KeyOnlyAlsoInFile => key_only(|variable| std::env::var(variable).ok()),
        }
    }
}

/// Returns a builder with the key and the region from these variables.
fn key_only(variable: impl Fn(&str) -> Option<String>) -> AmazonS3Builder {
    let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    let region = region.filter(|region| is_region(region));
    let settings = [
        (AmazonS3ConfigKey::AccessKeyId, variable("AWS_ACCESS_KEY_ID")),
        (AmazonS3ConfigKey::SecretAccessKey, variable("AWS_SECRET_ACCESS_KEY")),
        (AmazonS3ConfigKey::Token, variable("AWS_SESSION_TOKEN")),
        (AmazonS3ConfigKey::Region, region),
    ];
    let given = settings.into_iter().filter_map(|(key, value)| Some((key, value?)));
    given.fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value))
}

/// Returns whether a text can be a region. One with other characters could name a server.
fn is_region(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Fails without a key: the library would ask the metadata service of Amazon's computers for one, at 169.254.169.254.
fn require_key(builder: &AmazonS3Builder, address: &str) -> Result<(), Error> {
    let key = builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId);
    key.map(|_| ()).ok_or_else(|| Error::NoKey(address.to_owned()))
}

/// Returns whether a folder has tables, of any version.
fn has_tables(folder: &FilePath) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        if entry?.file_name().as_encoded_bytes().starts_with(SCHEMA_PREFIX.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An access key from a credentials file, and where it is valid. It is never printed.
struct Credentials {
    id: String,
    secret: String,
    region: Option<String>,
    endpoint: Option<String>,
}

impl Credentials {
    /// Returns whether requests would go to another server than Amazon's.
    fn names_server(&self) -> bool {
        self.endpoint.is_some() || self.region.as_deref().is_some_and(|region| !is_region(region))
    }

    fn read(path: &FilePath) -> Result<Self, Error> {
        let refused = |reason: String| Error::Credentials { path: path.display().to_string(), reason };
        let text = private_files::read_secret(path).map_err(|error| refused(error.to_string()))?;
        let value = |key: &str| {
            let of_key = |line: &str| {
                let (name, value) = line.split_once('=')?;
                (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
            };
            text.lines().find_map(of_key).filter(|value| !value.is_empty())
        };
        let missing = |key: &str| refused(format!("it has no `{key}`"));
        Ok(Self {
            id: value("access-key-id").ok_or_else(|| missing("access-key-id"))?,
            secret: value("secret-access-key").ok_or_else(|| missing("secret-access-key"))?,
            region: value("region"),
            endpoint: value("endpoint"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn credentials(mode: u32, text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    const KEY: &str = "access-key-id = \"key-of-ada\"\nsecret-access-key = \"s=cret\"\n";

    #[test]
    fn credentials_file_of_the_owner_is_read() {
        let key = Credentials::read(credentials(0o600, KEY).path()).unwrap();
        assert_eq!((key.id.as_str(), key.secret.as_str()), ("key-of-ada", "s=cret"));
        assert_eq!((key.region, key.endpoint), (None, None));
        let elsewhere = format!("{KEY}region = \"eu-central-1\"\nendpoint = \"https://nas.local:9000\"\n");
        let key = Credentials::read(credentials(0o600, &elsewhere).path()).unwrap();
        assert_eq!(key.region.unwrap(), "eu-central-1");
        assert_eq!(key.endpoint.unwrap(), "https://nas.local:9000");
    }

    #[test]
    fn credentials_open_to_others_are_refused_without_naming_the_key() {
        for (mode, text) in [(0o644, KEY), (0o600, "access-key-id = \"key-of-ada\"\n"), (0o640, "")] {
            let error = Credentials::read(credentials(mode, text).path()).map(|key| key.id).unwrap_err();
            assert!(!error.to_string().contains("key-of-ada"), "{error}");
        }
    }

    #[test]
    fn bucket_needs_a_key() {
        let nothing = AmazonS3Builder::new().with_bucket_name("bucket");
        let error = require_key(&nothing, "s3://bucket/fleet").unwrap_err();
        assert!(matches!(&error, Error::NoKey(address) if address == "s3://bucket/fleet"), "{error}");
        let file = credentials(0o600, KEY);
        open_bucket(file.path(), BucketEnvironment::All).unwrap();
    }

    #[test]
    fn users_credentials_file_redirects_no_managed_bucket() {
        use BucketEnvironment::{KeyOnly, KeyOnlyAlsoInFile};
        for redirect in ["endpoint = \"https://example.com\"\n", "region = \"x.example.com/\"\n"] {
            let file = credentials(0o600, &format!("{KEY}{redirect}"));
            let error = open_bucket(file.path(), KeyOnlyAlsoInFile).unwrap_err();
            assert!(matches!(error, Error::OtherServer { .. }), "{redirect}: {error}");
            let (key, _) = redirect.split_once(' ').unwrap();
            assert!(error.to_string().contains(&format!("`{key}`")), "{redirect}: {error}");
        }
        let own = credentials(0o600, &format!("{KEY}endpoint = \"https://nas.local:9000\"\n"));
        open_bucket(own.path(), KeyOnly).unwrap();
        let key = credentials(0o600, &format!("{KEY}region = \"eu-central-1\"\n"));
        open_bucket(key.path(), KeyOnlyAlsoInFile).unwrap();
    }

    fn open_bucket(credentials: &FilePath, environment: BucketEnvironment) -> Result<Collection, Error> {
        Collection::open("s3://bucket/fleet", Some(credentials), MissingCollection::Refuse, environment)
    }

    #[test]
    fn environment_does_not_redirect_an_administrators_bucket() {
        let builder = key_only(|variable| {
            let value = match variable {
                "AWS_ACCESS_KEY_ID" => "AK",
                "AWS_REGION" => "x.example.com/",
                _ => "http://example.com",
            };
            Some(value.to_owned())
        });
        let value = |key| builder.get_config_value(&key);
        assert_eq!(value(AmazonS3ConfigKey::AccessKeyId).as_deref(), Some("AK"));
        assert_eq!((value(AmazonS3ConfigKey::Endpoint), value(AmazonS3ConfigKey::Region)), (None, None));
        let region = key_only(|variable| (variable == "AWS_REGION").then(|| "eu-central-1".to_owned()));
        let region = region.get_config_value(&AmazonS3ConfigKey::Region);
        assert_eq!(region.as_deref(), Some("eu-central-1"));
    }

    #[test]
    fn missing_folder_is_not_created() {
        let parent = tempfile::tempdir().unwrap();
        let missing = parent.path().join("not mounted");
        let error = open(missing.to_str().unwrap(), MissingCollection::Begin).unwrap_err();
        assert!(matches!(error, Error::Folder(_)) && !missing.exists());
        assert!(error.to_string().contains("not mounted"), "{error}");
    }

    #[test]
    fn folder_without_a_collection_may_be_an_unmounted_share() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let error = open(path, MissingCollection::Refuse).unwrap_err();
        assert!(matches!(error, Error::NoCollection(_)), "{error}");
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 0);
        std::fs::create_dir(folder.path().join("schema=1")).unwrap();
        open(path, MissingCollection::Refuse).unwrap();
    }

    fn open(address: &str, missing: MissingCollection) -> Result<Collection, Error> {
        Collection::open(address, None, missing, BucketEnvironment::All)
    }

    #[test]
    fn other_schemes_are_refused() {
        for bad in ["", "gs://bucket", "https://host/bucket"] {
            assert!(matches!(open(bad, MissingCollection::Begin), Err(Error::Location(_))), "{bad}");
        }
    }
}
