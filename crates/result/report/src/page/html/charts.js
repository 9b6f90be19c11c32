// The charts with a cursor and with zoom. The drawings in the page stay for paper.
(() => {
  "use strict";
  const charts = new Map(JSON.parse(document.getElementById("data").textContent)
    .map(chart => [chart.id, chart]));
  const dashes = { none: [], long: [7, 4], short: [2, 4] };
  const borders = { none: "solid", long: "dashed", short: "dotted" };
  const quantiles = [0, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999];
  const height = 205, font = "12px system-ui, sans-serif", labelApart = 58;
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  // the colours of the style sheet are six hexadecimal digits
  const faint = (name, part) => color(name) + Math.round(part * 255).toString(16).padStart(2, "0");

  // 1, 2 or 5 times a power of ten, so that 3 to 7 steps make the span
  const roundStep = span => {
    const rough = span / 5, decade = 10 ** Math.floor(Math.log10(rough));
    return ([1, 2, 5].find(step => step * decade >= rough * 0.999) ?? 10) * decade;
  };
  // 1, 2 and 5 of every decade
  const marks = (low, high) => {
    const all = [];
    for (let d = Math.floor(Math.log10(low)); d <= Math.ceil(Math.log10(high)); d += 1) {
      all.push(10 ** d, 2 * 10 ** d, 5 * 10 ** d);
    }
    return all.filter(mark => mark >= low * 0.999999 && mark <= high * 1.000001);
  };
  const ticks = (log, low, high) => {
    if (!log) {
      const step = roundStep(high - low), all = [];
      for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) all.push(n * step);
      return all;
    }
    const all = marks(low, high);
    return all.length <= 8 ? all : all.filter(mark => Math.abs(Math.log10(mark) % 1) < 1e-6);
  };
  // what is drawn beside the lines: hollow points, and intervals as far as they are drawn
  const beside = (chart, high) => chart.lines.flatMap(line => [
    ...line.hollow, ...(line.high ?? []).map(end => end === null ? null : Math.min(end, high * chart.bandMax)),
  ]).filter(value => value !== null);
  // parts of a whole that are not hidden, from the bottom up
  const parts = (u, chart) => chart.lines.filter((line, n) => u.series[n + 1].show);
  const highest = (u, chart) => {
    const low = u.scales.x.min ?? chart.x.low, high = u.scales.x.max ?? chart.x.high;
    const sums = chart.at.map((at, i) => at < low || at > high ? 0
      : parts(u, chart).reduce((sum, line) => sum + (line.values[i] ?? 0), 0));
    return Math.max(...sums);
  };
  const verticalEnds = (u, chart, low, high) => {
    if (chart.stack) high = highest(u, chart);
    if (chart.cells) {
      const used = chart.cells.columns.flatMap(column => column.filter((_, n) => n % 2 === 0));
      return [chart.cells.ends[Math.min(...used)], chart.cells.ends[Math.max(...used) + 1]];
    }
    const other = beside(chart, high ?? 0);
    if (!chart.log) {
      const top = Math.max(high ?? 0, chart.top, ...other) || 1, step = roundStep(top);
      return [0, Math.ceil(top / step - 1e-9) * step];
    }
    const all = (low === null ? other : [low, high, ...other]).filter(value => value > 0);
    if (all.length === 0) return [0.001, 0.01];
    const least = Math.min(...all), most = Math.max(...all);
    const from = marks(least / 10, least).at(-1) ?? least, to = marks(most, most * 10)[0] ?? most;
    return [from, to > from ? to : from * 2];
  };

  const clipped = (u, draw) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(ctx, value => u.valToPos(value, "x", true), value => u.valToPos(value, "y", true));
    ctx.restore();
  };
  const drawRanges = (u, chart) => clipped(u, (ctx, x) => {
    const { top, height: tall } = u.bbox;
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    for (const range of chart.ranges) {
      const low = x(range.low ?? chart.x.low), high = x(range.high ?? chart.x.high);
      ctx.fillStyle = faint(range.tone, 0.12);
      ctx.fillRect(low, top, Math.max(high - low, 1), tall);
      if (chart.under && ctx.measureText(range.name).width + 8 * devicePixelRatio < high - low) {
        ctx.fillStyle = color("soft");
        ctx.textAlign = "left";
        ctx.fillText(range.name, low + 4 * devicePixelRatio, top + 14 * devicePixelRatio);
      }
      if (range.at === null) continue;
      ctx.fillStyle = color(range.tone);
      ctx.fillRect(x(range.at) - devicePixelRatio * 0.7, top, devicePixelRatio * 1.4, tall);
    }
  });
  const drawBands = (u, chart) => clipped(u, (ctx, x, y) => {
    chart.lines.forEach((line, n) => {
      if (!line.low || !u.series[n + 1].show) return;
      const there = chart.at.map((_, i) => i).filter(i => line.low[i] !== null && line.high[i] !== null);
      ctx.beginPath();
      there.forEach(i => ctx.lineTo(x(chart.at[i]), y(line.low[i])));
      there.reverse().forEach(i => ctx.lineTo(x(chart.at[i]), y(line.high[i])));
      ctx.fillStyle = faint(line.tone, 0.2);
      ctx.fill();
    });
  });
  const drawHollow = (u, chart) => clipped(u, (ctx, x, y) => {
    chart.lines.forEach((line, n) => {
      if (!u.series[n + 1].show) return;
      line.hollow.forEach((value, i) => {
        if (value === null) return;
        ctx.beginPath();
        ctx.setLineDash([]);
        ctx.arc(x(chart.at[i]), y(value), 3.4 * devicePixelRatio, 0, 2 * Math.PI);
        ctx.fillStyle = color("page");
        ctx.strokeStyle = color(line.tone);
        ctx.lineWidth = 1.6 * devicePixelRatio;
        ctx.fill();
        ctx.stroke();
      });
    });
  });
  // neighbors must not part where their common edge lies between two pixels
  const edge = place => Math.round(place + 0.02);
  const shade = (cells, count) => {
    const part = Math.log(count + 1) / Math.log(cells.most + 1);
    return Math.min(cells.shades, Math.max(1, Math.ceil(part * cells.shades)));
  };
  const drawCells = (u, chart) => clipped(u, (ctx, x, y) => {
    const { cells, at } = chart, half = cells.width / 2;
    const colors = Array.from({ length: cells.shades }, (_, n) => color(`h${n + 1}`));
    const edges = cells.ends.map(end => Math.round(y(end)));
    cells.columns.forEach((column, i) => {
      const [left, right] = [edge(x(at[i] - half)), edge(x(at[i] + half))];
      for (let n = 0; n < column.length; n += 2) {
        const [top, bottom] = [edges[column[n] + 1], edges[column[n]]];
        ctx.fillStyle = colors[shade(cells, column[n + 1]) - 1];
        ctx.fillRect(left, top, Math.max(1, right - left), Math.max(1, bottom - top));
      }
    });
  });
  // a part that is there is seen, however small it is
  const drawStack = (u, chart) => clipped(u, (ctx, x, y) => {
    const half = chart.stack / 2, shown = parts(u, chart);
    chart.at.forEach((at, i) => {
      const [left, right] = [edge(x(at - half)), edge(x(at + half))];
      let sum = 0, floor = y(0);
      for (const line of shown) {
        const value = line.values[i] ?? 0;
        if (value <= 0) continue;
        sum += value;
        const top = Math.min(Math.round(y(sum)), floor - 1);
        ctx.fillStyle = color(line.tone);
        ctx.fillRect(left, top, Math.max(1, right - left), floor - top);
        floor = top;
      }
    });
  });
  // what the cell under the pointer holds
  const cellText = (u, chart, index) => {
    if (index === null || u.cursor.top < 0) return "–";
    const time = u.posToVal(u.cursor.top, "y"), { ends, columns } = chart.cells;
    const of = ends.findIndex((end, n) => end < time && time <= ends[n + 1]);
    const place = columns[index].findIndex((value, n) => n % 2 === 0 && value === of);
    const count = place < 0 ? 0 : columns[index][place + 1];
    const calls = `${show.count(count)} call${count === 1 ? "" : "s"}`;
    return of < 0 ? "–" : `${calls} of ${show.duration(ends[of])} to ${show.duration(ends[of + 1])}`;
  };

  // the range under the pointer
  const rangeText = (chart, index) => {
    if (index === null) return "–";
    const at = chart.at[index], found = chart.ranges.find(range => range.low <= at && at <= range.high);
    return found ? found.name : "–";
  };

  // a single point without a mark would be invisible
  const dotted = line => line.dots === "joined" || line.dots === "alone"
    || line.values.filter(value => value !== null).length === 1;
  const seriesOf = (chart, line) => ({
    label: line.name,
    stroke: color(line.tone),
    width: line.thin ? 1.2 : 2,
    paths: line.dots === "alone" || chart.stack ? () => null : undefined,
    dash: dashes[line.dash],
    fill: line.area ? faint(line.tone, 0.13) : undefined,
    spanGaps: line.dots !== "none",
    points: { show: dotted(line), size: 7, fill: color(line.tone) },
    value: (u, value) => value === null || value === undefined ? "–" : show.value[chart.y](value),
  });
  const axesOf = chart => [
    {
      stroke: color("soft"), font, size: 34, grid: { show: false }, filter: (u, all) => all,
      ticks: { stroke: color("soft"), width: 1, size: 5 }, border: { show: true, stroke: color("soft"), width: 1 },
      splits: (u, axis, low, high) => chart.x.unit === "quantile"
        ? quantiles.map(q => -Math.log10(1 - q)).filter(nines => nines >= low && nines <= high)
        : ticks(chart.x.log, low, high),
      values: (u, all) => {
        let last = -labelApart;
        return all.map(value => {
          const at = u.valToPos(value, "x");
          if (at - last < labelApart) return "";
          last = at;
          return show.tick[chart.x.unit](value);
        });
      },
    },
    {
      stroke: color("soft"), font, size: 64, grid: { stroke: color("line"), width: 1 },
      ticks: { show: false }, filter: (u, all) => all,
      splits: (u, axis, low, high) => ticks(chart.log, low, high),
      values: (u, all) => all.map(show.tick[chart.y]),
    },
  ];
  const whole = (chart, { min, max }) =>
    Math.abs(min - chart.x.low) + Math.abs(max - chart.x.high) < 1e-9 * (1 + Math.abs(chart.x.high));

  const optionsOf = (chart, width, zoomed) => ({
    width, height,
    padding: [10, 26, 0, 0],
    cursor: {
      drag: { x: true, y: false, dist: 5 },
      y: Boolean(chart.cells),
      points: { size: 8 },
      sync: chart.x.unit === "time" ? { key: "time", scales: ["x", null], setSeries: false } : undefined,
    },
    legend: { markers: { width: 2, dash: (u, n) => borders[chart.lines[n - 1]?.dash ?? "none"] } },
    scales: {
      x: {
        time: false, distr: chart.x.log ? 3 : 1,
        range: (u, low, high) => low === chart.at[0] && high === chart.at.at(-1)
          ? [chart.x.low, chart.x.high] : [low, high],
      },
      y: { distr: chart.log ? 3 : 1, range: (u, low, high) => verticalEnds(u, chart, low, high) },
    },
    axes: axesOf(chart),
    series: [
      { label: chart.x.name, value: (u, value) => value === null ? "–" : show.value[chart.x.unit](value) },
      ...chart.lines.map(line => seriesOf(chart, line)),
      ...(chart.cells ? [{
        label: "cell", class: "of-cursor", stroke: "transparent", width: 0, points: { show: false },
        value: (u, value, series, index) => cellText(u, chart, index),
      }] : []),
      ...(chart.under ? [{
        label: chart.under, class: "of-cursor", stroke: "transparent", width: 0, points: { show: false },
        value: (u, value, series, index) => rangeText(chart, index),
      }] : []),
    ],
    hooks: {
      // without a pointer the key has names only
      setCursor: [u => u.root.parentNode?.classList.toggle("idle", u.cursor.idx == null || u.cursor.left < 0)],
      drawAxes: [u => {
        drawRanges(u, chart);
        if (chart.cells) drawCells(u, chart);
        if (chart.stack) drawStack(u, chart);
        drawBands(u, chart);
      }],
      draw: [u => drawHollow(u, chart)],
      setScale: [(u, key) => {
        if (key !== "x") return;
        zoomed(!whole(chart, u.scales.x));
        // the parts in sight are known only now
        if (chart.stack) queueMicrotask(() => u.setScale("y", { min: null, max: null }));
      }],
    },
  });

  // one figure of the page: its plot is made when it is first laid out and not folded away
  const bring = (figure, chart) => {
    const holder = document.createElement("div"), button = document.createElement("button");
    holder.className = "plot idle";
    Object.assign(button, { type: "button", className: "whole", textContent: "Whole range", hidden: true });
    figure.querySelector("figcaption").append(button);
    figure.append(holder);
    let plot;
    const data = [chart.at, ...chart.lines.map(line => line.values)];
    if (chart.cells) data.push(chart.at.map(() => chart.cells.ends[1]));
    if (chart.under) data.push(chart.at.map(() => null));
    const size = () => {
      const width = Math.floor(holder.clientWidth);
      if (width === 0 || figure.closest("details:not([open])")) return;
      if (plot) plot.setSize({ width, height });
      else {
        plot = new uPlot(optionsOf(chart, width, zoomed => { button.hidden = !zoomed; }), data, holder);
        figure.classList.add("live");
      }
    };
    const rebuild = () => {
      if (!plot) return;
      plot.destroy();
      plot = undefined;
      size();
    };
    const unzoom = () => plot?.setScale("x", { min: chart.at[0], max: chart.at.at(-1) });
    new ResizeObserver(size).observe(figure);
    figure.closest("details")?.addEventListener("toggle", size);
    size();
    return { rebuild, unzoom, button, time: chart.x.unit === "time" };
  };

  const shown = [...document.querySelectorAll("figure[data-chart]")]
    .map(figure => bring(figure, charts.get(figure.dataset.chart)));
  for (const one of shown) {
    one.button.addEventListener("click", () =>
      shown.filter(other => other === one || (one.time && other.time)).forEach(other => other.unzoom()));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    shown.forEach(one => one.rebuild()));
  document.documentElement.classList.add("scripted");
})();
