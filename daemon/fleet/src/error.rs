//! Errors of exports to a collection.

use longhaul_model::Hint;

/// An error of the export to a collection, or of its check. The text says what failed and where; [`Hint`] says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is neither a folder nor the address of a bucket.
    #[error("`{0}` is neither a folder nor a bucket")]
    Location(String),
    /// There is no such folder.
    #[error("there is no folder {0}")]
    Folder(String),
    /// The folder has no collection.
    #[error("no collection was begun in {0}")]
    NoCollection(String),
    /// The folder cannot be listed.
    #[error("cannot list {folder}")]
    Unreadable {
        /// Path of the folder.
        folder: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A folder in the collection is a symbolic link.
    #[error("the folder {folder} in {collection} is a symbolic link, and longhaul does not write through it")]
    LinkedFolder {
        /// Path of the folder in the collection.
        folder: String,
        /// Address of the collection.
        collection: String,
    },
    /// The check found more than it can handle.
    #[error("there are more than {limit} {subject} in {collection}")]
    TooMany {
        /// Plural noun of what was counted.
        subject: &'static str,
        /// Largest number that is handled.
        limit: u64,
        /// Address of the collection.
        collection: String,
    },
    /// The server of a bucket sends no further part of a list.
    #[error("the list of {0} does not go on")]
    EndlessList(String),
    /// The credentials file is missing, open to others, or has unknown lines.
    #[error("the credentials file {path} cannot be used: {reason}")]
    Credentials {
        /// Path of the file.
        path: String,
        /// Reason, as the end of the message.
        reason: String,
    },
    /// The credentials file of a user names a server for the bucket of the administrator.
    #[error(
        "the credentials file {path} names a server (`endpoint`, or a `region` that is not the name of a region), but the administrator decides that results go to {collection}: remove that line"
    )]
    OtherServer {
        /// Path of the file.
        path: String,
        /// Address of the collection.
        collection: String,
    },
    /// No access key for a bucket is known.
    #[error("no access key for {0} is known")]
    NoKey(String),
    /// A request to the folder or bucket failed, after retries.
    #[error("cannot {operation} {path}")]
    Storage {
        /// Verb of the request.
        operation: &'static str,
        /// Path in the collection.
        path: String,
        /// The error of the last attempt.
        source: Box<object_store::Error>,
    },
    /// A table could not be encoded.
    #[error(transparent)]
    Export(#[from] longhaul_export::Error),
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] longhaul_store::Error),
    /// Nothing has been measured yet.
    #[error("there is nothing to export: no run is stored yet")]
    Empty,
    /// Another computer exports under the same machine id.
    #[error(
        "another computer with this machine id has exported run {run} to the same place, and it is not in this database"
    )]
    SameMachineId {
        /// Number of the run that the other computer exported.
        run: i64,
    },
    /// The manifest of this machine cannot be understood.
    #[error("the manifest {path} was written by a newer longhaul, or is damaged: {reason}")]
    Manifest {
        /// Path in the collection.
        path: String,
        /// Reason, as the end of the message.
        reason: String,
    },
}

impl Error {
    pub(crate) fn storage(
        operation: &'static str,
        path: &impl ToString,
    ) -> impl FnOnce(object_store::Error) -> Self {
        let path = path.to_string();
        move |source| Self::Storage { operation, path, source: Box::new(source) }
    }
}

/// Returns the text of an error with the texts of its causes.
pub(crate) fn text_of(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Export(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::Location(_) => "give a folder, as /Volumes/fleet, or a bucket, as s3://bucket/fleet",
            Self::Folder(_) => "mount the share that has it, or create it",
            Self::NoCollection(_) => {
                "if a share belongs there, mount it; to begin a collection in this folder, run `longhaul export fleet --begin` with the same `--to` once"
            }
            Self::Unreadable { .. } => "let the user that runs longhaul read and write that folder",
            Self::LinkedFolder { .. } => {
                "replace the link by a folder: others who can write there could lead the export elsewhere"
            }
            Self::TooMany { .. } => {
                "remove what longhaul did not write there, or give a folder that has only the collection"
            }
            Self::EndlessList(_) => "check that it is the address of an S3 server, and try again later",
            Self::Credentials { .. } => {
                "write access-key-id = \"...\" and secret-access-key = \"...\" into it, and make it readable for yourself only (chmod 600)"
            }
            Self::OtherServer { .. } => {
                "leave `endpoint` out of it, and give `region` as in eu-central-1; for a bucket on another server, the administrator sets `credentials-file` in [fleet], too"
            }
            Self::NoKey(_) => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `credentials-file` in [fleet]"
            }
            Self::Storage { source, .. } => return Some(storage_hint(source)),
            Self::Empty => "run `longhaul run`, or wait for the first round of the service",
            Self::SameMachineId { .. } => {
                "a cloned disk has the machine id of its original: remove the database of one of the two computers, or export to another folder"
            }
            Self::Manifest { .. } => "update longhaul, or remove that file: the export writes it again",
        };
        Some(hint.to_owned())
    }
}

fn storage_hint(error: &object_store::Error) -> String {
    use object_store::Error::{InvalidPath, PermissionDenied, Unauthenticated};
    let text = text_of(error);
    // The error of a refused list has the status in its text only. A path may have the same digits.
    let refusals = ["status code: 401", "status code: 403", "AccessDenied", "InvalidAccessKeyId"];
    let is_refused = matches!(error, Unauthenticated { .. } | PermissionDenied { .. })
        || refusals.iter().any(|refusal| text.contains(refusal));
    let hint = if matches!(error, InvalidPath { .. }) {
        // The library gives up the whole list.
        "rename or remove that object, which longhaul did not write: a part of its name is empty or not allowed"
    } else if text.contains("RequestTimeTooSkewed") {
        "set the clock of this computer: the server refuses requests whose time differs by more than 15 minutes"
    } else if is_refused {
        "check the key and its rights: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `credentials-file` in [fleet]"
    } else {
        "nothing is lost: the next export continues from here"
    };
    hint.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_path_are_no_refusal() {
        let path = "schema=1/table=runs/week=2026-W47/machine=4010403401040340-67d/data.parquet";
        let broken =
            object_store::Error::Generic { store: "S3", source: format!("PUT {path}: broken").into() };
        assert!(storage_hint(&broken).contains("nothing is lost"), "{}", storage_hint(&broken));
        let listed = "Server returned non-2xx status code: 403 Forbidden: ".into();
        for refused in [
            object_store::Error::Unauthenticated { path: path.to_owned(), source: "broken".into() },
            object_store::Error::PermissionDenied { path: path.to_owned(), source: "broken".into() },
            object_store::Error::Generic { store: "S3", source: listed },
        ] {
            assert!(storage_hint(&refused).contains("check the key"), "{refused}");
        }
    }
}
