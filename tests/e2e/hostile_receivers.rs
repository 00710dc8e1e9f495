//! Receivers of notifications that misbehave: each attempt ends in time, takes bounded memory, and is judged by what the receiver can
//! know. They are tried here, and not beside the code, because four tests wait for the limit of 15 s: here others run meanwhile.

mod servers;

use std::time::{Duration, Instant};

use crate::support::tcp_server::{Server, http_answer};
use longhaul_model::{NotificationKind, Timestamp};
use longhaul_notify::{
    ChannelConfig, Delivery, Email, Encryption, HttpService, Message, Receiver, Secret, SecretSource, Sender,
    TIMEOUT, Webhook,
};

/// Time that an attempt may take beyond its limit on a busy machine.
const SLACK: Duration = Duration::from_secs(10);

fn message() -> Message {
    Message {
        kind: NotificationKind::Test,
        at: Timestamp::from_us(0),
        title: "Test".to_owned(),
        text: "A test.".to_owned(),
        report: None,
    }
}

fn literal(key: &'static str, text: &str) -> SecretSource {
    SecretSource::Literal { key, text: Secret::new(text) }
}

fn webhook(url: &str) -> Webhook {
    Webhook {
        service: HttpService::Webhook,
        url: literal("url", url),
        token: None,
        template: None,
        certificate: None,
    }
}

fn sender(webhook: Webhook) -> Sender {
    let receiver = Receiver::Webhook(Box::new(webhook));
    Sender::new(&ChannelConfig { name: "a".to_owned(), receiver, kinds: vec![] }).unwrap()
}

fn post(server: &Server) -> Delivery {
    sender(webhook(&server.url())).send(&message())
}

fn mail(server: &Server, encryption: Encryption) -> Delivery {
    mail_to("ada@example.com", server, encryption)
}

fn mail_to(address: &str, server: &Server, encryption: Encryption) -> Delivery {
    let email = Email {
        server: "127.0.0.1".to_owned(),
        port: server.port,
        encryption,
        user: None,
        password: None,
        from: "longhaul@example.com".to_owned(),
        to: vec![address.to_owned()],
        certificate: None,
    };
    let receiver = Receiver::Email(Box::new(email));
    Sender::new(&ChannelConfig { name: "a".to_owned(), receiver, kinds: vec![] }).unwrap().send(&message())
}

/// Sends, and checks that the attempt ends within its limit.
fn timed(send: impl FnOnce() -> Delivery) -> Delivery {
    let started = Instant::now();
    let outcome = send();
    assert!(started.elapsed() < TIMEOUT + SLACK, "{:?}: {outcome:?}", started.elapsed());
    outcome
}

