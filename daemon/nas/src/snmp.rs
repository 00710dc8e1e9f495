//! Reads a NAS over SNMP.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use async_snmp::error::ErrorKind;
use async_snmp::{Auth, Client, Oid, Retry, UdpHandle, UsmConfig, VarBind};
use longhaul_measure::{local_network, platform};
use longhaul_model::{NasProblem, NasReading};
use longhaul_notify::SecretSource;
use tracing::subscriber::NoSubscriber;

use crate::MAX_DISKS;
use crate::error::NasError;
use crate::parse::snmp_tables::{
    self, DISKS, DiskColumn, PROCESSOR_LOAD, SYNOLOGY_DISKS, SnmpAnswer, has_processor_ticks, single_values,
};
use crate::settings::{SnmpAccess, SnmpSettings, SnmpUser};

/// Share of the time limit after which a request is sent once more, because it may be lost.
const REPEAT_AFTER: f64 = 0.4;
/// Number of rows that one answer may have.
const ROWS_PER_ANSWER: usize = 25;

/// Community of agents whose community was not changed.
const USUAL_COMMUNITY: &str = "public";

/// Reads an SNMP agent until a deadline.
pub fn read(settings: &SnmpSettings, deadline: Instant) -> Result<NasReading, NasError> {
    let auth = auth(&settings.access)?;
    let address = resolve(&settings.host, settings.port)?;
    if matches!(address, SocketAddr::V6(address) if address.scope_id() != 0) {
        let message =
            format!("{address} is a link-local address, which longhaul's SNMP cannot use: give another one");
        return Err(NasError::new(NasProblem::Unreachable, message));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        NasError::new(NasProblem::Unreachable, format!("cannot create a socket for SNMP: {error}"))
    })?;
    let limit = deadline.saturating_duration_since(Instant::now());
    // The library logs errors with the address, and the log can be sent as telemetry.
    let answer = tracing::subscriber::with_default(NoSubscriber::new(), || {
        // Leaves no request in flight: the socket is closed with the client.
        runtime.block_on(async { tokio::time::timeout(limit, ask(address, auth, limit)).await })
    });
    match answer {
        Ok(Ok(answer)) => snmp_tables::read(&answer),
        Ok(Err(error)) => Err(failure(&error, address, &settings.access)),
        Err(_) => Err(no_answer(address, &settings.access)),
    }
}

/// Resolves the name of a NAS. It can take longer than any limit, so only a thread of its own may call it.
///
/// Version 4 of the protocol comes first: many agents listen on it only, and a lost UDP packet is no refusal.
fn resolve(host: &str, port: u16) -> Result<SocketAddr, NasError> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let chosen = found.iter().find(|address| address.is_ipv4()).or(found.first());
    chosen.copied().ok_or_else(|| {
        let message = format!("the name {host} cannot be resolved: correct `host` in [nas]");
        NasError::new(NasProblem::Unreachable, message)
    })
}

/// Asks for everything that an agent may know.
async fn ask(address: SocketAddr, auth: Auth, limit: Duration) -> async_snmp::Result<SnmpAnswer> {
    let retry = Retry::fixed(1, Duration::ZERO).unwrap_or_else(|_| Retry::none());
    let client = Client::builder((address.ip().to_string(), address.port()), auth)
        .strict_source(true)
        .request_timeout(limit.mul_f64(REPEAT_AFTER))
        .retry(retry)
        .connect()
        .await?;
    let values = client.get_many(&single_values()).await?.varbinds;
    let loads = match has_processor_ticks(&values) {
        true => vec![],
        false => Column::new(&client, Oid::from_slice(&PROCESSOR_LOAD)).all_rows().await?,
    };
    let mut disks = disk_table(&client, &DISKS).await?;
    if disks.is_empty() {
        disks = disk_table(&client, &SYNOLOGY_DISKS).await?;
    }
    Ok(SnmpAnswer { values, loads, disks })
}

/// Reads the columns of a table of disks. Empty: the agent does not have it.
async fn disk_table(client: &Client<UdpHandle>, table: &[u32]) -> async_snmp::Result<Vec<VarBind>> {
    let mut found = Column::new(client, DiskColumn::Name.oid(table)).all_rows().await?;
    let rows = found.len();
    if rows == 0 || rows > MAX_DISKS {
        return Ok(found);
    }
    for column in DiskColumn::ALL.into_iter().filter(|column| *column != DiskColumn::Name) {
        found.extend(Column::new(client, column.oid(table)).rows(rows).await?);
    }
    Ok(found)
}

/// A column of a table, read row by row.
struct Column<'a> {
    client: &'a Client<UdpHandle>,
    id: Oid,
    cells: Vec<VarBind>,
}

impl<'a> Column<'a> {
    fn new(client: &'a Client<UdpHandle>, id: Oid) -> Self {
        Self { client, id, cells: vec![] }
    }

