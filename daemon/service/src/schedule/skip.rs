//! Whether a round is skipped: decided on facts from before it, for the whole round, for every target. Pure.

use longhaul_measure::model::{Link, LinkKind, Power, Surroundings};

/// What the person wants rounds to be skipped for.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Below this charge in percent, on battery; `None`: never.
    pub battery_below: Option<f64>,
    /// While the machine saves energy.
    pub low_power_mode: bool,
    /// While the machine slows itself down because it is too hot.
    pub heat: bool,
    /// While a Time Machine backup runs.
    pub backup: bool,
    /// While the way to the network is a tunnel, or another interface than that of the latest rounds.
    pub other_link: bool,
    /// Above so many bytes a second of the person's own traffic in the minute before; `None`: never.
    pub traffic_above: Option<f64>,
    /// From and to which minute of the local day; over midnight if the first is the later.
    pub quiet: Option<(u16, u16)>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            battery_below: Some(40.0),
            low_power_mode: true,
            heat: true,
            backup: true,
            other_link: true,
            traffic_above: Some(2_000_000.0),
            quiet: None,
        }
    }
}

/// Why a round is skipped: one word that programs count, and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// One word.
    pub word: &'static str,
    /// A sentence.
    pub text: String,
}

impl Reason {
    /// A reason.
    pub fn new(word: &'static str, text: impl Into<String>) -> Self {
        Self { word, text: text.into() }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.word, self.text)
    }
}

/// Why this round is skipped; `None`: it is not. What is not known is no reason.
///
/// `usual` is the interface that the latest rounds went over.
pub fn reason(rules: &Rules, now: &Surroundings, usual: Option<&Link>, minute_of_day: u16) -> Option<Reason> {
    quiet(rules, minute_of_day)
        .or_else(|| battery(rules, now))
        .or_else(|| state(rules, now))
        .or_else(|| link(rules, now.link.as_ref(), usual))
        .or_else(|| traffic(rules, now.traffic))
}

fn quiet(rules: &Rules, minute: u16) -> Option<Reason> {
    let (from, to) = rules.quiet?;
    let is_quiet = if from <= to { (from..to).contains(&minute) } else { minute >= from || minute < to };
    let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
    is_quiet.then(|| {
        Reason::new("quiet-hours", format!("nothing is measured from {} to {}", clock(from), clock(to)))
    })
}

fn battery(rules: &Rules, now: &Surroundings) -> Option<Reason> {
    let (least, charge) = (rules.battery_below?, now.battery_percent?);
    let is_low = now.power == Some(Power::Battery) && charge < least;
    is_low.then(|| {
        Reason::new("battery", format!("the machine runs on battery at {charge:.0} %, below {least:.0} %"))
    })
}

fn state(rules: &Rules, now: &Surroundings) -> Option<Reason> {
    let is_so = |wanted: bool, fact: Option<bool>| wanted && fact == Some(true);
    if is_so(rules.low_power_mode, now.low_power_mode) {
        return Some(Reason::new("low-power-mode", "the machine saves energy"));
    }
    if is_so(rules.heat, now.is_hot) {
        return Some(Reason::new("heat", "the machine slows itself down because it is too hot"));
    }
    is_so(rules.backup, now.backup_running).then(|| Reason::new("backup", "a Time Machine backup is running"))
}

fn link(rules: &Rules, now: Option<&Link>, usual: Option<&Link>) -> Option<Reason> {
    let now = now.filter(|_| rules.other_link)?;
    if now.kind == LinkKind::Tunnel {
        return Some(Reason::new("vpn", format!("the way to the network is the tunnel `{}`", now.name)));
    }
    let usual = usual.filter(|usual| usual.name != now.name)?;
    let text = format!("the way to the network is `{}`; rounds went over `{}`", now.name, usual.name);
    Some(Reason::new("link", text))
}

fn traffic(rules: &Rules, rate: Option<f64>) -> Option<Reason> {
    let (most, rate) = (rules.traffic_above?, rate?);
    let megabytes = |bytes: f64| bytes / 1e6;
    (rate > most).then(|| {
        let text = format!(
            "{:.1} MB/s crossed the network in the minute before, above {:.1} MB/s",
            megabytes(rate),
            megabytes(most)
        );
        Reason::new("traffic", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(rules: &Rules, now: &Surroundings) -> Option<&'static str> {
        reason(rules, now, Some(&wire("en0")), 12 * 60).map(|reason| reason.word)
    }

    fn wire(name: &str) -> Link {
        Link { name: name.to_owned(), kind: LinkKind::Wired, mtu: None, megabits: None }
    }

    #[test]
    fn what_is_not_known_is_no_reason() {
        assert_eq!(word(&Rules::default(), &Surroundings::default()), None);
    }

    #[test]
    fn each_rule_has_its_reason_and_can_be_switched_off() {
        let calm = Surroundings::default;
        let tunnel = Link { kind: LinkKind::Tunnel, ..wire("utun3") };
        let cases = [
            ("battery", Surroundings { power: Some(Power::Battery), battery_percent: Some(39.0), ..calm() }),
            ("low-power-mode", Surroundings { low_power_mode: Some(true), ..calm() }),
            ("heat", Surroundings { is_hot: Some(true), ..calm() }),
            ("backup", Surroundings { backup_running: Some(true), ..calm() }),
            ("vpn", Surroundings { link: Some(tunnel), ..calm() }),
            ("link", Surroundings { link: Some(wire("en5")), ..calm() }),
            ("traffic", Surroundings { traffic: Some(3e6), ..calm() }),
        ];
        let off = Rules {
            battery_below: None,
            low_power_mode: false,
            heat: false,
            backup: false,
            other_link: false,
            traffic_above: None,
            quiet: None,
        };
        for (expected, now) in cases {
            assert_eq!(word(&Rules::default(), &now), Some(expected));
            assert_eq!(word(&off, &now), None, "{expected}");
        }
    }

    #[test]
    fn a_full_battery_and_the_mains_are_no_reason() {
        let on = |power, charge| Surroundings {
            power: Some(power),
            battery_percent: Some(charge),
            ..Surroundings::default()
        };
        assert_eq!(word(&Rules::default(), &on(Power::Battery, 40.0)), None);
        assert_eq!(word(&Rules::default(), &on(Power::Mains, 5.0)), None);
    }

    #[test]
    fn quiet_hours_may_cross_midnight() {
        let rules = Rules { quiet: Some((22 * 60, 7 * 60)), ..Rules::default() };
        let is_quiet = |hour: u16| reason(&rules, &Surroundings::default(), None, hour * 60).is_some();
        assert!(is_quiet(23) && is_quiet(0) && is_quiet(6) && !is_quiet(7) && !is_quiet(21));
    }
}
