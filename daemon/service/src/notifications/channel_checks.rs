//! The checks of the channels for `longhaul doctor` and `longhaul config`.

use longhaul_model::status::{Check, CheckStatus};
use longhaul_notify::{ChannelConfig, Sender, read_url};

use super::settings::NotifyConfig;

/// Tries to reach every channel, all at once, without sending a message. Waits for up to 15 seconds.
pub fn check_channels(config: &NotifyConfig) -> Vec<Check> {
    let mut checks: Vec<Check> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            config.channels.iter().map(|channel| scope.spawn(|| check_channel(channel))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    checks.extend(config.heartbeat.as_ref().map(|heartbeat| match read_url(&heartbeat.url) {
        Ok(_) => {
            Check::ok("notify heartbeat", "its address can be used; `longhaul status` shows the last request")
        }
        Err(error) => failed("notify heartbeat", error.to_string()),
    }));
    checks
}

fn check_channel(channel: &ChannelConfig) -> Check {
    let name = format!("notify {}", channel.name);
    let receiver = channel.host().unwrap_or_default();
    let checked = Sender::new(channel).map_err(|error| error.to_string());
    let reached = checked.and_then(|sender| sender.check().map_err(|why| format!("{receiver}: {why}")));
    match reached {
        Ok(()) => Check::ok(name, format!("{} at {receiver} can be reached", channel.kind())),
        Err(why) => failed(&name, why),
    }
}

fn failed(name: &str, why: String) -> Check {
    let fix = "correct it, then run `longhaul notify test`";
    Check::problem(name, CheckStatus::Failed, why, fix)
}
