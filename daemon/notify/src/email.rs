//! Sends messages to a mail server over SMTP.

use std::cell::Cell;
use std::time::Duration;

use lettre::address::Envelope;
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter, ServerInfo};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::certificates::{self, TrustedCertificates};
use crate::http::io_text;
use crate::limited_stream::LimitedStream;
use crate::message::Message;
use crate::outcome::{Delivery, SettingsError};
use crate::secret::Secret;
use crate::settings::{Email, Encryption};
use crate::{CONNECT_TIMEOUT, TIMEOUT, USER_AGENT};

/// Part of the time that is left to say goodbye after the server has accepted a message.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A mailbox whose password is known.
#[derive(Debug)]
pub struct EmailSender {
    settings: Email,
    credentials: Option<(String, Secret)>,
    trusted: TrustedCertificates,
    from: Mailbox,
    to: Vec<Mailbox>,
}

/// Progress of a mail.
#[derive(Clone, Copy)]
enum Progress {
    /// The server cannot have the mail, or refused it.
    NotSent,
    /// The server lacks what the mail needs, so that another attempt fails as well.
    Impossible,
    /// The content is on its way: a missing answer does not mean that the mail did not arrive.
    Unanswered,
    /// The server has accepted the mail.
    Accepted,
}

/// The reason why a message was not sent.
#[derive(Debug)]
struct Failure(String);

impl From<lettre::transport::smtp::Error> for Failure {
    fn from(error: lettre::transport::smtp::Error) -> Self {
        let causes = std::iter::successors(std::error::Error::source(&error), |&cause| cause.source());
        let io = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>()).next();
        Self(io.map_or_else(|| error.to_string(), io_text))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(io_text(&error))
    }
}

impl EmailSender {
    /// Reads the password. Connects only when a message is sent.
    pub fn new(settings: &Email) -> Result<Self, SettingsError> {
        let mailbox = |text: &str, key: &str| {
            text.parse::<Mailbox>().map_err(|_| SettingsError::InvalidAddress(key.to_owned()))
        };
        let password = settings.password.as_ref().map(crate::secret::SecretSource::read).transpose()?;
        Ok(Self {
            credentials: settings.user.clone().zip(password),
            trusted: certificates::read(settings.certificate.as_deref())?,
            from: mailbox(&settings.from, "from")?,
            to: settings.to.iter().map(|to| mailbox(to, "to")).collect::<Result<_, _>>()?,
            settings: settings.clone(),
        })
    }

    /// Sends a message. Returns within [`TIMEOUT`].
    pub fn send(&self, message: &Message) -> Delivery {
        let progress = Cell::new(Progress::NotSent);
        let (envelope, mail) = match self.mail(message) {
            Ok(mail) => mail,
            Err(error) => return Delivery::Rejected { reason: error.to_string() },
        };
        let outcome = self.run(async {
            let mut connection = self.connect().await?;
            let answer = send_mail(&mut connection, &envelope, &mail, &progress).await;
            let _ = tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await;
            answer
        });
        let reason = outcome.err().map(|Failure(reason)| self.without_password(&reason)).unwrap_or_default();
        match progress.get() {
            Progress::Accepted => Delivery::Accepted,
            Progress::Unanswered => Delivery::Unanswered { reason },
            Progress::NotSent => Delivery::failed(reason),
            Progress::Impossible => Delivery::Rejected { reason },
        }
    }

    /// Connects and authenticates without sending a message. Returns the problem, if there is one.
    pub fn check(&self) -> Result<(), String> {
        let connected = self.run(async {
            let mut connection = self.connect().await?;
            let _ = tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await;
            Ok(())
        });
        connected.map_err(|Failure(reason)| self.without_password(&reason))
    }

    fn run(&self, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime.block_on(async { tokio::time::timeout(TIMEOUT, work).await });
        // A name that is still being resolved is left to its thread.
        runtime.shutdown_background();
        outcome.unwrap_or_else(|_| Err(Failure(format!("no answer within {} s", TIMEOUT.as_secs()))))
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Failure> {
        let Email { server, port, encryption, .. } = &self.settings;
        let addresses =
            tokio::time::timeout(CONNECT_TIMEOUT, tokio::net::lookup_host((server.as_str(), *port)));
        let addresses: Vec<_> = match addresses.await {
            Ok(Ok(found)) => found.collect(),
            Ok(Err(_)) => return Err(Failure("the host name cannot be resolved".to_owned())),
            Err(_) => return Err(Failure("the name server does not respond".to_owned())),
        };
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(&addresses[..]));
        let stream = stream.await.map_err(|_| Failure("no connection within the timeout".to_owned()))??;
        let (peer, hello) = (stream.peer_addr()?, ClientId::default());
        let mut connection = match encryption {
            Encryption::Tls => {
                let config = certificates::client_config(&self.trusted).map_err(std::io::Error::other)?;
                let name = ServerName::try_from(server.clone())
                    .map_err(|_| Failure("`server` is not a host name".to_owned()))?;
                let stream = TlsConnector::from(config).connect(name, stream).await?;
                AsyncSmtpConnection::connect_with_transport(
                    Box::new(LimitedStream::new(stream, peer)),
                    &hello,
                )
                .await?
            }
            Encryption::StartTls | Encryption::None => {
                AsyncSmtpConnection::connect_with_transport(
                    Box::new(LimitedStream::new(stream, peer)),
                    &hello,
                )
                .await?
            }
        };
        if *encryption == Encryption::StartTls {
            connection.starttls(self.tls_parameters()?, &hello).await?;
        }
        if let Some((user, password)) = &self.credentials {
            let credentials = Credentials::new(user.clone(), password.reveal().to_owned());
            connection.auth(DEFAULT_MECHANISMS, &credentials).await?;
        }
        Ok(connection)
    }