    /// Reads all rows, up to one more than a NAS may have.
    async fn all_rows(mut self) -> async_snmp::Result<Vec<VarBind>> {
        // A table that is not there is found out with one row: behind it may be one that the agent cannot read.
        if self.add_rows(1).await? {
            while self.cells.len() <= MAX_DISKS && self.add_rows(ROWS_PER_ANSWER).await? {}
        }
        Ok(self.cells)
    }

    /// Reads this number of rows, or fewer if the column ends. It asks for no row behind them: net-snmp answers a whole
    /// request with an error if a table behind the last column cannot be read.
    async fn rows(mut self, count: usize) -> async_snmp::Result<Vec<VarBind>> {
        while self.cells.len() < count
            && self.add_rows((count - self.cells.len()).min(ROWS_PER_ANSWER)).await?
        {}
        Ok(self.cells)
    }

    /// Asks for the next rows. Returns false if there are none.
    async fn add_rows(&mut self, count: usize) -> async_snmp::Result<bool> {
        let last = self.cells.last().map_or(&self.id, |cell| &cell.oid).clone();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let answer = self.client.get_bulk(std::slice::from_ref(&last), 0, count).await?;
        let known = self.cells.len();
        for cell in answer {
            let is_next = cell.oid > self.cells.last().map_or(&self.id, |cell| &cell.oid).clone();
            if !is_next || !cell.oid.starts_with(&self.id) || cell.value.is_exception() {
                break;
            }
            self.cells.push(cell);
        }
        Ok(self.cells.len() > known)
    }
}

fn auth(access: &SnmpAccess) -> Result<Auth, NasError> {
    match access {
        SnmpAccess::Community(None) => Ok(Auth::v2c(USUAL_COMMUNITY)),
        SnmpAccess::Community(Some(source)) => {
            let community = source.read().map_err(|error| NasError::no_credentials(&error))?;
            Ok(Auth::v2c(community.reveal()))
        }
        SnmpAccess::User(user) => user_auth(user),
    }
}

fn user_auth(user: &SnmpUser) -> Result<Auth, NasError> {
    let read = |source: &SecretSource| source.read().map_err(|error| NasError::no_credentials(&error));
    let config = UsmConfig::new(user.name.clone());
    let password = read(&user.password)?;
    let config = match &user.encryption {
        None => config.auth(user.authentication, password.reveal()),
        Some((encryption, source)) => {
            config.auth_priv(user.authentication, password.reveal(), *encryption, read(source)?.reveal())
        }
    };
    // The library's message could tell something about the password.
    let unusable = |_| {
        let message =
            "the passwords of the SNMP user cannot be used: SNMP version 3 needs at least 8 characters";
        NasError::new(NasProblem::NoCredentials, message)
    };
    config.map(Auth::from).map_err(unusable)
}

/// Returns the error for an agent that is silent. One of version 2c is silent for a wrong community. The refusal of one
/// of version 3 is not authenticated, so the library does not believe it.
fn no_answer(address: SocketAddr, access: &SnmpAccess) -> NasError {
    let credentials = match access {
        SnmpAccess::Community(_) => "the community",
        SnmpAccess::User(_) => "the user, both passwords, `authentication` and `encryption`",
    };
    let message = format!(
        "the SNMP agent at {address} did not answer in time: check that SNMP is enabled on the NAS, that its firewall lets \
         this computer in, and {credentials}"
    );
    NasError::new(NasProblem::Timeout, message)
}

/// Tells whether the system has no route to the agent, or does not let this program use it.
fn is_without_route(error: &async_snmp::Error) -> bool {
    let first: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(error);
    let mut causes = std::iter::successors(first, |&cause| cause.source());
    causes.any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::HostUnreachable)
    })
}

fn failure(error: &async_snmp::Error, address: SocketAddr, access: &SnmpAccess) -> NasError {
    match error.kind() {
        ErrorKind::Timeout | ErrorKind::ConstructionTimeout => no_answer(address, access),
        ErrorKind::Network | ErrorKind::Closed => {
            let reason = if is_without_route(error) {
                local_network::no_route(&platform::system_version())
            } else {
                error.to_string()
            };
            let message = format!("the SNMP agent at {address} cannot be reached: {reason}");
            NasError::new(NasProblem::Unreachable, message)
        }
        ErrorKind::Auth | ErrorKind::Report | ErrorKind::Snmp => {
            let next = match access {
                SnmpAccess::Community(_) => "check that the community may read everything",
                SnmpAccess::User(_) => {
                    "check the user, the passwords, `authentication` and `encryption`, and that it may read everything"
                }
            };
            let message = format!("the SNMP agent at {address} refuses the request: {error}; {next}");
            NasError::new(NasProblem::Refused, message)
        }
        _ => {
            let message = format!("the answer of the SNMP agent at {address} cannot be used: {error}");
            NasError::new(NasProblem::InvalidAnswer, message)
        }
    }
}
