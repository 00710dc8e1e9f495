//! The thread that hands what is stored to a collector, between rounds and never in one.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender as OrderSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use longhaul_measure::corpus::draw::draw;
use longhaul_measure::platform;
use longhaul_store::{Fate, Outbox, Reader, SharedWriter, Signal};

use crate::answer::Expected;
use crate::batch::Maker;
use crate::diagnostics::{self, Diagnostics};
use crate::gate::Gate;
use crate::now::Now;
use crate::outbox::{Attempts, Becomes};
use crate::sender::Sender;
use crate::settings::Settings;
use crate::status::{ExportStatus, SignalStatus};

/// How long whoever stops it waits for it. What is in flight then is sent again the next time.
const END_WITHIN: Duration = Duration::from_millis(1500);
/// Nothing is begun so shortly before a round: a request may take a while.
const BEFORE_A_ROUND_US: i64 = 5_000_000;
/// How often it is looked whether a round is over.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);
/// Items that are looked at for a message.
const MOST_ITEMS: usize = 32;
/// The longest pause between two messages of a long queue.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What the service is doing, as far as the exporter has to know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct View {
    /// When the next round begins, in microseconds since 1970 UTC.
    pub next_us: Option<i64>,
    /// What is so just now.
    pub now: Now,
}

/// What the exporter is made of.
pub struct Parts {
    /// The database.
    pub database: PathBuf,
    /// The one who writes to it.
    pub writer: SharedWriter,
    /// Closed while a round goes on.
    pub gate: Arc<Gate>,
    /// What the service is doing; `None`: it has not said anything yet.
    pub view: Box<dyn Fn() -> Option<View> + Send>,
    /// Where the service's own log comes from.
    pub diagnostics: Diagnostics,
    /// Told how it stands, whenever that has changed.
    pub tell: Box<dyn Fn(ExportStatus) + Send>,
}

/// The running thread.
pub struct Exporter {
    orders: OrderSender<Order>,
    ended: Mutex<Receiver<()>>,
    status: Arc<Mutex<ExportStatus>>,
}

enum Order {
    Configure(Box<Result<Option<Settings>, String>>),
    Stop,
}

impl Exporter {
    /// Starts the thread. It waits for its first settings.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start(parts: Parts) -> std::io::Result<Self> {
        let (orders, waiting) = channel();
        let (end, ended) = channel();
        let status = Arc::new(Mutex::new(ExportStatus::default()));
        let shared = Arc::clone(&status);
        let work = move || {
            let _ends = end;
            let mut worker = Worker {
                parts,
                status: shared,
                lanes: vec![],
                diagnosed: None,
                machine: String::new(),
                settings: None,
                told_ns: None,
                turns: 0,
            };
            worker.work(&waiting);
        };
        std::thread::Builder::new().name("telemetry".to_owned()).stack_size(1 << 20).spawn(work)?;
        Ok(Self { orders, ended: Mutex::new(ended), status })
    }

    /// Puts settings in force; the error says why there are none.
    pub fn configure(&self, settings: Result<Option<Settings>, String>) {
        let _ = self.orders.send(Order::Configure(Box::new(settings)));
    }

    /// How it stands.
    pub fn status(&self) -> ExportStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it within two seconds, whatever the collector does.
    pub fn stop(&self) {
        let _ = self.orders.send(Order::Stop);
        // The thread drops its end when it is over. One that waits for a collector is left behind.
        let _ = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(END_WITHIN);
    }
}

/// One signal on its way.
struct Lane {
    signal: Signal,
    sender: Sender,
    maker: Maker,
    attempts: Attempts,
    stored: Outbox,
    next_try_us: Option<i64>,
}

struct Worker {
    parts: Parts,
    status: Arc<Mutex<ExportStatus>>,
    lanes: Vec<Lane>,
    diagnosed: Option<diagnostics::Lanes>,
    machine: String,
    settings: Option<Settings>,
    /// When what is so just now was last told, in nanoseconds of a clock that never steps.
    told_ns: Option<u64>,
    turns: u64,
}

