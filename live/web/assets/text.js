// Numbers as a reader likes them, and elements with text in them. Nothing that
// came over the wire is ever read as HTML.

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(n) {
  let u = 0;
  while (Math.abs(n) >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return (u === 0 || Math.abs(n) >= 100 ? n.toFixed(0) : n.toFixed(1)) + " " + units[u];
}

// duration of nanoseconds.
export function duration(ns) {
  const s = ns / 1e9;
  if (s <= 0) return "0 s";
  if (s < 1e-3) return (s * 1e6).toFixed(0) + " µs";
  if (s < 1) return (s * 1e3).toFixed(s < 0.01 ? 1 : 0) + " ms";
  if (s < 60) return s.toFixed(1) + " s";
  return clock(ns);
}

// clock is whole seconds, minutes and hours.
export function clock(ns, fine) {
  if (fine && ns < 60e9 && Math.round(ns / 1e8) % 10 !== 0) return (ns / 1e9).toFixed(1) + " s";
  const s = Math.max(Math.round(ns / 1e9), 0);
  const two = (n) => String(n).padStart(2, "0");
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + ":" + two(s % 60) + " min";
  return Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + " h";
}

export function rate(r) {
  if (!(r > 0)) return ["0", "/s"];
  if (r >= 100) return [r.toFixed(0), "/s"];
  if (r >= 1) return [r.toFixed(1), "/s"];
  if (r * 60 >= 1) return [(r * 60).toFixed(1), "/min"];
  return [(r * 3600).toFixed(1), "/h"];
}

export const percent = (x) => Math.round(x * 100) + "%";

// amount is the sum of bytes by space.
export const amount = (a) => Object.values(a || {}).reduce((x, y) => x + y, 0);

// el makes an element of HTML: attributes, then children (strings become text).
export function el(name, attrs, ...children) {
  const e = document.createElement(name);
  return fill(e, attrs, children);
}

// svg makes an element of SVG.
export function svg(name, attrs, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attrs, children);
}

function fill(e, attrs, children) {
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v);
  }
  for (const c of children) if (c !== null && c !== undefined) e.append(c);
  return e;
}

// hue is the end of a stage's colour classes.
export const hue = (stage) => (stage.hue >= 0 ? "c" + stage.hue : "other");
