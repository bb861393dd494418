// The tables: stages, items in flight, what happened last, failures, notes.
import { amount, bytes, duration, el, hue, percent, rate } from "./text.js";

function bar(share, cls) {
  const inner = el("span", {});
  inner.style.width = percent(Math.min(Math.max(share, 0), 1));
  return el("span", { class: "bar " + (cls || "") }, inner);
}

const columns = ["stage", "in use", "at work", "queue", "done", "a second", "mean", "waits in", "waits out", "held", "queued", "pending", "made", "peak"];

export function drawStages(table, state) {
  const head = el("thead", {}, el("tr", {}, ...columns.map((c) => el("th", { scope: "col" }, c))));
  const zero = (n, text) => (n ? text : "·");
  const size = (a) => zero(amount(a), bytes(amount(a)));
  const rows = state.stages.map((s) => {
    const worker = s.workers > 0;
    const extra = [s.failed ? `${s.failed} failed` : "", s.retries ? `${s.retries} retried` : ""].filter(Boolean).join(", ");
    const queue = s.kind === "join" ? zero(s.queue, s.queue) : s.capacity
      ? [bar(s.capacity > 0 ? s.queue / s.capacity : 0, "q"), `${s.queue}/${s.capacity > 0 ? s.capacity : "∞"}`] : ["·"];
    return el("tr", { "data-stage": s.name },
      el("td", {}, el("i", { class: "b-" + hue(s) }), s.name),
      el("td", {}, ...(worker ? [bar(s.use), percent(s.use)] : ["·"])),
      el("td", {}, worker ? `${s.running}/${s.workers}` : "·"),
      el("td", {}, ...[].concat(queue).map((x) => (x instanceof Node ? x : String(x)))),
      el("td", {}, String(s.items) + (extra ? ` (${extra})` : "")),
      el("td", {}, zero(s.rate, rate(s.rate).join(" "))),
      el("td", {}, zero(s.mean_ns, duration(s.mean_ns))),
      el("td", {}, zero(s.wait_in_ns, duration(s.wait_in_ns))),
      el("td", {}, zero(s.wait_out_ns, duration(s.wait_out_ns))),
      el("td", {}, size(s.held.now)), el("td", {}, size(s.queued.now)), el("td", {}, size(s.pending.now)),
      el("td", {}, size(s.made.now)), el("td", {}, size(s.made.peak)));
  });
  table.replaceChildren(head, el("tbody", {}, ...rows));
}

export function drawDevices(table, state) {
  const head = el("thead", {}, el("tr", {}, ...["device", "memory", "of items", "budget", "keys", "in flight", "done", "items"].map((c) => el("th", { scope: "col" }, c))));
  table.replaceChildren(head, el("tbody", {}, ...state.devices.map((d) => el("tr", { "data-device": d.name },
    el("td", {}, d.model ? `${d.name}, ${d.model}` : d.name), el("td", {}, d.memory ? bytes(d.memory) : "·"),
    el("td", {}, ...(d.limit ? [bar(d.live / d.limit), bytes(d.live)] : [bytes(d.live)])), el("td", {}, d.limit ? bytes(d.limit) : "·"),
    el("td", {}, bytes(d.kept)), el("td", {}, String(d.in_flight)), el("td", {}, String(d.done)),
    el("td", {}, d.items.join(", ") + (d.in_flight > d.items.length ? ", …" : ""))))));
}

function list(into, rows, none) {
  const top = into.scrollTop;
  into.replaceChildren(...(rows.length ? rows : [el("p", { class: "empty" }, none)]));
  into.scrollTop = top;
}

const row = (at, ...what) => el("div", { class: "row" }, el("span", { class: "at" }, duration(at)), el("span", { class: "what" }, ...what));
const who = (name) => el("span", { class: "who" }, name);
const bad = (text) => el("span", { class: "bad" }, text);

const doing = { queued: "waits for", running: "in", leaving: "leaves", pending: "at" };

export function drawItems(into, state) {
  list(into, state.items.map((it) => {
    const places = el("span", { class: "places" }, ...it.places.map((p) => {
      const s = state.stages[p.node];
      return s && el("span", {}, el("i", { class: "b-" + hue(s) }), `${doing[p.state]} ${s.name}`);
    }));
    return row(state.wall_ns - it.admitted_ns, who(it.name), it.attempt ? ` (again: ${it.attempt}) ` : " ", places);
  }), "none");
}

function told(e) {
  switch (e.kind) {
    case "admitted": return [who(e.name), " enters", e.wait_ns > 1e6 ? ` after ${duration(e.wait_ns)} at the door` : ""];
    case "left": return e.error ? [who(e.name), " ", bad("leaves: " + e.error)] : [who(e.name), " is done"];
    case "end": return [who(e.name), ` ${e.stage} `, e.error ? bad(e.error) : `${duration(e.wait_ns)}${e.bytes ? ", gives " + bytes(e.bytes) : ""}`];
    case "failed": return [who(e.name), " ", bad(`fails in ${e.stage}: ${e.error}`)];
    case "retried": return [who(e.name), ` ${e.stage} again: `, bad(e.error)];
    case "restarted": return [who(e.name), ` is made again: `, bad(e.error)];
  }
  return [who(e.name), " " + e.kind];
}

export function drawEvents(into, state) {
  list(into, state.events.map((e) => row(e.at_ns, ...told(e))), "nothing yet");
}

export function drawFailures(into, state) {
  list(into, state.failures.map((f) => row(f.at_ns, who(f.name), ` in ${f.stage}: `, bad(f.error))), "none");
}

export function drawNotes(into, state) {
  list(into, state.notes.map((n) => row(n.at_ns, n.text)), "none");
}
