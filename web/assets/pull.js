// Lets a person pull, zoom and walk through time on the latency page. The service draws and describes every window, without a
// script too; here its smoke is drawn once more where it can be pulled, and the address follows.
"use strict";
(() => {
const DAY = 86_400;
/** The shortest and the longest window, in days; shorter pulls are slips of the hand, in pixels. */
const [LEAST, MOST, SLIP] = [1 / 24, 1_200, 6];
/** Of more events than these only ticks are drawn, as the service does. */
const TOLD = 8;
/** So long nothing new has to be asked for before the service is asked, in milliseconds. */
const CALM = 150;

const content = document.getElementById("content");
const opening = location.search;
let view = [0, 0]; // In seconds since 1970 UTC.
let plots = [];
let turn = 0;
let waiting;

// A time in seconds, as the tables write it.
const time = (seconds) => {
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${+(seconds * factor).toPrecision(3)} ${unit}`;
};

// The address of a window.
const addressOf = (from, until) => {
  const asked = new URLSearchParams(location.search);
  asked.set("days", +Math.min(MOST, Math.max(LEAST, (until - from) / DAY)).toFixed(4));
  asked.set("until", Math.round(Math.min(until, Date.now() / 1e3) * 1e6));
  return `?${asked}`;
};

// What is drawn already moves at once; the service is asked when the hand rests.
const go = (search, [from, until] = view) => {
  history[waiting ? "replaceState" : "pushState"](null, "", search || location.pathname);
  clearTimeout(waiting);
  waiting = setTimeout(show, CALM);
  view = [from, until];
  plots.forEach((plot) => plot.setScale("x", { min: from, max: until }));
};

const goTo = (from, until) => {
  const late = Math.max(0, until - Date.now() / 1e3);
  go(addressOf(from - late, until - late), [from - late, until - late]);
};

// The window becomes so many times as long around its middle, and goes on by a share of itself.
const change = (factor, share) => {
  const [from, until] = view;
  const [middle, half] = [(from + until) / 2 + share * (until - from), factor * (until - from) / 2];
  goTo(middle - half, middle + half);
};

const KEYS = {
  ArrowLeft: () => change(1, -0.25), ArrowRight: () => change(1, 0.25),
  "+": () => change(0.5, 0), "=": () => change(0.5, 0), "-": () => change(2, 0), 0: () => go(opening),
};

// Every step is a box of its own, as long as it lasted: where nothing is known nothing is drawn, and nothing across it.
const drawSteps = (plot, { steps, look, seconds }) => {
  const { ctx, bbox } = plot;
  const [across, down] = [(at) => plot.valToPos(at, "x", true), (value) => plot.valToPos(value, "y", true)];
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = look.colour;
  for (const step of steps) {
    const left = across(step.at_us / 1e6);
    const width = Math.max(1, across(step.at_us / 1e6 + seconds) - left);
    const box = (alpha, low, high) => {
      ctx.globalAlpha = alpha;
      ctx.fillRect(left, down(high), width, down(low) - down(high));
    };
    if (step.p50 !== null) {
      box(0.22, step.p5, step.p95);
      box(0.38, step.p25, step.p75);
    }
    if (step.failed > 0) cross(plot, look, left + width / 2);
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = look.colour;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  let end; // Of the step before, a twentieth longer: a day on which the clock is changed has 25 hours.
  for (const { at_us, p50 } of steps.filter((step) => step.p50 !== null)) {
    ctx[at_us / 1e6 <= end ? "lineTo" : "moveTo"](across(at_us / 1e6), down(p50));
    ctx.lineTo(across(at_us / 1e6 + seconds), down(p50));
    end = at_us / 1e6 + 1.05 * seconds;
  }
  ctx.stroke();
  ctx.restore();
};

const cross = ({ ctx, bbox }, look, x) => {
  const [y, arm] = [bbox.top + bbox.height - 8 * devicePixelRatio, 4 * devicePixelRatio];
  ctx.globalAlpha = 1;
  ctx.strokeStyle = look.bad;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  for (const slope of [1, -1]) {
    ctx.moveTo(x - arm, y - slope * arm);
    ctx.lineTo(x + arm, y + slope * arm);
  }
  ctx.stroke();
};

// Ticks at the top, with the numbers that the notes below have where they are told.
const drawEvents = (plot, { events, look }) => {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = look.muted;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.font = `${look.line * devicePixelRatio}px system-ui, sans-serif`;
  events.forEach(({ at_us }, place) => {
    const x = plot.valToPos(at_us / 1e6, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + look.line * devicePixelRatio);
    ctx.stroke();
    if (events.length <= TOLD) ctx.fillText(place + 1, x + 3 * devicePixelRatio, bbox.top + look.line * devicePixelRatio);
  });
  ctx.restore();
};

// The figures of the step below the pointer; of all of them where there is none.
const told = (plot, { steps, seconds, zone }) => {
  const sum = (what) => steps.reduce((sum, step) => sum + step[what], 0);
  const counted = (count, failed) => `n ${count}${failed > 0 ? `, ${failed} failed` : ""}`;
  if (!(plot.cursor.left >= 0)) return `${counted(sum("count"), sum("failed"))} in this window`;
  const at = plot.posToVal(plot.cursor.left, "x");
  const step = steps.find((step) => step.at_us / 1e6 <= at && at < step.at_us / 1e6 + seconds);
  const when = new Date((step ? step.at_us / 1e6 : at) * 1e3).toLocaleString("sv", { timeZone: zone ?? undefined, dateStyle: "short", timeStyle: "short" });
  if (!step) return `${when}: nobody asked`;
  const spread = step.p50 === null ? "no answer"
    : `median ${time(step.p50)}, half from ${time(step.p25)} to ${time(step.p75)}, nine in ten from ${time(step.p5)} to ${time(step.p95)}`;
  return `${when}: ${spread}; ${counted(step.count, step.failed)}`;
};

// What is written on the axis of times: 1, 2, 5 of each decade, or fewer where there are many.
const times = (low, high) => {
  const of = (parts) => Array.from({ length: 24 }, (_, place) => place - 12).flatMap((power) => parts.map((part) => part * 10 ** power))
    .filter((value) => low <= value && value <= high);
  return [[1, 2, 5], [1, 3], [1]].map(of).find((all) => all.length <= 6) ?? of([1]);
};

// What is written on the axis of time: hours of a day, days of a month, months.
const instants = (zone) => (_, ticks, __, ___, between) => ticks.map((at) => {
  const says = (form) => new Date(at * 1e3).toLocaleString("en-GB", { timeZone: zone ?? undefined, ...form });
  const hour = says({ hour: "2-digit", minute: "2-digit" });
  if (between >= 28 * DAY) return says({ month: "short", year: "numeric" });
  return between < DAY && hour !== "00:00" ? hour : says({ day: "numeric", month: "short" });
});

const optionsOf = (series, [low, high], words) => {
  const { look, zone } = series;
  const axis = { stroke: look.muted, font: look.font, grid: { stroke: look.rule, width: 1 }, ticks: { stroke: look.rule, width: 1 } };
  return {
    width: words.clientWidth, height: 13 * look.line, legend: { show: false }, padding: [look.line, 2 * look.line, 0, 0],
    tzDate: (at) => (zone ? uPlot.tzDate(new Date(at * 1e3), zone) : new Date(at * 1e3)),
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false, dist: SLIP }, sync: { key: "latency" },
      bind: { dblclick: () => () => go(opening) } },
    scales: { x: { range: () => view }, y: { distr: 3, range: [low, high] } },
    axes: [
      { ...axis, size: 2.2 * look.line, space: 5 * look.line, values: instants(zone) },
      { ...axis, size: 5 * look.line, splits: () => times(low, high), filter: (_, ticks) => ticks, values: (_, ticks) => ticks.map(time) },
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: {
      draw: [(plot) => drawSteps(plot, series), (plot) => drawEvents(plot, series)],
      setCursor: [(plot) => { words.textContent = told(plot, series); }],
      setSelect: [(plot) => {
        const { left, width } = plot.select;
        if (width >= SLIP) goTo(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
        if (width > 0) plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }],
    },
  };
};

const lookOf = (picture) => {
  const own = getComputedStyle(picture.querySelector(".smoke"));
  const of = (name) => own.getPropertyValue(name).trim();
  const line = parseFloat(getComputedStyle(picture).fontSize);
  return { colour: of("--c"), bad: of("--bad"), muted: of("--muted"), rule: of("--rule"), line, font: `${line}px system-ui, sans-serif` };
};

// In place of a picture: it stays there for whoever reads its words and its table.
const mount = (target, bounds, shared) => {
  const figure = document.getElementById(`smoke-${target.target}`);
  const picture = figure?.querySelector(".chart");
  if (!picture) return [];
  const [place, words] = [document.createElement("div"), document.createElement("p")];
  Object.assign(place, { id: `pull-${target.target}`, className: "pull", tabIndex: 0 });
  place.setAttribute("role", "group");
  place.setAttribute("aria-labelledby", `${figure.id}-title`);
  place.setAttribute("aria-describedby", "pulling");
  words.className = "notes told";
  picture.before(place, words);
  const series = { ...shared, steps: target.steps, events: target.events, look: lookOf(picture) };
  figure.classList.add("pulled");
  const at = target.steps.map((step) => step.at_us / 1e6);
  const plot = new uPlot(optionsOf(series, bounds, words), [at, target.steps.map((step) => step.p50)], place);
  words.textContent = told(plot, series);
  place.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  return [plot];
};

let known;
const draw = () => {
  plots.forEach((plot) => plot.destroy());
  document.querySelectorAll(".pull,.told").forEach((old) => old.remove());
  document.querySelectorAll(".pulled").forEach((figure) => figure.classList.remove("pulled"));
  view = [known.from_us / 1e6, known.until_us / 1e6];
  const steps = known.targets.flatMap((target) => target.steps).filter((step) => step.p50 !== null);
  const bounds = [Math.min(...steps.map((step) => step.p5)) / 1.2, Math.max(...steps.map((step) => step.p95)) * 1.2];
  const shared = { seconds: known.step_seconds, zone: known.zone };
  // Where nobody answered there is nothing to pull, and no scale.
  plots = steps.length === 0 ? [] : known.targets.flatMap((target) => mount(target, bounds, shared));
  document.getElementById("pulling")?.toggleAttribute("hidden", plots.length === 0);
};

// The page as the service draws it for the present address, with what can be pulled in it.
const show = async () => {
  waiting = undefined;
  turn += 1;
  const own = turn;
  try {
    const [page, data] = await Promise.all([fetch(location.href), fetch(`/api/v1/smoke${location.search}`)]);
    const [text, figures] = [await page.text(), await data.json()];
    if (own !== turn || waiting) return;
    const next = new DOMParser().parseFromString(text, "text/html").getElementById("content");
    const opened = [...content.querySelectorAll("details[open]")].map((one) => one.parentElement.id);
    const focused = document.activeElement?.id;
    content.replaceChildren(...next.childNodes);
    opened.forEach((id) => id && document.getElementById(id)?.querySelector("details")?.setAttribute("open", ""));
    known = figures;
    draw();
    if (focused && focused !== document.activeElement?.id) (document.getElementById(focused) ?? content).focus({ preventScroll: true });
  } catch {
    location.reload();
  }
};

content.addEventListener("click", (event) => {
  const link = event.target.closest(".turning a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.search);
});
addEventListener("popstate", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => known && draw());
let wide = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== wide && known) draw();
  wide = innerWidth;
});
fetch(`/api/v1/smoke${location.search}`).then((answer) => answer.ok && answer.json()).then((figures) => {
  if (!figures) return;
  known = figures;
  draw();
});
})();
