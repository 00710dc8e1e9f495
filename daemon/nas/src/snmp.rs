//! Reads a NAS over SNMP.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use async_snmp::client::WalkOptions;
use async_snmp::error::ErrorKind;
use async_snmp::{Auth, AuthProtocol, Client, Oid, PrivProtocol, Retry, UdpHandle, UsmConfig, VarBind};
use longhaul_model::{NasProblem, NasReading};
use longhaul_notify::SecretSource;

use crate::MAX_DISKS;
use crate::address::resolve;
use crate::error::NasError;
use crate::parse::snmp_tables::{
    self, DISKS, DiskColumn, PROCESSOR_LOAD, SYNOLOGY_DISKS, SnmpAnswer, has_processor_ticks, single_values,
};
use crate::settings::{SnmpAccess, SnmpAuthentication, SnmpEncryption, SnmpSettings, SnmpUser};

/// Share of the time limit after which a request is sent once more, because it may be lost.
const REPEAT_AFTER: f64 = 0.4;
/// Number of rows that one answer may have.
const ROWS_PER_ANSWER: u32 = 40;

/// Community of agents whose community was not changed.
const USUAL_COMMUNITY: &str = "public";

/// Reads an SNMP agent until a deadline.
pub fn read(settings: &SnmpSettings, deadline: Instant) -> Result<NasReading, NasError> {
    let auth = auth(&settings.access)?;
    let address = resolve(&settings.host, settings.port)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        NasError::new(NasProblem::Unreachable, format!("cannot create a socket for SNMP: {error}"))
    })?;
    let limit = deadline.saturating_duration_since(Instant::now());
    let answer = runtime.block_on(async {
        // Leaves no request in flight: the socket is closed with the client.
        tokio::time::timeout(limit, ask(address, auth, limit)).await
    });
    match answer {
        Ok(Ok(answer)) => snmp_tables::read(&answer),
        Ok(Err(error)) => Err(failure(&error, address)),
        Err(_) => Err(no_answer(address)),
    }
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
        false => column(&client, Oid::from_slice(&PROCESSOR_LOAD)).await?,
    };
    let mut disks = disk_table(&client, &DISKS).await?;
    if disks.is_empty() {
        disks = disk_table(&client, &SYNOLOGY_DISKS).await?;
    }
    Ok(SnmpAnswer { values, loads, disks })
}

/// Reads the columns of a table of disks. Empty: the agent does not have it.
async fn disk_table(client: &Client<UdpHandle>, table: &[u32]) -> async_snmp::Result<Vec<VarBind>> {
    let mut found = vec![];
    for wanted in DiskColumn::ALL {
        let cells = column(client, wanted.oid(table)).await?;
        if wanted == DiskColumn::Name && cells.is_empty() {
            break;
        }
        found.extend(cells);
    }
    Ok(found)
}

/// Reads one column, up to one row more than a NAS may have.
async fn column(client: &Client<UdpHandle>, id: Oid) -> async_snmp::Result<Vec<VarBind>> {
    let options = WalkOptions { max_repetitions: ROWS_PER_ANSWER, ..WalkOptions::default() };
    let mut walk = client.walk_with(id, options)?;
    let mut cells = vec![];
    while cells.len() <= MAX_DISKS {
        match walk.next().await {
            Some(cell) => cells.push(cell?),
            None => break,
        }
    }
    Ok(cells)
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
    let authentication = match user.authentication {
        SnmpAuthentication::Md5 => AuthProtocol::Md5,
        SnmpAuthentication::Sha => AuthProtocol::Sha1,
        SnmpAuthentication::Sha256 => AuthProtocol::Sha256,
        SnmpAuthentication::Sha512 => AuthProtocol::Sha512,
    };
    let password = read(&user.password)?;
    let config = match &user.encryption {
        None => config.auth(authentication, password.reveal()),
        Some((encryption, source)) => {
            let encryption = match encryption {
                SnmpEncryption::Aes => PrivProtocol::Aes128,
                SnmpEncryption::Des => PrivProtocol::Des,
            };
            config.auth_priv(authentication, password.reveal(), encryption, read(source)?.reveal())
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

fn no_answer(address: SocketAddr) -> NasError {
    let message = format!(
        "the SNMP agent at {address} did not answer in time: check that SNMP is on on the NAS, that its firewall lets \
         this computer in, and the community"
    );
    NasError::new(NasProblem::Timeout, message)
}

fn failure(error: &async_snmp::Error, address: SocketAddr) -> NasError {
    match error.kind() {
        ErrorKind::Timeout | ErrorKind::ConstructionTimeout => no_answer(address),
        ErrorKind::Network | ErrorKind::Closed => {
            let message = format!("the SNMP agent at {address} cannot be reached: {error}");
            NasError::new(NasProblem::Unreachable, message)
        }
        ErrorKind::Auth | ErrorKind::Report | ErrorKind::Snmp => {
            let message = format!(
                "the SNMP agent at {address} refuses the request: {error}; check the user, the passwords, \
                 `authentication` and `encryption`, and that it may read everything"
            );
            NasError::new(NasProblem::Refused, message)
        }
        _ => {
            let message = format!("the answer of the SNMP agent at {address} cannot be used: {error}");
            NasError::new(NasProblem::InvalidAnswer, message)
        }
    }
}
