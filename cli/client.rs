//! Client for the HTTP API of the background service.

use std::path::Path;
use std::time::Duration;

use longhaul_service::daemon_address::DaemonAddress;
use longhaul_service::status::{Check, LiveStatus, Status};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::Agent;

use crate::arguments::GlobalArgs;
use crate::paths;

/// Timeout of requests that the service answers from memory.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of the doctor; slightly longer than the service's own timeout of 100 seconds.
const DOCTOR_TIMEOUT: Duration = Duration::from_secs(110);

/// The reason why a request to the service failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No service runs for this database.
    #[error(
        "no longhaul service is running for {0}: install it with `longhaul service install`, start it with `longhaul service start`, \
         or run `longhauld` in a terminal"
    )]
    NotRunning(String),
    /// The service did not respond within the timeout.
    #[error("the longhaul service did not respond in time. Try again, or look at `longhaul service logs`")]
    Timeout,
    /// The service refused the request.
    #[error("the longhaul service refused: {0}")]
    Rejected(String),
    /// The response could not be decoded.
    #[error(
        "this longhaul cannot decode the response of the longhaul service (version {version}): {detail}. Restart the service with `longhaul service restart`"
    )]
    UnexpectedResponse {
        /// Version of the service.
        version: String,
        /// The decoding error.
        detail: String,
    },
}

/// A connection to the service of one database.
pub struct Client {
    daemon: DaemonAddress,
    database: String,
}

/// Connects to the service of the selected database.
pub fn connect(shared: &GlobalArgs) -> anyhow::Result<Client> {
    // If the configuration is broken, the service keeps running with the previous one, so it has to stay
    // reachable.
    let config = paths::load_config(shared).unwrap_or_default();
    Ok(Client::connect(&paths::database(shared, &config)?)?)
}

impl Client {
    /// Finds the running service of a database.
    pub fn connect(database: &Path) -> Result<Self, ClientError> {
        let name = database.display().to_string();
        match DaemonAddress::read(database) {
            Some(daemon) => Ok(Self { daemon, database: name }),
            None => Err(ClientError::NotRunning(name)),
        }
    }

    /// Returns the status of the service.
    pub fn status(&self) -> Result<Status, ClientError> {
        self.decode(self.get("status")?)
    }

    /// Returns the round in progress; `None` if there is none.
    pub fn live(&self) -> Result<Option<LiveStatus>, ClientError> {
        self.decode(self.get("live")?)
    }

    /// Runs the checks of `doctor` in the service.
    pub fn doctor(&self) -> Result<Vec<Check>, ClientError> {
        self.decode(self.post("doctor", &json!({}), DOCTOR_TIMEOUT)?)
    }

    /// Sends a command. `what` is the endpoint, `order` the body.
    pub fn send_command(&self, what: &str, order: &Value) -> Result<(), ClientError> {
        self.post(what, order, STATUS_TIMEOUT).map(drop)
    }

    /// Returns the URL of the dashboard, with a one-time key that is valid for a minute.
    pub fn dashboard_url(&self) -> Result<String, ClientError> {
        let answer = self.post("key", &json!({}), STATUS_TIMEOUT)?;
        let key = answer["key"].as_str().ok_or_else(|| self.unexpected_response(&"the key is missing"))?;
        Ok(format!("http://127.0.0.1:{}/login?key={key}", self.daemon.port))
    }

    /// Returns the address of the dashboard without a key: it shows everything and changes nothing.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.daemon.port)
    }

    fn decode<T: DeserializeOwned>(&self, value: Value) -> Result<T, ClientError> {
        serde_json::from_value(value).map_err(|error| self.unexpected_response(&error))
    }

    fn get(&self, what: &str) -> Result<Value, ClientError> {
        // The server limits concurrent requests without the token; with it, the status is available even when it
        // is busy.
        let result = http_agent(STATUS_TIMEOUT)
            .get(self.url(what))
            .header("Authorization", &self.authorization())
            .call();
        self.parse_response(result)
    }

    fn post(&self, what: &str, order: &Value, within: Duration) -> Result<Value, ClientError> {
        let result = http_agent(within)
            .post(self.url(what))
            .header("Authorization", &self.authorization())
            .send_json(order);
        self.parse_response(result)
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.daemon.token)
    }

    fn url(&self, what: &str) -> String {
        format!("http://127.0.0.1:{}/api/v1/{what}", self.daemon.port)
    }

    fn parse_response(
        &self,
        result: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, ClientError> {
        let mut response = result.map_err(|error| match error {
            ureq::Error::Timeout(_) => ClientError::Timeout,
            // The address file was left behind by a crash: no service listens on its port any more.
            _ => ClientError::NotRunning(self.database.clone()),
        })?;
        let is_ok = response.status().is_success();
        let value: Value = response.body_mut().read_json().map_err(|error| match error {
            ureq::Error::Timeout(_) => ClientError::Timeout,
            other => self.unexpected_response(&other),
        })?;
        match is_ok {
            true => Ok(value),
            false => {
                Err(ClientError::Rejected(value["error"].as_str().unwrap_or("it gave no reason").to_owned()))
            }
        }
    }

    fn unexpected_response(&self, detail: &impl ToString) -> ClientError {
        ClientError::UnexpectedResponse { version: self.daemon.version.clone(), detail: detail.to_string() }
    }
}

fn http_agent(within: Duration) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(within))
        .proxy(None)
        .build()
        .into()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use longhaul_model::Timestamp;

    use super::*;

    #[test]
    fn body_that_does_not_end_in_time_is_a_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // Begins a response and then waits until the client closes the connection.
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{").unwrap();
            while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
        });
        let daemon = DaemonAddress {
            pid: 1,
            port,
            token: "t".to_owned(),
            version: "v".to_owned(),
            started_us: Timestamp::from_us(0),
        };
        let client = Client { daemon, database: "d".to_owned() };
        let result = http_agent(Duration::from_millis(500)).get(client.url("status")).call();
        let found = client.parse_response(result);
        assert!(matches!(found, Err(ClientError::Timeout)), "{found:?}");
    }
}
