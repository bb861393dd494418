// The graph: a box a stage with how busy its workers are, and the queue before it.
import { amount, bytes, hue, svg } from "./text.js";

const H = 76, SMALL = 46;

// layout gives each node its box: layers from left to right, or from the top down
// where the page is narrow. at is the middle of a lane in a layer.
function layout(stages, width) {
  const down = width < 700;
  const layers = 1 + Math.max(...stages.map((s) => s.layer));
  const lanes = 1 + Math.ceil(Math.max(...stages.map((s) => s.lane), ...stages.flatMap((s) => s.next.flatMap((l) => l.lanes))));
  const gap = down ? 28 : 30;
  const pitch = down ? width / lanes : H + 18;
  const w = down ? Math.min(pitch - 8, 190) : (width - gap * (layers - 1)) / layers;
  const at = (layer, lane) => down
    ? [(lane + 0.5) * pitch, layer * (H + gap) + H / 2]
    : [layer * (w + gap) + w / 2, lane * pitch + H / 2];
  const boxes = stages.map((s) => {
    const h = s.kind === "stage" ? H : SMALL;
    const [x, y] = at(s.layer, s.lane);
    return { x: x - w / 2, y: y - h / 2, w, h };
  });
  const height = down ? layers * (H + gap) - gap : lanes * pitch - 18;
  return { boxes, height, down, at, w };
}

function clip(text, width, size) {
  const n = Math.floor(width / (size * 0.56));
  return text.length <= n ? text : text.slice(0, Math.max(n - 1, 1)) + "…";
}

export function drawGraph(into, state) {
  const stages = state.stages;
  if (!stages || stages.length === 0) return;
  const width = Math.max(into.clientWidth, 280);
  const { boxes, height, down, at, w } = layout(stages, width);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height + 4}`, role: "img", "aria-label": "the graph of the run" });
  stages.forEach((s, i) => s.next.forEach((l) => {
    const via = l.lanes.map((lane, k) => at(s.layer + 1 + k, lane));
    root.append(link(boxes[i], boxes[l.to], via, stages[l.to], down, w));
  }));
  stages.forEach((s, i) => root.append(box(s, boxes[i])));
  into.replaceChildren(root);
}

function full(s) {
  return s.capacity > 0 && s.queue >= s.capacity;
}

// link is a curve from box to box, straight through the layers between them.
function link(a, b, via, to, down, w) {
  const ends = [];
  if (down) {
    ends.push([a.x + a.w / 2, a.y + a.h]);
    for (const [x, y] of via) ends.push([x, y - H / 2], [x, y + H / 2]);
    ends.push([b.x + b.w / 2, b.y]);
  } else {
    ends.push([a.x + a.w, a.y + a.h / 2]);
    for (const [x, y] of via) ends.push([x - w / 2, y], [x + w / 2, y]);
    ends.push([b.x, b.y + b.h / 2]);
  }
  let d = `M${ends[0][0].toFixed(1)} ${(ends[0][1] + 2).toFixed(1)}`;
  for (let i = 1; i < ends.length; i++) {
    const [x1, y1] = ends[i - 1], [x2, y2] = ends[i];
    const [c1, c2] = down ? [[x1, (y1 + y2) / 2], [x2, (y1 + y2) / 2]] : [[(x1 + x2) / 2, y1], [(x1 + x2) / 2, y2]];
    d += "C" + [c1, c2, [x2, y2]].map(([x, y]) => `${x.toFixed(1)} ${(y + 2).toFixed(1)}`).join(" ");
  }
  return svg("path", { d, class: full(to) ? "edge full" : "edge" });
}

function box(s, b) {
  const stage = s.kind === "stage";
  const g = svg("g", { transform: `translate(${b.x.toFixed(1)} ${(b.y + 2).toFixed(1)})`, "data-stage": s.name });
  g.append(svg("title", {}, `${s.name}: ${s.running} of ${s.workers || 0} workers at it, ${s.queue} waiting, ${s.items} done`));
  g.append(svg("rect", { class: "box" + (s.running > 0 ? " on" : "") + (stage ? "" : " small"), width: b.w, height: b.h, rx: 7 }));
  if (stage) g.append(svg("rect", { class: "f-" + hue(s), x: 0, y: 8, width: 4, height: b.h - 16, rx: 2 }));
  const left = 10, inner = b.w - 18;
  g.append(svg("text", { class: "name", x: left, y: 18 }, clip(s.name, inner, 13)));
  if (!stage) {
    const what = s.kind === "join" ? `${s.queue} pending` : `${s.items} ${s.kind === "sink" ? "out" : "in"}`;
    g.append(svg("text", { class: "dim", x: left, y: 35 }, clip(what, inner, 11)));
    return g;
  }
  g.append(svg("rect", { class: "track", x: left, y: 26, width: inner, height: 5, rx: 2.5 }));
  g.append(svg("rect", { class: "f-" + hue(s), x: left, y: 26, width: Math.max(inner * s.use, 0).toFixed(1), height: 5, rx: 2.5 }));
  g.append(svg("text", { class: "dim", x: left, y: 45 }, clip(`${s.running}/${s.workers} · ${bytes(amount(s.held.now))}`, inner, 11)));
  g.append(queue(s, left, inner));
  return g;
}

// queue is a cell a place, or a bar where there are many.
function queue(s, left, inner) {
  const g = svg("g", {});
  const label = s.capacity > 0 ? `${s.queue}/${s.capacity}` : `${s.queue}`;
  const room = inner - label.length * 6.5 - 8;
  if (s.capacity > 0 && s.capacity <= 8 && room > s.capacity * 7) {
    const w = Math.min((room - (s.capacity - 1) * 2) / s.capacity, 14);
    for (let i = 0; i < s.capacity; i++) {
      g.append(svg("rect", { class: i < s.queue ? "queue" : "track", x: left + i * (w + 2), y: 55, width: w, height: 8, rx: 2 }));
    }
  } else {
    const fill = s.capacity > 0 ? s.queue / s.capacity : s.queue > 0 ? 1 - 1 / (1 + s.queue / 8) : 0;
    g.append(svg("rect", { class: "track", x: left, y: 55, width: Math.max(room, 4), height: 8, rx: 2 }));
    g.append(svg("rect", { class: "queue", x: left, y: 55, width: Math.max(room, 4) * Math.min(fill, 1), height: 8, rx: 2 }));
  }
  g.append(svg("text", { class: "dim", x: left + inner, y: 63, "text-anchor": "end" }, label));
  return g;
}