#[test]
fn accepted_message_arrives_whole() {
    let server = Server::answering(http_answer("200 OK", "{}"));
    assert_eq!(post(&server), Delivery::Accepted);
    let request = server.request();
    assert!(request.starts_with("POST / HTTP/1.1") && request.contains(r#""title":"Test""#), "{request}");
}

#[test]
fn server_error_is_repeated_later() {
    let server = Server::answering(http_answer("500 Internal Server Error", "out of <b>order</b>"));
    let reason = "500: out of <b>order</b>".to_owned();
    assert_eq!(post(&server), Delivery::Failed { reason, after: None });
}

#[test]
fn requested_delay_is_kept_up_to_a_day() {
    for (header, expected) in [("30", 30), ("999999999", 86_400)] {
        let answer = format!("HTTP/1.1 429 Too Many\r\nRetry-After: {header}\r\nContent-Length: 0\r\n\r\n");
        let server = Server::answering(answer);
        let Delivery::Failed { after, .. } = post(&server) else { panic!("{header}") };
        assert_eq!(after, Some(Duration::from_secs(expected)));
    }
}

#[test]
fn refused_content_is_not_repeated() {
    let server = Server::answering(http_answer("400 Bad Request", "no such field"));
    assert_eq!(post(&server), Delivery::Rejected { reason: "400: no such field".to_owned() });
}

#[test]
fn redirect_is_not_followed() {
    let other = Server::answering(http_answer("200 OK", ""));
    for location in [other.url(), "file:///etc/passwd".to_owned()] {
        for code in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
            let answer = format!("HTTP/1.1 {code}\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
            let outcome = post(&Server::answering(answer));
            let reason = outcome.reason().unwrap();
            assert!(reason.contains("redirects") && !reason.contains("passwd"), "{reason}");
            assert!(matches!(outcome, Delivery::Failed { .. }));
        }
    }
    assert!(!other.was_contacted());
}

#[test]
fn secret_in_an_answer_is_hidden() {
    let server = Server::answering(http_answer("404 Not Found", "no /T0/B0/secret for tk_token"));
    let url = format!("{}T0/B0/secret", server.url());
    let webhook = Webhook { token: Some(literal("token", "tk_token")), ..webhook(&url) };
    let outcome = sender(webhook).send(&message());
    assert_eq!(outcome.reason(), Some("404: no … for …"));
    assert!(server.request().contains("Bearer tk_token"));
}

#[test]
fn parts_of_a_secret_address_are_hidden_too() {
    let answer = "unknown s3cr3t for key=k3y+1, k3y 1";
    let url = |server: &Server| format!("{}hooks/s3cr3t?key=k3y+1&other=k3y%201", server.url());
    let server = Server::answering(http_answer("400 Bad Request", answer));
    let hidden = "400: unknown … for key=…, …";
    assert_eq!(sender(webhook(&url(&server))).send(&message()).reason(), Some(hidden));
    let server = Server::answering(http_answer("400 Bad Request", answer));
    let outcome = longhaul_notify::ping(&literal("heartbeat", &url(&server))).unwrap();
    assert_eq!(outcome.reason(), Some(hidden));
}

/// It would be refused before it is sent, and look like a message without an answer.
#[test]
fn token_that_no_header_can_have_is_refused() {
    let webhook = Webhook { token: Some(literal("token", "tök")), ..webhook("http://127.0.0.1:1") };
    let receiver = Receiver::Webhook(Box::new(webhook));
    let error = Sender::new(&ChannelConfig { name: "a".to_owned(), receiver, kinds: vec![] }).unwrap_err();
    assert!(error.to_string().contains("`token` contains a character that is not ASCII"), "{error}");
}

#[test]
fn silent_receiver_is_given_up_and_not_asked_twice() {
    let server = Server::silent();
    let outcome = timed(|| post(&server));
    assert!(matches!(outcome, Delivery::Unanswered { .. }), "{outcome:?}");
}

#[test]
fn answer_of_one_byte_a_second_is_given_up() {
    let server = Server::dripping(b"", b"HTTP/1.1 200 OK\r\nX-A: ");
    let outcome = timed(|| post(&server));
    assert!(matches!(outcome, Delivery::Unanswered { .. }), "{outcome:?}");
}

#[test]
fn endless_head_is_cut_off() {
    let server = Server::flooding(b"HTTP/1.1 200 OK\r\nX-A: ");
    let outcome = timed(|| post(&server));
    assert_ne!(outcome, Delivery::Accepted);
    assert!(server.sent_bytes() < 64 << 20, "{} bytes were taken", server.sent_bytes());
}

#[test]
fn endless_body_is_not_read() {
    for head in ["200 OK\r\n", "500 Error\r\n", "200 OK\r\nContent-Encoding: gzip\r\n"] {
        let server = Server::flooding(format!("HTTP/1.1 {head}\r\n"));
        let outcome = timed(|| post(&server));
        assert_eq!(outcome == Delivery::Accepted, head.starts_with("200"), "{outcome:?}");
        assert!(server.sent_bytes() < 64 << 20, "{} bytes were taken", server.sent_bytes());
    }
}

#[test]
fn unreachable_receivers_are_named_and_tried_again() {
    let closed = format!("http://127.0.0.1:{}/", Server::closed_port());
    for (url, expected) in [
        (closed.as_str(), "connection refused"),
        ("http://no-such-host.invalid/", "the host name cannot be resolved"),
    ] {
        let outcome = timed(|| sender(webhook(url)).send(&message()));
        assert_eq!(outcome, Delivery::Failed { reason: expected.to_owned(), after: None });
    }
    let server = Server::closing();
    assert!(matches!(post(&server), Delivery::Failed { .. }));
}

#[test]
fn certificate_that_is_not_trusted_is_named() {
    let server = Server::encrypted();
    let url = format!("https://127.0.0.1:{}/", server.port);
    let untrusted = sender(webhook(&url));
    let reason = untrusted.send(&message()).reason().unwrap().to_owned();
    assert!(reason.contains("certificate"), "{reason}");
    assert!(untrusted.check().unwrap_err().contains("`certificate`"));
    let other_host = Webhook {
        certificate: Some(servers::CERTIFICATE.into()),
        ..webhook(&format!("https://ip6-localhost.invalid:{}/", server.port))
    };
    assert!(matches!(sender(other_host).send(&message()), Delivery::Failed { .. }));
}

#[test]
fn encrypted_receiver_with_own_authority_gets_the_message() {
    let server = Server::encrypted();
    let url = format!("https://127.0.0.1:{}/", server.port);
    let trusted = Webhook { certificate: Some(servers::CERTIFICATE.into()), ..webhook(&url) };
    assert_eq!(sender(trusted).send(&message()), Delivery::Accepted);
}

#[test]
fn mail_server_without_starttls_gets_no_mail() {
    let server = Server::answering(b"220 a\r\n250 a\r\n250 a\r\n221 a\r\n");
    let outcome = timed(|| mail(&server, Encryption::StartTls));
    assert!(outcome.reason().unwrap().contains("STARTTLS"), "{outcome:?}");
    assert!(!server.request().contains("MAIL FROM"));
}

#[test]
fn hostile_mail_servers_are_given_up() {
    let cases = [Server::silent(), Server::dripping(b"", b"220-"), Server::flooding(b"220-")];
    std::thread::scope(|scope| {
        for server in cases {
            scope.spawn(move || {
                let outcome = timed(|| mail(&server, Encryption::None));
                assert!(matches!(outcome, Delivery::Failed { .. }), "{outcome:?}");
                assert!(server.sent_bytes() < 64 << 20, "{} bytes were taken", server.sent_bytes());
            });
        }
    });
}

#[test]
fn mail_without_an_answer_is_not_repeated() {
    let server = Server::conversing(&["220 a\r\n", "250 a\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n"]);
    let outcome = timed(|| mail(&server, Encryption::None));
    assert!(matches!(outcome, Delivery::Unanswered { .. }), "{outcome:?}");
}

#[test]
fn mail_that_the_server_refuses_is_repeated() {
    let server = Server::conversing(&["220 a\r\n", "250 a\r\n", "451 busy\r\n", "221 a\r\n"]);
    let outcome = timed(|| mail(&server, Encryption::None));
    assert!(matches!(outcome, Delivery::Failed { .. }), "{outcome:?}");
}

#[test]
fn mail_that_fails_before_its_content_is_repeated() {
    // No answer of SMTP: to MAIL FROM, RCPT TO and DATA.
    let start = ["220 a\r\n", "250 a\r\n", "250 ok\r\n", "250 ok\r\n"];
    for answered in 2..=start.len() {
        let server = Server::conversing(&[&start[..answered], &["a\r\n", "221 a\r\n"]].concat());
        let outcome = timed(|| mail(&server, Encryption::None));
        assert!(matches!(outcome, Delivery::Failed { .. }), "{answered}: {outcome:?}");
    }
}

#[test]
fn mail_that_the_server_cannot_take_is_not_repeated() {
    let server = Server::conversing(&["220 a\r\n", "250 a\r\n", "221 a\r\n"]);
    let outcome = timed(|| mail_to("ädä@example.com", &server, Encryption::None));
    assert!(matches!(&outcome, Delivery::Rejected { reason } if reason.contains("SMTPUTF8")), "{outcome:?}");
}

#[test]
fn accepted_mail_needs_no_goodbye() {
    let start = ["220 a\r\n", "250 a\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n"];
    let server = Server::conversing(&[&start[..], &["250 ok\r\n"]].concat());
    assert_eq!(timed(|| mail(&server, Encryption::None)), Delivery::Accepted);
}