impl Worker {
    fn work(&mut self, orders: &Receiver<Order>) {
        let mut wait = None;
        loop {
            let order = match wait {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => orders.recv_timeout(wait),
            };
            match order {
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Order::Configure(settings)) => self.configure(*settings),
                Err(RecvTimeoutError::Timeout) => {}
            }
            wait = self.turn();
        }
    }

    fn configure(&mut self, settings: Result<Option<Settings>, String>) {
        let is_new = settings.as_ref().ok() != Some(&self.settings);
        let made = settings.and_then(|settings| {
            if is_new {
                self.make_lanes(settings.as_ref())?;
            }
            Ok(settings)
        });
        let problem = match made {
            Ok(settings) => {
                self.settings = settings;
                None
            }
            Err(problem) => {
                (self.lanes, self.diagnosed, self.settings) = (vec![], None, None);
                tracing::warn!(problem, "nothing is exported");
                Some(problem)
            }
        };
        self.parts.diagnostics.want(self.diagnosed.is_some());
        self.status.lock().unwrap_or_else(PoisonError::into_inner).problem = problem;
        self.publish();
    }

    fn make_lanes(&mut self, settings: Option<&Settings>) -> Result<(), String> {
        (self.lanes, self.diagnosed) = (vec![], None);
        let Some(settings) = settings else { return Ok(()) };
        let words = |error: longhaul_store::Error| error.to_string();
        let reader = Reader::open(&self.parts.database).map_err(words)?;
        self.machine = reader.machine_id().map_err(words)?.unwrap_or_default();
        for signal in Signal::ALL {
            let Some(route) = settings.route(signal) else { continue };
            self.lanes.push(Lane {
                signal,
                sender: Sender::new(route, Expected::of(signal)).map_err(|error| error.to_string())?,
                maker: Maker::new(signal, &self.machine, &settings.attributes, settings.temporality),
                attempts: Attempts::default(),
                stored: reader.outbox(signal).map_err(words)?,
                next_try_us: None,
            });
        }
        let diagnosed = settings.diagnosed.as_ref().map(diagnostics::Lanes::new).transpose();
        self.diagnosed = diagnosed.map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Does what is due. Returns for how long nothing is; `None`: until there is an order.
    fn turn(&mut self) -> Option<Duration> {
        let interval = self.settings.as_ref()?.interval;
        let now_us = platform::wall_clock_us();
        let is_near = |next_us: i64| (0..BEFORE_A_ROUND_US).contains(&(next_us - now_us));
        let view = (self.parts.view)().filter(|view| !view.next_us.is_some_and(is_near));
        let (Some(view), Some(_)) = (view, self.parts.gate.pass()) else {
            return Some(interval.min(BETWEEN_LOOKS));
        };
        let began = Instant::now();
        let went_on = match self.send_stored() {
            Ok(went_on) => went_on,
            Err(error) => {
                tracing::warn!(%error, "what is to be exported cannot be read or booked");
                false
            }
        };
        self.tell_of_now(&view, interval);
        self.send_diagnostics();
        self.publish();
        // While it catches up it rests as long as it worked.
        let waits = self.lanes.iter().map(|lane| lane.attempts.wait(platform::monotonic_ns()));
        let retry = waits.filter(|wait| !wait.is_zero()).min().unwrap_or(interval);
        Some(if went_on { began.elapsed().min(LONGEST_PAUSE) } else { retry.min(interval) })
    }

    /// One message of each signal that is due. Says whether there is more to send.
    fn send_stored(&mut self) -> longhaul_store::Result<bool> {
        let reader = Reader::open(&self.parts.database)?;
        let keep = self.settings.as_ref().map(|settings| settings.keep).unwrap_or_default();
        let Some(writer) = self.parts.writer.current() else { return Ok(false) };
        let mut went_on = false;
        let chance = self.chance();
        for lane in &mut self.lanes {
            let Some(_passing) = self.parts.gate.pass() else { break };
            lane.stored = reader.outbox(lane.signal)?;
            went_on |= lane.advance(&reader, &writer, (keep, chance))?;
        }
        Ok(went_on)
    }

    /// What is so just now is told once an interval. It is not kept: the next one says more.
    fn tell_of_now(&mut self, view: &View, interval: Duration) {
        let now_ns = platform::monotonic_ns();
        let is_early = |told_ns: u64| u128::from(now_ns - told_ns) < interval.as_nanos();
        let chance = self.chance();
        let signals = self.lanes.iter().map(Lane::status).collect();
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.signal == Signal::Metrics) else { return };
        if self.told_ns.is_some_and(is_early) || !lane.attempts.is_due(now_ns) {
            return;
        }
        let Some(_passing) = self.parts.gate.pass() else { return };
        self.told_ns = Some(now_ns);
        let now = Now { at_us: platform::wall_clock_us(), signals, ..view.now.clone() };
        let answer = lane.sender.send(&lane.maker.of_now(&now));
        // A collector that is away is noticed by this too; what became of the message itself concerns nobody.
        lane.attempts.hear(&answer, (platform::monotonic_ns(), chance));
        lane.note_wait();
    }

    fn send_diagnostics(&mut self) {
        let chance = self.chance();
        if let (Some(lanes), Some(settings)) = (&mut self.diagnosed, &self.settings) {
            let who = (self.machine.as_str(), &settings.attributes);
            let now = (platform::monotonic_ns(), chance);
            lanes.advance(&self.parts.diagnostics, &self.parts.gate, (who, now));
        }
    }

    /// From 0 up to 1, another one each time: so that many machines do not come back as one.
    fn chance(&mut self) -> f64 {
        self.turns += 1;
        draw(platform::monotonic_ns(), 0x6a69, self.turns) as f64 / u64::MAX as f64
    }

    fn publish(&self) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.signals = self.lanes.iter().map(Lane::status).collect();
        (self.parts.tell)(status.clone());
    }
}

