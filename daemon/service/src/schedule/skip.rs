//! Rules for skipping a round. They use facts from before the round only, and skip it for all targets. Pure.

use longhaul_model::{LinkKind, MachineSnapshot, NetworkLink, Power};

use super::quiet_hours::QuietHours;

/// The user's rules for skipping rounds. An unknown fact never skips a round.
#[derive(Debug, Clone, PartialEq)]
pub struct SkipRules {
    /// Battery charge in percent below which rounds are skipped on battery. `None`: never.
    pub battery_below: Option<f64>,
    /// True if rounds are skipped while a Mac is awake for some work only.
    pub in_dark_wake: bool,
    /// True if rounds are skipped in low power mode.
    pub in_low_power_mode: bool,
    /// True if rounds are skipped while the machine is throttled because it is too hot.
    pub when_hot: bool,
    /// True if rounds are skipped while a Time Machine backup runs.
    pub during_backup: bool,
    /// True if rounds are skipped while the network is reached through a tunnel, or
    /// another interface than in the last rounds.
    pub on_other_link: bool,
    /// Network traffic in the minute before a round above which it is skipped, in bytes a second. `None`: never.
    pub traffic_above: Option<f64>,
    /// Hours of the local day in which rounds are skipped. `None`: never.
    pub quiet_hours: Option<QuietHours>,
}

impl Default for SkipRules {
    fn default() -> Self {
        Self {
            battery_below: Some(40.0),
            in_dark_wake: true,
            in_low_power_mode: true,
            when_hot: true,
            during_backup: true,
            on_other_link: true,
            traffic_above: Some(2_000_000.0),
            quiet_hours: None,
        }
    }
}

/// The reason why a round is skipped: a code for programs, and a text for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipReason {
    /// Code of the reason, such as `quiet-hours`.
    pub code: &'static str,
    /// Explanation for users.
    pub text: String,
}

