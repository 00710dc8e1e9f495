// Lets a user select, zoom and move through time on the latency page. The server renders every window, also
// without a script. This script draws each chart again on a canvas that can be zoomed, and keeps the URL up to
// date.
"use strict";
(() => {
const DAY = 86_400;
/** The shortest and the longest window, in days, and the shortest drag that is not taken for a slip, in pixels. */
const [MIN_DAYS, MAX_DAYS, MIN_DRAG] = [1 / 24, 1_200, 6];
/** Maximum number of events whose numbers are drawn, as in the charts of the server; of more events only the ticks are drawn. */
const MAX_LABELS = 8;
/** Delay before the server is asked for a new window, in milliseconds, so that a series of moves causes one request. */
const DEBOUNCE = 150;

const content = document.getElementById("content");
const opening = location.search;
let view = [0, 0]; // Start and end of the visible window, in seconds since 1970 UTC.
let plots = [];
let turn = 0;
let waiting;

// Formats a duration in seconds, as the tables do.
const time = (seconds) => {
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${+(seconds * factor).toPrecision(3)} ${unit}`;
};

// Returns the query of a window.
const queryOf = (from, until) => {
  const query = new URLSearchParams(location.search);
  query.set("days", +Math.min(MAX_DAYS, Math.max(MIN_DAYS, (until - from) / DAY)).toFixed(4));
  query.set("until", Math.round(Math.min(until, Date.now() / 1e3) * 1e6));
  return `?${query}`;
};

// Fetches the data of the window in the URL. The form sends empty fields, which the API rejects, so they are
// removed.
const fetchSeries = () => {
  const query = [...new URLSearchParams(location.search)].filter(([, value]) => value !== "");
  return fetch(`/api/v1/latency/series?${new URLSearchParams(query)}`);
};

// Moves the charts at once with the data at hand, and reloads the page after a delay without further moves.
const go = (search, [from, until] = view) => {
  history[waiting ? "replaceState" : "pushState"](null, "", search || location.pathname);
  clearTimeout(waiting);
  waiting = setTimeout(show, DEBOUNCE);
  view = [from, until];
  plots.forEach((plot) => plot.setScale("x", { min: from, max: until }));
};

const goTo = (from, until) => {
  const late = Math.max(0, until - Date.now() / 1e3);
  go(queryOf(from - late, until - late), [from - late, until - late]);
};

// Scales the window around its middle by a factor, and moves it by a share of its length.
const change = (factor, share) => {
  const [from, until] = view;
  const [middle, half] = [(from + until) / 2 + share * (until - from), factor * (until - from) / 2];
  goTo(middle - half, middle + half);
};

const KEYS = {
  ArrowLeft: () => change(1, -0.25), ArrowRight: () => change(1, 0.25),
  "+": () => change(0.5, 0), "=": () => change(0.5, 0), "-": () => change(2, 0), 0: () => go(opening),
};

// Draws each step as a box of its own length. A step without data stays empty, and no line crosses it.
const drawSteps = (plot, { steps, style, seconds }) => {
  const { ctx, bbox } = plot;
  const [across, down] = [(at) => plot.valToPos(at, "x", true), (value) => plot.valToPos(value, "y", true)];
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = style.colour;
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
    if (step.failed > 0) cross(plot, style, left + width / 2);
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = style.colour;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  let end; // End of the previous step plus 5 %, because a day on which the clock changes may have 25 hours.
  for (const { at_us, p50 } of steps.filter((step) => step.p50 !== null)) {
    ctx[at_us / 1e6 <= end ? "lineTo" : "moveTo"](across(at_us / 1e6), down(p50));
    ctx.lineTo(across(at_us / 1e6 + seconds), down(p50));
    end = at_us / 1e6 + 1.05 * seconds;
  }
  ctx.stroke();
  ctx.restore();
};

const cross = ({ ctx, bbox }, style, x) => {
  const [y, arm] = [bbox.top + bbox.height - 8 * devicePixelRatio, 4 * devicePixelRatio];
  ctx.globalAlpha = 1;
  ctx.strokeStyle = style.bad;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  for (const slope of [1, -1]) {
    ctx.moveTo(x - arm, y - slope * arm);
    ctx.lineTo(x + arm, y + slope * arm);
  }
  ctx.stroke();
};

// Draws events as ticks at the top, with the numbers that the notes below the chart use.
const drawEvents = (plot, { events, style }) => {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = style.muted;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.font = `${style.line * devicePixelRatio}px system-ui, sans-serif`;
  events.forEach(({ at_us }, place) => {
    const x = plot.valToPos(at_us / 1e6, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + style.line * devicePixelRatio);
    ctx.stroke();
    if (events.length <= MAX_LABELS) ctx.fillText(place + 1, x + 3 * devicePixelRatio, bbox.top + style.line * devicePixelRatio);
  });
  ctx.restore();
};

// Returns the figures of the step below the pointer, or of all steps if there is no pointer.
const readout = (plot, { steps, seconds, zone }) => {
  const sum = (what) => steps.reduce((sum, step) => sum + step[what], 0);
  const counted = (count, failed) => `n ${count}${failed > 0 ? `, ${failed} failed` : ""}`;
  if (!(plot.cursor.left >= 0)) return `${counted(sum("count"), sum("failed"))} in this window`;
  const at = plot.posToVal(plot.cursor.left, "x");
  const step = steps.find((step) => step.at_us / 1e6 <= at && at < step.at_us / 1e6 + seconds);
  const when = new Date((step ? step.at_us / 1e6 : at) * 1e3).toLocaleString("sv", { timeZone: zone ?? undefined, dateStyle: "short", timeStyle: "short" });
  if (!step) return `${when}: no requests`;
  const spread = step.p50 === null ? "no answer"
    : `median ${time(step.p50)}, half from ${time(step.p25)} to ${time(step.p75)}, nine in ten from ${time(step.p5)} to ${time(step.p95)}`;
  return `${when}: ${spread}; ${counted(step.count, step.failed)}`;
};

// Returns the labels of the latency axis: 1, 2 and 5 of each decade, or fewer if there are many decades.
const times = (low, high) => {
  const of = (parts) => Array.from({ length: 24 }, (_, place) => place - 12).flatMap((power) => parts.map((part) => part * 10 ** power))
    .filter((value) => low <= value && value <= high);
  return [[1, 2, 5], [1, 3], [1]].map(of).find((all) => all.length <= 6) ?? of([1]);
};

// Returns the labels of the time axis: hours of a day, days of a month, or months.
const timeLabels = (zone) => (_, ticks, __, ___, between) => ticks.map((at) => {
  const says = (form) => new Date(at * 1e3).toLocaleString("en-GB", { timeZone: zone ?? undefined, ...form });
  const hour = says({ hour: "2-digit", minute: "2-digit" });
  if (between >= 28 * DAY) return says({ month: "short", year: "numeric" });
  return between < DAY && hour !== "00:00" ? hour : says({ day: "numeric", month: "short" });
});

const optionsOf = (series, [low, high], words) => {
  const { style, zone } = series;
  const axis = { stroke: style.muted, font: style.font, grid: { stroke: style.rule, width: 1 }, ticks: { stroke: style.rule, width: 1 } };
  return {
    width: words.clientWidth, height: 13 * style.line, legend: { show: false }, padding: [style.line, 2 * style.line, 0, 0],
    tzDate: (at) => (zone ? uPlot.tzDate(new Date(at * 1e3), zone) : new Date(at * 1e3)),
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false, dist: MIN_DRAG }, sync: { key: "latency" },
      bind: { dblclick: () => () => go(opening) } },
    scales: { x: { range: () => view }, y: { distr: 3, range: [low, high] } },
    axes: [
      { ...axis, size: 2.2 * style.line, space: 5 * style.line, values: timeLabels(zone) },
      { ...axis, size: 5 * style.line, splits: () => times(low, high), filter: (_, ticks) => ticks, values: (_, ticks) => ticks.map(time) },
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: {
      draw: [(plot) => drawSteps(plot, series), (plot) => drawEvents(plot, series)],
      setCursor: [(plot) => { words.textContent = readout(plot, series); }],
      setSelect: [(plot) => {
        const { left, width } = plot.select;
        if (width >= MIN_DRAG) goTo(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
        if (width > 0) plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }],
    },
  };
};

const styleOf = (chart) => {
  const own = getComputedStyle(chart.querySelector(".bands"));
  const of = (name) => own.getPropertyValue(name).trim();
  const line = parseFloat(getComputedStyle(chart).fontSize);
  return { colour: of("--c"), bad: of("--bad"), muted: of("--muted"), rule: of("--rule"), line, font: `${line}px system-ui, sans-serif` };
};

// Adds a zoomable plot before a chart. The chart itself is hidden by CSS, but stays for screen readers, with its
// description and table.
const mount = (target, bounds, shared) => {
  const figure = document.getElementById(`bands-${target.target}`);
  const chart = figure?.querySelector(".chart");
  if (!chart) return [];
  const [place, words] = [document.createElement("div"), document.createElement("p")];
  Object.assign(place, { id: `zoom-${target.target}`, className: "zoom-plot", tabIndex: 0 });
  place.setAttribute("role", "group");
  place.setAttribute("aria-labelledby", `${figure.id}-title`);
  place.setAttribute("aria-describedby", "zoom-hint");
  words.className = "notes readout";
  chart.before(place, words);
  const series = { ...shared, steps: target.steps, events: target.events, style: styleOf(chart) };
  figure.classList.add("zoomed");
  const at = target.steps.map((step) => step.at_us / 1e6);
  const plot = new uPlot(optionsOf(series, bounds, words), [at, target.steps.map((step) => step.p50)], place);
  words.textContent = readout(plot, series);
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
  document.querySelectorAll(".zoom-plot,.readout").forEach((old) => old.remove());
  document.querySelectorAll(".zoomed").forEach((figure) => figure.classList.remove("zoomed"));
  view = [known.from_us / 1e6, known.until_us / 1e6];
  const steps = known.targets.flatMap((target) => target.steps).filter((step) => step.p50 !== null);
  const bounds = [Math.min(...steps.map((step) => step.p5)) / 1.2, Math.max(...steps.map((step) => step.p95)) * 1.2];
  const shared = { seconds: known.step_seconds, zone: known.zone };
  // Without any answer there is no scale, so there is nothing to zoom.
  plots = steps.length === 0 ? [] : known.targets.flatMap((target) => mount(target, bounds, shared));
  document.getElementById("zoom-hint")?.toggleAttribute("hidden", plots.length === 0);
};

// Loads the page for the current URL and replaces its content, including the zoomable plots.
const show = async () => {
  waiting = undefined;
  turn += 1;
  const own = turn;
  try {
    const [page, data] = await Promise.all([fetch(location.href), fetchSeries()]);
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
  const link = event.target.closest(".time-nav a");
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
fetchSeries().then((answer) => answer.ok && answer.json()).then((figures) => {
  if (!figures) return;
  known = figures;
  draw();
});
})();