impl Lane {
    /// Sends the next message, if it is time to. Says whether there is more to send just now.
    fn advance(
        &mut self,
        reader: &Reader,
        writer: &longhaul_store::Writer,
        (keep, chance): (Duration, f64),
    ) -> longhaul_store::Result<bool> {
        let (now_ns, now_us) = (platform::monotonic_ns(), platform::wall_clock_us());
        if self.stored.waiting == 0 || !self.attempts.is_due(now_ns) {
            return Ok(false);
        }
        let keep_us = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        writer.expire(self.signal, now_us.saturating_sub(keep_us), now_us)?;
        let most = self.attempts.most_items(MOST_ITEMS);
        let items = reader.waiting(self.signal, u32::try_from(most).unwrap_or(u32::MAX))?;
        let Some(batch) = self.maker.batch(reader, &items)? else {
            self.stored = reader.outbox(self.signal)?;
            return Ok(false);
        };
        let answer = self.sender.send(&batch.message);
        let becomes = self.attempts.learn(&answer, batch.items.len(), (platform::monotonic_ns(), chance));
        let is_settled = becomes != Becomes::Waiting;
        if let Becomes::Settled(fate) = becomes {
            note(self.signal, &batch.items, &fate);
            writer.settle(self.signal, batch.items, (fate, platform::wall_clock_us()))?;
            self.maker = batch.next;
        }
        self.stored = reader.outbox(self.signal)?;
        self.note_wait();
        Ok(self.stored.waiting > 0 && (is_settled || self.next_try_us.is_none()))
    }

    fn note_wait(&mut self) {
        let wait = self.attempts.wait(platform::monotonic_ns());
        let wait_us = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
        self.next_try_us = (!wait.is_zero()).then(|| platform::wall_clock_us().saturating_add(wait_us));
    }

    fn status(&self) -> SignalStatus {
        let stored = &self.stored;
        let rejection = stored.last_rejection.as_ref();
        SignalStatus {
            name: self.signal.name().to_owned(),
            endpoint: self.sender.address(),
            waiting: stored.waiting,
            sent: stored.sent,
            rejected: stored.rejected,
            expired: stored.expired,
            last_sent_us: stored.last_sent_us,
            last_rejection: rejection
                .map(|rejection| format!("{}: {}", known_as(self.signal, rejection.item), rejection.reason)),
            failing: self.attempts.failing().map(ToOwned::to_owned),
            next_try_us: self.next_try_us,
        }
    }
}

/// What a person knows an item as.
fn known_as(signal: Signal, item: i64) -> String {
    match signal {
        Signal::Traces | Signal::Metrics => format!("round {item}"),
        Signal::Samples => Timestamp::from_microsecond(item)
            .map_or_else(|_| item.to_string(), |begin| format!("samples from {begin}")),
    }
}

fn note(signal: Signal, items: &[i64], fate: &Fate) {
    let (first, count) = (items.first(), items.len());
    match fate {
        Fate::Rejected(why) => {
            tracing::warn!(
                signal = signal.name(),
                first,
                count,
                why,
                "the collector does not take what is sent"
            );
        }
        Fate::Sent | Fate::Expired => {
            tracing::debug!(signal = signal.name(), first, count, "items were sent")
        }
    }
}
