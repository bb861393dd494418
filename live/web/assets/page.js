// The page of a run: takes what the server sends and draws the newest of it, once
// a frame of the screen at most, so that nothing piles up.
import { drawGraph } from "./graph.js";
import { drawMemory, drawSpeed } from "./charts.js";
import { drawDevices, drawEvents, drawFailures, drawItems, drawNotes, drawStages } from "./tables.js";
import { bytes, clock, el, rate } from "./text.js";

const KEEP = 720;
const id = (name) => document.getElementById(name);

let state = null; // the newest
let points = []; // of the history
let next = 0; // number of the point after the last
let asked = false;
let link = "connecting";

// take merges what is new: points that are known already come again when the
// whole was asked for in between.
function take(msg, whole) {
  if (whole) {
    points = [];
    next = msg.first;
  }
  msg.new.forEach((p, i) => {
    if (msg.first + i >= next) {
      points.push(p);
      next = msg.first + i + 1;
    }
  });
  if (points.length > KEEP) points = points.slice(points.length - KEEP);
  state = msg;
  want();
}

function want() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    draw();
  });
}

function phase() {
  if (link === "lost") return ["lost", "connection lost"];
  if (!state) return ["", "connecting"];
  if (state.phase === "ended") return state.error ? ["failed", "ended early"] : ["ended", "ended"];
  if (state.closed) return ["ended", "ended"];
  return state.phase === "running" ? ["running", "running"] : ["", "preparing"];
}

function banner() {
  const b = id("banner");
  let text = "";
  if (link === "lost") text = "The program does not answer; this is the last state that it sent. The page tries again.";
  else if (state?.phase === "ended" || state?.closed) {
    text = state.began.startsWith("0001") ? "The run has ended before it began." : `The run has ended after ${clock(state.wall_ns)}; this is its last state.`;
  }
  if (state?.error) text += " " + state.error;
  b.textContent = text;
  b.hidden = text === "";
  b.className = link === "lost" || state?.error ? "bad" : "";
}

// draw draws everything, and then marks the page with what it shows.
function draw() {
  drawState();
  if (!state) return;
  document.documentElement.dataset.heard = state.heard;
  document.documentElement.dataset.phase = link === "lost" ? "lost" : state.closed ? "ended" : state.phase;
}

function drawState() {
  const [cls, text] = phase();
  if (id("phase").textContent !== text) id("phase").textContent = text;
  id("phase").className = "pill " + cls;
  banner();
  if (!state) return;
  const n = state.failed + state.done;
  if (state.graph) id("graph-name").textContent = state.graph;
  document.title = `${state.total ? Math.floor((n / state.total) * 100) + "% " : ""}${state.graph || "snarkline"}`;
  id("done-meter").hidden = !state.total;
  id("done-fill").style.width = (state.total ? (state.done / state.total) * 100 : 0) + "%";
  id("failed-fill").style.width = (state.total ? (state.failed / state.total) * 100 : 0) + "%";
  const tile = (name, big, small) => id(name).replaceChildren(String(big), el("small", {}, small ? " " + small : ""));
  tile("t-done", state.done, (state.total ? `of ${state.total}` : "") + (state.failed ? `, ${state.failed} failed` : ""));
  tile("t-rate", ...rate(state.rate));
  tile("t-wall", clock(state.wall_ns), "");
  tile("t-eta", state.phase === "ended" ? "–" : state.eta_ns < 0 ? "?" : clock(state.eta_ns), "");
  tile("t-flight", state.in_flight, `peak ${state.peak_in_flight}`);
  const host = state.spaces[0];
  tile("t-memory", bytes(Math.max(host.live - host.base, 0)), (host.limit ? `of ${bytes(host.limit)}, ` : "") + `peak ${bytes(Math.max(host.peak - host.base, 0))}`);
  if (!state.stages) return;
  drawGraph(id("graph"), state);
  const now = state.wall_ns;
  drawMemory(id("memory"), state, points, now);
  drawSpeed(id("speed"), state, points, now);
  drawStages(id("stages"), state);
  id("s-devices").hidden = !state.devices?.length;
  if (state.devices?.length) drawDevices(id("devices"), state);
  drawItems(id("items"), state);
  id("items-count").textContent = state.in_flight > state.items.length ? `the oldest ${state.items.length} of ${state.in_flight}` : "";
  drawEvents(id("events"), state);
  id("s-failures").hidden = state.failures.length === 0;
  id("failures-count").textContent = state.failed > state.failures.length ? `the last ${state.failures.length} of ${state.failed}` : "";
  drawFailures(id("failures"), state);
  id("s-notes").hidden = state.notes.length === 0;
  drawNotes(id("notes"), state);

}

const source = new EventSource("events");
source.addEventListener("open", () => {
  link = "open";
  want();
});
source.addEventListener("error", () => {
  link = "lost";
  want();
});
const hear = (whole) => (e) => {
  link = "open";
  take(JSON.parse(e.data), whole);
  if (state.closed) source.close(); // nothing more comes
};
source.addEventListener("whole", hear(true));
source.addEventListener("state", hear(false));
new ResizeObserver(() => state && want()).observe(document.body);
