// Memory by stage, stacked, one chart a space, and items a second.
import { bytes, clock, el, hue, rate, svg } from "./text.js";

const LEFT = 62, BOTTOM = 20, TOP = 10;
const cursors = new Map(); // chart's name → share of the width that is pointed at

// steps are round values of an axis up to max; of bytes, round in their unit.
function steps(max, binary) {
  let unit = 1;
  if (binary) while (max / unit >= 1024) unit *= 1024;
  const raw = max / unit / 4;
  const mag = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * mag).find((s) => s >= raw) * unit;
  const out = [];
  for (let v = 0; v <= max * 1.0001; v += step) out.push(v);
  return out;
}

// domain is the last three minutes, or what there is of them.
function domain(points, now) {
  const begin = Math.max(points.length ? points[0].at_ns : 0, now - 180e9, 0);
  const from = begin < 2e9 ? 0 : begin;
  return { from, span: Math.max(now - from, 10e9) };
}

function frame(width, height, max, dom, label, binary) {
  const w = width - LEFT - 6, h = height - TOP - BOTTOM;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const y = (v) => TOP + h - (v / max) * h;
  const x = (t) => LEFT + ((t - dom.from) / dom.span) * w;
  for (const v of steps(max, binary)) {
    root.append(svg("line", { class: "gridline", x1: LEFT, x2: LEFT + w, y1: y(v), y2: y(v) }));
    root.append(svg("text", { class: "dim", x: LEFT - 7, y: y(v) + 4, "text-anchor": "end" }, binary ? bytes(v) : v % 1 ? v.toFixed(v < 0.1 ? 2 : 1) : v));
  }
  const marks = width < 420 ? 2 : 4;
  for (let i = 0; i <= marks; i++) {
    const t = dom.from + (dom.span * i) / marks;
    const anchor = i === 0 ? "start" : i === marks ? "end" : "middle";
    root.append(svg("text", { class: "dim", x: x(t), y: height - 4, "text-anchor": anchor }, clock(t, dom.span < 60e9)));
  }
  return { root, x, y, w, h };
}

