//! Checks of a bucket whose server answers with anything.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_fleet::{BucketEnvironment, Collection, MissingCollection, RefusedFiles, check};
use longhaul_model::Hint as _;

use crate::support::MONDAY;

/// Starts a server that answers each request with this text. Returns its collection, and the number of requests so far.
fn bucket(answer: String) -> (Collection, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let key = format!(
        "access-key-id = \"key\"\nsecret-access-key = \"secret\"\nendpoint = \"http://{}\"\n",
        listener.local_addr().unwrap()
    );
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let lines = BufReader::new(client.try_clone().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.is_empty()), "the request is complete");
            counted.fetch_add(1, Ordering::SeqCst);
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", answer.len());
            client.write_all([head.as_bytes(), answer.as_bytes()].concat().as_slice()).unwrap();
        }
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), key).unwrap();
    let environment = BucketEnvironment::KeyOnly;
    let collection =
        Collection::open("s3://fleet", Some(file.path()), MissingCollection::Refuse, environment).unwrap();
    (collection, requests)
}

/// Returns a list with one object of this size.
fn list(size: u64) -> String {
    list_of("schema=1/table=runs/week=2026-W47/machine=a/data.parquet", size)
}

fn list_of(key: &str, size: u64) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult><IsTruncated>false</IsTruncated><Contents>\
         <Key>{key}</Key>\
         <LastModified>2026-11-20T09:00:00.000Z</LastModified><ETag>a</ETag><Size>{size}</Size></Contents>\
         </ListBucketResult>"
    )
}

#[test]
fn object_that_is_listed_as_huge_is_not_fetched() {
    let (collection, requests) = bucket(list(1 << 40));
    let report = check(&collection, RefusedFiles::Keep, MONDAY).unwrap();
    let reasons: Vec<&str> = report.refused.iter().map(|refused| refused.reason.as_str()).collect();
    assert_eq!(reasons, ["it is larger than any that longhaul exports"]);
    assert_eq!(requests.load(Ordering::SeqCst), 1, "the list only");
}

#[test]
fn object_that_is_no_table_is_refused() {
    let (collection, requests) = bucket(list(1000));
    let report = check(&collection, RefusedFiles::Keep, MONDAY).unwrap();
    assert!(report.refused[0].reason.contains("damaged or incomplete"), "{}", report.refused[0].reason);
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[test]
fn object_whose_name_ends_the_list_is_named() {
    let (collection, _) = bucket(list_of("photos//summer.jpg", 1000));
    let error = check(&collection, RefusedFiles::Keep, MONDAY).unwrap_err().one_line();
    assert!(error.contains("photos//summer.jpg"), "{error}");
    assert!(error.contains("rename or remove that object"), "{error}");
}
