"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const svgNS = "http://www.w3.org/2000/svg";

  // Texts, as the Go code writes them.
  const digits = v => { const a = Math.abs(v); return a >= 99.95 ? v.toFixed(0) : a >= 9.995 ? String(+v.toFixed(1)) : String(+v.toFixed(2)); };
  function span(s) {
    if (s <= 0) return "0 s";
    if (s < 999.5e-6) return digits(s * 1e6) + " µs";
    if (s < 999.5e-3) return digits(s * 1e3) + " ms";
    if (s < 120) return digits(s) + " s";
    if (s < 7200) { const t = Math.round(s), m = Math.floor(t / 60); return m + " min " + (t - 60 * m) + " s"; }
    const m = Math.round(s / 60); return Math.floor(m / 60) + " h " + m % 60 + " min";
  }
  function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let u = 0;
    while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
    return (u && n < 10 ? n.toFixed(1) : n.toFixed(0)) + " " + units[u];
  }
  const unitText = { bytes: bytes, count: v => String(+v.toFixed(2)), time: span, rate: digits };

  // The tip is filled with text alone: a title, lines, and rows with a colour.
  function show(e, title, lines, rows) {
    tip.textContent = "";
    const b = document.createElement("b");
    b.textContent = title;
    tip.append(b);
    for (const l of lines || []) { const d = document.createElement("div"); d.textContent = l; tip.append(d); }
    for (const r of rows || []) {
      const d = document.createElement("div"), k = document.createElementNS(svgNS, "svg"), q = document.createElementNS(svgNS, "rect");
      d.className = "row";
      k.setAttribute("class", "key"); k.setAttribute("viewBox", "0 0 10 10");
      q.setAttribute("class", "f-" + r[0]); q.setAttribute("width", 10); q.setAttribute("height", 10);
      k.append(q);
      const n = document.createElement("span"), v = document.createElement("span");
      n.textContent = r[1]; v.textContent = r[2];
      d.append(k, n, v);
      tip.append(d);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), w = document.documentElement.clientWidth, h = window.innerHeight;
    let x = e.clientX + 14, y = e.clientY + 14;
    if (x + box.width > w - 8) x = e.clientX - box.width - 14;
    if (y + box.height > h - 8) y = e.clientY - box.height - 14;
    tip.style.left = Math.max(8, Math.min(x, w - box.width - 8)) + "px";
    tip.style.top = Math.max(8, y) + "px";
  }
  function hide() { tip.hidden = true; for (const c of document.querySelectorAll(".cursor")) c.remove(); }
  addEventListener("scroll", hide, { passive: true });
  addEventListener("keydown", e => { if (e.key === "Escape") hide(); });

  // last is the index of the last value of a rising list that is at most v.
  function last(list, v) {
    let lo = 0, hi = list.length - 1;
    while (lo < hi) { const m = (lo + hi + 1) >> 1; if (list[m] <= v) lo = m; else hi = m - 1; }
    return lo;
  }

  function both(el, fn) {
    el.addEventListener("pointermove", fn);
    el.addEventListener("pointerdown", fn);
    el.addEventListener("pointerleave", e => { if (e.pointerType === "mouse") hide(); });
  }

  // Charts over time.
  for (const box of document.querySelectorAll("[data-chart]")) {
    const c = data.charts && data.charts[box.dataset.chart];
    if (!c || !c.x || !c.rows || !c.rows.length) continue;
    for (const svg of box.querySelectorAll("svg.plot")) both(svg, e => {
      const r = svg.getBoundingClientRect(), vb = svg.viewBox.baseVal, d = svg.dataset;
      const x = (e.clientX - r.left) / r.width * vb.width;
      const at = (x - d.x0) / (d.x1 - d.x0);
      hide();
      if (at < 0 || at > 1) return;
      const i = last(c.x, at * c.end), rows = [];
      let sum = 0;
      for (let k = c.rows.length - 1; k >= 0; k--) {
        const v = c.rows[k][i];
        sum += v;
        if (v > 0) rows.push([c.inks[k], c.names[k], unitText[c.unit](v)]);
      }
      const line = document.createElementNS(svgNS, "line");
      for (const [n, v] of [["class", "cursor"], ["x1", x], ["x2", x], ["y1", d.y0], ["y2", d.y1]]) line.setAttribute(n, v);
      svg.append(line);
      show(e, span(at * c.end) + ": " + unitText[c.unit](sum), [], rows.length > 1 || sum > 0 ? rows : []);
    });
  }

  // Whatever carries its words with it.
  for (const el of document.querySelectorAll("[data-tip]")) both(el, e => {
    const lines = el.dataset.tip.split("\n");
    show(e, lines[0], lines.slice(1));
  });

  // Points and fields of a sweep.
  for (const el of document.querySelectorAll("[data-row]")) {
    const text = data.rows && data.rows[el.dataset.row];
    if (text) both(el, e => { const l = text.split("\n"); show(e, l[0], l.slice(1)); });
  }

  // Lanes of workers.
  const lanes = document.querySelector("svg.lanes"), t = data.timeline;
  if (lanes && t) {
    const axis = document.querySelector("svg.axis"), same = lanes.querySelector(".same");
    let from = 0, to = t.scale;
    const cellAt = e => {
      const r = lanes.getBoundingClientRect();
      const x = from + (e.clientX - r.left) / r.width * (to - from), y = (e.clientY - r.top) / r.height * t.h;
      const slack = 3 / r.width * (to - from);
      let best = null;
      for (const l of t.lanes) {
        if (Math.abs(l.y - y) > 9 || best && Math.abs(best.l.y - y) <= Math.abs(l.y - y)) continue;
        for (let i = 0; i < l.c.length; i += 5) {
          const wait = l.c[i] < -1 ? 0 : l.c[i + 3];
          if (x >= l.c[i + 1] - slack && x <= l.c[i + 1] + l.c[i + 2] + wait + slack) {
            best = { l: l, i: i };
            if (x >= l.c[i + 1]) continue; // a later one that begins here is nearer
            break;
          }
        }
      }
      return best;
    };
    const sec = v => v / t.scale * t.wall;
    const mark = item => {
      let d = "";
      if (item >= 0) for (const l of t.lanes) for (let i = 0; i < l.c.length; i += 5)
        if (l.c[i] === item) d += "M" + l.c[i + 1] + " " + (l.y + 6) + "h" + Math.max(l.c[i + 2], (to - from) / 500);
      same.setAttribute("d", d);
    };
    let dragged = null;
    lanes.addEventListener("pointermove", e => {
      if (dragged && e.buttons) {
        const r = lanes.getBoundingClientRect(), by = (dragged.x - e.clientX) / r.width * (to - from);
        view(dragged.from + by, dragged.to + by);
        return hide();
      }
      tell(e);
    });
    lanes.addEventListener("pointerdown", e => {
      dragged = e.pointerType === "mouse" && to - from < t.scale ? { x: e.clientX, from: from, to: to } : null;
      tell(e);
    });
    addEventListener("pointerup", () => { dragged = null; });
    lanes.addEventListener("pointerleave", e => { if (e.pointerType === "mouse") { hide(); mark(-1); } });
    function tell(e) {
      const hit = cellAt(e);
      if (!hit) { hide(); mark(-1); return; }
      const [item, begin, work, wait, bad] = hit.l.c.slice(hit.i, hit.i + 5);
      const where = t.nodes[hit.l.n] + ", worker " + (hit.l.w + 1);
      if (item < -1) {
        mark(-1);
        show(e, -item + " calls", [where, span(sec(begin)) + " to " + span(sec(begin + work)), Math.round(100 * wait / Math.max(1, work)) + "% of it at work"]);
        return;
      }
      const lines = [where, "from " + span(sec(begin)) + " to " + span(sec(begin + work)) + ", " + span(sec(work)) + " at work"];
      if (wait > 0) lines.push("then " + span(sec(wait)) + " until there was room for its output");
      if (bad) lines.push("failed");
      mark(item);
      show(e, t.items[item] === undefined ? "an item that is not known" : t.items[item], lines);
    }
    function step(rough) {
      if (rough > 10) for (const s of [15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]) if (s >= rough) return s;
      const base = Math.pow(10, Math.floor(Math.log10(rough)));
      for (const m of [1, 2, 5]) if (m * base >= rough * (1 - 1e-9)) return m * base;
      return 10 * base;
    }
    function view(a, b) {
      const w = Math.max(t.scale / 20000, Math.min(t.scale, b - a));
      from = Math.max(0, Math.min(t.scale - w, a));
      to = from + w;
      lanes.setAttribute("viewBox", from + " 0 " + w + " " + t.h);
      axis.textContent = "";
      const s = step(sec(w) / Math.max(2, axis.getBoundingClientRect().width / 110));
      if (!(s > 0)) return;
      for (let i = Math.ceil(sec(from) / s - 1e-9); i * s <= sec(to) * (1 + 1e-9); i++) {
        const at = (i * s - sec(from)) / sec(w), el = document.createElementNS(svgNS, "text");
        el.setAttribute("x", 100 * at + "%"); el.setAttribute("y", 14);
        if (at < 0.04) el.setAttribute("text-anchor", "start");
        if (at > 0.94) el.setAttribute("text-anchor", "end");
        el.textContent = i ? tick(i * s, s) : "0";
        axis.append(el);
      }
    }
    function tick(v, s) {
      if (s >= 3600) return digits(v / 3600) + " h";
      if (s >= 15 && v >= 60) { const r = Math.round(v); return Math.floor(r / 60) + ":" + String(r % 60).padStart(2, "0") + " min"; }
      const places = s >= 1 ? 0 : Math.ceil(-Math.log10(s) - 1e-9);
      if (places <= 2) return v.toFixed(places) + " s";
      if (places <= 5) return (v * 1e3).toFixed(places - 3) + " ms";
      return (v * 1e6).toFixed(places - 6) + " µs";
    }
    const zoom = (f, mid) => { mark(-1); hide(); const m = mid === undefined ? (from + to) / 2 : mid; view(m - (m - from) * f, m + (to - m) * f); };
    for (const b of document.querySelectorAll("[data-zoom]")) b.addEventListener("click", () => {
      if (b.dataset.zoom === "all") view(0, t.scale); else zoom(b.dataset.zoom === "in" ? 0.5 : 2);
    });
    lanes.addEventListener("dblclick", e => {
      const r = lanes.getBoundingClientRect();
      zoom(0.33, from + (e.clientX - r.left) / r.width * (to - from));
    });
    addEventListener("resize", () => view(from, to));
    view(0, t.scale);
  }

  // Tables that sort by a column.
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = table.tHead.rows[0].cells;
    for (const h of heads) {
      h.tabIndex = 0;
      const sort = () => {
        const up = h.getAttribute("aria-sort") === "descending" || !h.hasAttribute("aria-sort") && !h.classList.contains("n");
        for (const o of heads) o.removeAttribute("aria-sort");
        h.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = r => { const c = r.cells[h.cellIndex]; return c.dataset.v === undefined ? c.textContent : +c.dataset.v; };
        const rows = Array.from(table.tBodies[0].rows);
        rows.sort((a, b) => { const x = key(a), y = key(b), s = typeof x === "number" ? x - y : x.localeCompare(y, undefined, { numeric: true }); return up ? s : -s; });
        table.tBodies[0].append(...rows);
      };
      h.addEventListener("click", sort);
      h.addEventListener("keydown", e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); sort(); } });
    }
  }
})();
