//! The command line's side of the control interface.

use std::path::Path;
use std::time::Duration;

use longhaul_service::contact::Contact;
use longhaul_service::status::{Check, Live, Status};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::Agent;

/// How long an answer from memory may take.
const AT_ONCE: Duration = Duration::from_secs(5);
/// How long the doctor may take.
const PATIENT: Duration = Duration::from_secs(110);

/// Why the service does not answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No service runs on this database.
    #[error(
        "no longhaul service runs on {0}: `longhaul install` has the system start it, `longhaul start` starts it, \
         `longhauld` runs it in this terminal"
    )]
    Absent(String),
    /// It runs and refuses.
    #[error("the longhaul service refuses: {0}")]
    Refused(String),
    /// It answers something that this program does not understand.
    #[error(
        "the longhaul service (version {version}) gave an answer that this longhaul does not understand: {detail}. Restart it with `longhaul restart`"
    )]
    Confused {
        /// Its version.
        version: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// A service that answered.
pub struct Client {
    contact: Contact,
    database: String,
}

impl Client {
    /// Finds the service of a database.
    pub fn find(database: &Path) -> Result<Self, ClientError> {
        let name = database.display().to_string();
        match Contact::read(database) {
            Some(contact) => Ok(Self { contact, database: name }),
            None => Err(ClientError::Absent(name)),
        }
    }

    /// What it says of itself.
    pub fn status(&self) -> Result<Status, ClientError> {
        self.read(self.get("status")?)
    }

    /// The round in progress.
    pub fn live(&self) -> Result<Option<Live>, ClientError> {
        self.read(self.get("live")?)
    }

    /// Its doctor's checks.
    pub fn doctor(&self) -> Result<Vec<Check>, ClientError> {
        self.read(self.post("doctor", &json!({}), PATIENT)?)
    }

    /// Gives an order.
    pub fn order(&self, what: &str, order: &Value) -> Result<(), ClientError> {
        self.post(what, order, AT_ONCE).map(drop)
    }

    /// The address of its page, with a key that is good once and for a minute.
    pub fn page(&self) -> Result<String, ClientError> {
        let answer = self.post("key", &json!({}), AT_ONCE)?;
        let key = answer["key"].as_str().ok_or_else(|| self.confused(&"there is no key in it"))?;
        Ok(format!("http://127.0.0.1:{}/enter?key={key}", self.contact.port))
    }

    fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T, ClientError> {
        serde_json::from_value(value).map_err(|error| self.confused(&error))
    }

    fn get(&self, what: &str) -> Result<Value, ClientError> {
        // Without the token it could find all places taken.
        let asked =
            agent(AT_ONCE).get(self.address(what)).header("Authorization", &self.authorization()).call();
        self.answer(asked)
    }

    fn post(&self, what: &str, order: &Value, within: Duration) -> Result<Value, ClientError> {
        let asked = agent(within)
            .post(self.address(what))
            .header("Authorization", &self.authorization())
            .send_json(order);
        self.answer(asked)
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.contact.token)
    }

    fn address(&self, what: &str) -> String {
        format!("http://127.0.0.1:{}/api/v1/{what}", self.contact.port)
    }

    fn answer(
        &self,
        asked: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, ClientError> {
        let mut response = asked.map_err(|error| match error {
            ureq::Error::Timeout(_) => ClientError::Refused("it does not answer in time".to_owned()),
            // A file that a crash left behind: whoever has its port now, nobody listens there as longhaul.
            _ => ClientError::Absent(self.database.clone()),
        })?;
        let is_ok = response.status().is_success();
        let value: Value = response.body_mut().read_json().map_err(|error| self.confused(&error))?;
        match is_ok {
            true => Ok(value),
            false => {
                Err(ClientError::Refused(value["error"].as_str().unwrap_or("it does not say why").to_owned()))
            }
        }
    }

    fn confused(&self, detail: &impl ToString) -> ClientError {
        ClientError::Confused { version: self.contact.version.clone(), detail: detail.to_string() }
    }
}

fn agent(within: Duration) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(within))
        .proxy(None)
        .build()
        .into()
}