function line(xs, ys) {
  return xs.map((x, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${ys[i].toFixed(1)}`).join("");
}

// series are the stages, then what no node made; each the bytes at every point.
function stack(state, points, k) {
  const level = state.spaces[k];
  const out = state.stages.map((s, i) => ({ name: s.name, ink: hue(s), kind: s.kind, of: points.map((p) => p.spaces[k]?.made[i] || 0) }));
  const sum = points.map((_, j) => out.reduce((t, s) => t + s.of[j], 0));
  const live = points.map((p) => Math.max((p.spaces[k]?.live || 0) - level.base, 0));
  out.push({ name: "other", ink: "other", of: live.map((v, j) => Math.max(v - sum[j], 0)) });
  return out.filter((s) => s.kind === "stage" || s.of.some((v) => v > 0));
}

export function drawMemory(into, state, points, now) {
  const charts = [];
  state.spaces.forEach((level, k) => {
    const series = stack(state, points, k);
    const total = points.map((_, j) => series.reduce((t, s) => t + s.of[j], 0));
    const most = Math.max(...total, 0);
    if (k > 0 && most === 0 && !level.limit) return;
    charts.push(memoryChart(into, state, points, now, level, k, series, total, most));
  });
  into.replaceChildren(...charts);
}

function memoryChart(into, state, points, now, level, k, series, total, most) {
  const width = Math.max(into.clientWidth, 260), height = width < 500 ? 200 : 250;
  const limitShown = level.limit > 0 && (most === 0 || level.limit < 4 * most);
  const max = Math.max(most * 1.08, limitShown ? level.limit * 1.06 : 0, 1024);
  const dom = domain(points, now);
  const f = frame(width, height, max, dom, `memory in ${level.space} by stage over time`, true);
  const shown = points.map((p, j) => j).filter((j) => points[j].at_ns >= dom.from);
  const xs = shown.map((j) => f.x(points[j].at_ns));
  let below = shown.map(() => 0);
  for (const s of series) {
    const above = shown.map((j, n) => below[n] + s.of[j]);
    if (xs.length > 1 && s.of.some((v) => v > 0)) {
      const d = line(xs, above.map(f.y)) + line([...xs].reverse(), [...below].reverse().map(f.y)).replace("M", "L") + "Z";
      f.root.append(svg("path", { class: "f-" + s.ink, d }));
    }
    below = above;
  }
  if (level.limit > 0 && xs.length > 1) {
    f.root.append(svg("path", { class: "reserved", d: line(xs, shown.map((j) => f.y(Math.min(points[j].spaces[k]?.reserved || 0, max)))) }));
  }
  if (limitShown) {
    f.root.append(svg("line", { class: "limit", x1: LEFT, x2: LEFT + f.w, y1: f.y(level.limit), y2: f.y(level.limit) }));
    f.root.append(svg("text", { class: "limit-text", x: LEFT + 6, y: f.y(level.limit) + 14 }, "budget " + bytes(level.limit)));
  }
  const at = point(f, points, shown, level.space, dom);
  const value = (s) => (points.length ? s.of[at.index] : 0);
  const legend = el("ul", { class: "legend" }, ...series.map((s) =>
    el("li", {}, el("i", { class: "b-" + s.ink }), s.name, el("b", {}, bytes(value(s))))));
  const budget = level.limit ? ` of ${bytes(level.limit)}${limitShown ? "" : " (above the chart)"}, ${bytes(level.reserved)} reserved (dotted)` : "";
  const base = level.base ? `; beside it ${bytes(level.base)} that were there before` : "";
  return el("div", { class: "chart", "data-space": level.space },
    el("p", { class: "chart-title" }, el("b", {}, level.space),
      el("span", {}, (at.moved ? `at ${clock(points[at.index].at_ns)}: ` : "") + bytes(points.length ? total[at.index] : 0) + budget + base)),
    f.root, legend);
}

// point is the point under the pointer, or the last.
function point(f, points, shown, name, dom) {
  f.root.addEventListener("pointermove", (e) => {
    const r = f.root.getBoundingClientRect();
    const vb = f.root.viewBox.baseVal;
    cursors.set(name, ((e.clientX - r.left) / r.width * vb.width - LEFT) / f.w);
  });
  f.root.addEventListener("pointerleave", () => cursors.delete(name));
  const share = cursors.get(name);
  if (share === undefined || share < 0 || share > 1 || shown.length === 0) return { index: points.length - 1, moved: false };
  const t = dom.from + share * dom.span;
  let index = shown[0];
  for (const j of shown) if (Math.abs(points[j].at_ns - t) < Math.abs(points[index].at_ns - t)) index = j;
  const x = f.x(points[index].at_ns);
  f.root.append(svg("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: TOP + f.h }));
  return { index, moved: true };
}

// drawSpeed shows items a second, each point over the window before it: long
// enough for some items to leave in it.
export function drawSpeed(into, state, points, now) {
  const width = Math.max(into.clientWidth, 260), height = width < 500 ? 190 : 250;
  const dom = domain(points, now);
  const window = Math.min(Math.max(state.rate > 0 ? 8e9 / state.rate : 15e9, 2e9), 30e9);
  const ys = [];
  let i = 0;
  points.forEach((p, j) => {
    while (points[i].at_ns < p.at_ns - window && i < j) i++;
    const span = p.at_ns - points[i].at_ns;
    ys.push(span > window / 4 ? ((p.done - points[i].done) * 1e9) / span : null);
  });
  const shown = points.map((_, j) => j).filter((j) => ys[j] !== null && points[j].at_ns >= dom.from);
  const max = Math.max(...shown.map((j) => ys[j]), 0) * 1.15 || 1;
  const f = frame(width, height, max, dom, "items a second over time", false);
  if (shown.length > 1) {
    const xs = shown.map((j) => f.x(points[j].at_ns));
    const d = line(xs, shown.map((j) => f.y(ys[j])));
    f.root.append(svg("path", { class: "rate-area", d: `${d}L${xs.at(-1).toFixed(1)} ${f.y(0)}L${xs[0].toFixed(1)} ${f.y(0)}Z` }));
    f.root.append(svg("path", { class: "rate", d }));
  }
  into.replaceChildren(
    el("p", { class: "chart-title" }, el("b", {}, rate(state.rate).join(" ")), el("span", {}, `items, mean over ${clock(window)}`)), f.root);
}