    fn tls_parameters(&self) -> Result<TlsParameters, Failure> {
        let mut builder = TlsParameters::builder(self.settings.server.clone());
        if let Some(certificates) = &self.trusted {
            builder = builder.certificate_store(lettre::transport::smtp::client::CertificateStore::None);
            for certificate in certificates {
                builder = builder.add_root_certificate(Certificate::from_der(certificate.to_vec())?);
            }
        }
        Ok(builder.build_rustls()?)
    }

    fn mail(&self, message: &Message) -> Result<(Envelope, Vec<u8>), lettre::error::Error> {
        let (text, html) = match &message.report {
            Some(report) => (report.markdown.clone(), report.html.clone()),
            None => (message.text.clone(), html_of(message)),
        };
        let mut mail = lettre::Message::builder()
            .from(self.from.clone())
            .subject(&message.title)
            .user_agent(USER_AGENT.to_owned());
        for to in &self.to {
            mail = mail.to(to.clone());
        }
        let mail = mail.message_id(None).multipart(MultiPart::alternative_plain_html(text, html))?;
        Ok((mail.envelope().clone(), mail.formatted()))
    }

    fn without_password(&self, text: &str) -> String {
        self.credentials.as_ref().map_or_else(|| text.to_owned(), |(_, password)| password.redact(text))
    }
}

/// Sends a mail over a connection. `progress` tells what the server can have, also if this call is cancelled.
async fn send_mail(
    connection: &mut AsyncSmtpConnection,
    envelope: &Envelope,
    mail: &[u8],
    progress: &Cell<Progress>,
) -> Result<(), Failure> {
    let parameters = mail_parameters(connection.server_info(), envelope, mail)
        .inspect_err(|_| progress.set(Progress::Impossible))?;
    connection.command(Mail::new(envelope.from().cloned(), parameters)).await?;
    for to in envelope.to() {
        connection.command(Rcpt::new(to.clone(), vec![])).await?;
    }
    connection.command(Data).await?;
    progress.set(Progress::Unanswered);
    let answer = connection.message(mail).await;
    match &answer {
        Ok(_) => progress.set(Progress::Accepted),
        Err(error) if error.status().is_some() => progress.set(Progress::NotSent),
        Err(_) => {}
    }
    answer?;
    Ok(())
}

/// Returns the parameters with which a mail has to be announced.
///
/// # Errors
///
/// If the server lacks an extension that the mail needs.
fn mail_parameters(
    server: &ServerInfo,
    envelope: &Envelope,
    mail: &[u8],
) -> Result<Vec<MailParameter>, Failure> {
    let mut addresses = envelope.from().into_iter().chain(envelope.to());
    let mut needed = vec![];
    if addresses.any(|address| !address.to_string().is_ascii()) {
        needed.push((Extension::SmtpUtfEight, MailParameter::SmtpUtfEight, "SMTPUTF8"));
    }
    if !mail.is_ascii() {
        let parameter = MailParameter::Body(MailBodyParameter::EightBitMime);
        needed.push((Extension::EightBitMime, parameter, "8BITMIME"));
    }
    let parameter = |(extension, parameter, name)| match server.supports_feature(extension) {
        true => Ok(parameter),
        false => {
            Err(Failure(format!("the mail contains letters outside ASCII, and the server lacks {name}")))
        }
    };
    needed.into_iter().map(parameter).collect()
}

/// Returns whether a text is an e-mail address, with or without a name.
pub fn is_email_address(text: &str) -> bool {
    text.parse::<Mailbox>().is_ok()
}

/// Returns a message as a page of HTML.
fn html_of(message: &Message) -> String {
    let paragraphs: String =
        message.text.split("\n\n").map(|paragraph| format!("<p>{}</p>\n", escaped(paragraph))).collect();
    let title = escaped(&message.title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>\n\
         <h1>{title}</h1>\n{paragraphs}</body></html>\n"
    )
}

fn escaped(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    escaped.replace('\n', "<br>\n")
}
