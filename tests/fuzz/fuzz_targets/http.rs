//! Fuzzes the web server with raw requests on real connections: each is answered or closed, and none causes a server error.
#![no_main]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use longhaul_service::handle::ServiceHandle;
use longhaul_web::{Listeners, ServerDeps, SummarySources};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The server, its runtime and the folder with a week of made-up data.
static SERVER: LazyLock<(SocketAddr, Runtime, TempDir)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let database = longhaul_demo::database(folder.path(), 1).unwrap();
    let service = Arc::new(ServiceHandle::default());
    service.publish(longhaul_demo::status(&database));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let loopback = runtime.block_on(longhaul_web::bind(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let address = loopback.local_addr().unwrap();
    let deps = ServerDeps {
        service,
        token: "0".repeat(64).as_str().into(),
        read_key: None,
        set_log_level: Arc::new(|_| Ok(())),
        metrics: Arc::new(|| Ok(String::new())),
        sources: SummarySources { database, config: None },
        body_timeout: Duration::from_millis(100),
        notice: None,
    };
    runtime.spawn(longhaul_web::serve(Listeners { loopback, network: None }, deps, std::future::pending()));
    (address, runtime, folder)
});

libfuzzer_sys::fuzz_target!(init: { LazyLock::force(&SERVER); }, |parts: (bool, &str, &[u8])| {
    let (is_command, target, rest) = parts;
    let method = if is_command { "POST" } else { "GET" };
    let address = SERVER.0;
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut request = format!("{method} /{target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n").into_bytes();
    request.extend_from_slice(rest);
    request.extend_from_slice(b"\r\n\r\n");
    // The server may close the connection before everything is sent.
    let _ = stream.write_all(&request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut head = [0; 12];
    // An event stream never ends, so only the status is read.
    if stream.read_exact(&mut head).is_ok() {
        assert!(head.starts_with(b"HTTP/1.") && head[9] != b'5', "{}", String::from_utf8_lossy(&head));
    }
});