impl SkipReason {
    /// Creates a reason from its code and its text.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

/// Code of the reason that the network interface is not the usual one.
pub const OTHER_LINK: &str = "other-link";

/// Returns the reason why this round is skipped. `None`: it is not. An unknown fact is no reason.
///
/// `usual` is the network interface of the last rounds.
pub fn skip_reason(
    rules: &SkipRules,
    now: &MachineSnapshot,
    usual: Option<&NetworkLink>,
    minute_of_day: u16,
) -> Option<SkipReason> {
    quiet_hours_reason(rules, minute_of_day)
        .or_else(|| battery_reason(rules, now))
        .or_else(|| machine_state_reason(rules, now))
        .or_else(|| link_reason(rules, now.link.as_ref(), usual))
        .or_else(|| traffic_reason(rules, now.traffic))
}

fn quiet_hours_reason(rules: &SkipRules, minute: u16) -> Option<SkipReason> {
    let QuietHours { from, to } = rules.quiet_hours.filter(|hours| hours.contains(minute))?;
    let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
    Some(SkipReason::new("quiet-hours", format!("no rounds run from {} to {}", clock(from), clock(to))))
}

fn battery_reason(rules: &SkipRules, now: &MachineSnapshot) -> Option<SkipReason> {
    let (limit, charge) = (rules.battery_below?, now.battery_percent?);
    let is_low = now.power == Some(Power::Battery) && charge < limit;
    is_low.then(|| {
        SkipReason::new(
            "battery",
            format!("the machine runs on battery at {charge:.0} %, below {limit:.0} %"),
        )
    })
}

fn machine_state_reason(rules: &SkipRules, now: &MachineSnapshot) -> Option<SkipReason> {
    let applies = |enabled: bool, fact: Option<bool>| enabled && fact == Some(true);
    // The machine goes back to sleep within a minute or so, which voids the round.
    if applies(rules.in_dark_wake, now.is_dark_wake) {
        return Some(SkipReason::new("dark-wake", "the Mac is only briefly awake (dark wake)"));
    }
    if applies(rules.in_low_power_mode, now.low_power_mode) {
        return Some(SkipReason::new("low-power-mode", "the machine is in low power mode"));
    }
    if applies(rules.when_hot, now.is_hot) {
        return Some(SkipReason::new("heat", "the machine slows itself down because it is too hot"));
    }
    applies(rules.during_backup, now.backup_running)
        .then(|| SkipReason::new("backup", "a Time Machine backup is running"))
}

fn link_reason(
    rules: &SkipRules,
    now: Option<&NetworkLink>,
    usual: Option<&NetworkLink>,
) -> Option<SkipReason> {
    let now = now.filter(|_| rules.on_other_link)?;
    if now.kind == LinkKind::Tunnel {
        return Some(SkipReason::new(
            "vpn",
            format!("the network is reached through the tunnel `{}`", now.name),
        ));
    }
    let usual = usual.filter(|usual| usual.name != now.name)?;
    let text = format!("the network is reached over `{}`; the last rounds used `{}`", now.name, usual.name);
    Some(SkipReason::new(OTHER_LINK, text))
}

fn traffic_reason(rules: &SkipRules, rate: Option<f64>) -> Option<SkipReason> {
    let (limit, rate) = (rules.traffic_above?, rate?);
    let megabytes = |bytes: f64| bytes / 1e6;
    (rate > limit).then(|| {
        let text = format!(
            "network traffic was {:.1} MB/s in the minute before the round; the limit is {:.1} MB/s",
            megabytes(rate),
            megabytes(limit)
        );
        SkipReason::new("traffic", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(rules: &SkipRules, now: &MachineSnapshot) -> Option<&'static str> {
        skip_reason(rules, now, Some(&wire("en0")), 12 * 60).map(|reason| reason.code)
    }

    fn wire(name: &str) -> NetworkLink {
        NetworkLink { name: name.to_owned(), kind: LinkKind::Wired, mtu: None, megabits: None }
    }

    #[test]
    fn unknown_facts_never_skip_a_round() {
        assert_eq!(code(&SkipRules::default(), &MachineSnapshot::default()), None);
    }

    #[test]
    fn each_rule_has_its_code_and_can_be_disabled() {
        let idle = MachineSnapshot::default;
        let tunnel = NetworkLink { kind: LinkKind::Tunnel, ..wire("utun3") };
        let cases = [
            (
                "battery",
                MachineSnapshot { power: Some(Power::Battery), battery_percent: Some(39.0), ..idle() },
            ),
            ("dark-wake", MachineSnapshot { is_dark_wake: Some(true), ..idle() }),
            ("low-power-mode", MachineSnapshot { low_power_mode: Some(true), ..idle() }),
            ("heat", MachineSnapshot { is_hot: Some(true), ..idle() }),
            ("backup", MachineSnapshot { backup_running: Some(true), ..idle() }),
            ("vpn", MachineSnapshot { link: Some(tunnel), ..idle() }),
            ("other-link", MachineSnapshot { link: Some(wire("en5")), ..idle() }),
            ("traffic", MachineSnapshot { traffic: Some(3e6), ..idle() }),
        ];
        let off = SkipRules {
            battery_below: None,
            in_dark_wake: false,
            in_low_power_mode: false,
            when_hot: false,
            during_backup: false,
            on_other_link: false,
            traffic_above: None,
            quiet_hours: None,
        };
        for (expected, now) in cases {
            assert_eq!(code(&SkipRules::default(), &now), Some(expected));
            assert_eq!(code(&off, &now), None, "{expected}");
        }
    }

    #[test]
    fn charged_battery_or_mains_power_does_not_skip() {
        let on = |power, charge| MachineSnapshot {
            power: Some(power),
            battery_percent: Some(charge),
            ..MachineSnapshot::default()
        };
        assert_eq!(code(&SkipRules::default(), &on(Power::Battery, 40.0)), None);
        assert_eq!(code(&SkipRules::default(), &on(Power::Mains, 5.0)), None);
    }

    #[test]
    fn quiet_hours_may_cross_midnight() {
        let night = QuietHours { from: 22 * 60, to: 7 * 60 };
        let rules = SkipRules { quiet_hours: Some(night), ..SkipRules::default() };
        let is_quiet =
            |hour: u16| skip_reason(&rules, &MachineSnapshot::default(), None, hour * 60).is_some();
        assert!(is_quiet(23) && is_quiet(0) && is_quiet(6) && !is_quiet(7) && !is_quiet(21));
    }
}
