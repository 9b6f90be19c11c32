// Follows a running test: an event a second, two graphs, three tables. Everything that comes is put
// in as text.
"use strict";
(() => {
  const SECONDS_MAX = 3600;
  const WIDTH = 600, HEIGHT = 200, LEFT = 62, BOTTOM = 18, TOP = 8;
  const main = document.getElementById("live");
  if (!main) return;
  const seconds = [];
  const by = (id) => document.getElementById(id);

  const svg = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const rate = (value) => `${Math.round(value).toLocaleString("en")}/s`;
  const time = (value) => {
    if (value === null || value === undefined) return "–";
    const [factor, unit] = value < 1e-3 ? [1e6, "µs"] : value < 1 ? [1e3, "ms"] : [1, "s"];
    return `${(value * factor).toPrecision(3)} ${unit}`;
  };

  // the next of 1, 2, 5 times a power of ten
  const roundUp = (value) => {
    const decade = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
    return [1, 2, 5, 10].map((step) => step * decade).find((step) => step >= value) || 1;
  };

  const graph = (id, names, word, logarithmic) => {
    const at = by(id);
    if (!at || seconds.length === 0) return;
    const values = seconds.flatMap((s) => names.map((n) => s[n])).filter((v) => v !== null && v > 0);
    let low = 0, high = roundUp(Math.max(1, ...values)), ticks;
    if (logarithmic) {
      low = values.length ? Math.floor(Math.log10(Math.min(...values))) : -3;
      high = values.length ? Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)))) : 0;
      ticks = Array.from({ length: high - low + 1 }, (_, i) => low + i);
    } else {
      ticks = [0, high / 2, high];
    }
    const from = seconds[0].at - 1, to = Math.max(seconds[seconds.length - 1].at, from + 10);
    const x = (s) => LEFT + ((s - from) / (to - from)) * (WIDTH - LEFT - 6);
    const y = (v) => HEIGHT - BOTTOM - ((v - low) / (high - low)) * (HEIGHT - BOTTOM - TOP);
    const parts = [];
    for (const tick of ticks) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 6, y1: y(tick), y2: y(tick) }));
      const text = logarithmic ? time(10 ** tick) : word(tick);
      parts.push(svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, text));
    }
    for (const [anchor, second] of [["start", from], ["end", to]]) {
      const place = { x: x(second), y: HEIGHT - 4, "text-anchor": anchor };
      parts.push(svg("text", place, `${Math.round(second)} s`));
    }
    names.forEach((name, n) => {
      const known = seconds.filter((s) => s[name] !== null && (!logarithmic || s[name] > 0));
      const points = known.map((s) => {
        const value = logarithmic ? Math.log10(s[name]) : s[name];
        return `${x(s.at).toFixed(1)},${y(value).toFixed(1)}`;
      });
      parts.push(svg("polyline", { class: `line${n}`, points: points.join(" ") }));
      by(`${id}${n}`).textContent = word(seconds[seconds.length - 1][name]);
    });
    at.replaceChildren(...parts);
  };

  const rows = (id, table, more) => {
    const at = by(id);
    if (!at || !table) return;
    const made = table.map((cells) => {
      const row = document.createElement("tr");
      cells.forEach((cell) => { row.appendChild(document.createElement("td")).textContent = cell; });
      return row;
    });
    if (more) at.append(...made); else at.replaceChildren(...made);
  };

  const source = new EventSource(main.dataset.events);
  source.addEventListener("news", (event) => {
    const news = JSON.parse(event.data);
    seconds.push(...(news.seconds || []));
    seconds.splice(0, Math.max(0, seconds.length - SECONDS_MAX));
    graph("rates", ["due", "done"], rate, false);
    graph("times", ["p50", "p90", "p99"], time, true);
    rows("facts", news.facts);
    rows("failures", news.failures && news.failures.length ? news.failures : [["none", "", ""]]);
    rows("steps", news.steps, true);
    if (by("calls")) by("calls").hidden = !(news.urls && news.urls.length);
    rows("urls", news.urls);
    if (by("fleet")) by("fleet").hidden = !news.agents;
    rows("agents", news.agents);
    by("progress").textContent = news.progress;
    by("progress").className = `state ${news.progress}`;
    by("verdict").textContent = news.verdict ? `${news.verdict} so far` : "";
    by("causes").textContent = (news.causes || []).join("; ");
    if (news.progress !== "running") {
      source.close();
      location.replace(main.dataset.result);
    }
  });
  source.addEventListener("trouble", (event) => { by("causes").textContent = event.data; });
})();
