// The interactive chart: choice of axes, values under the pointer, zoom. Text enters the page
// through textContent only.
(function () {
  "use strict";

  const chart = JSON.parse(document.getElementById("report-data").textContent).chart;
  const box = document.getElementById("chart");
  if (!box || !chart || !chart.runs || typeof uPlot !== "function") return;

  const labels = [...new Set(chart.runs.map((run) => run.label))];
  const hidden = new Set();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const state = { x: chart.x, y: chart.y, logX: false, logY: !chart.linear.includes(chart.y) };
  let plot = null;

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const color = (run) => style(`--c${run.color}`);

  function make(name, parent, properties) {
    const element = Object.assign(document.createElement(name), properties || {});
    if (parent) parent.append(element);
    return element;
  }

  function number(value) {
    if (value === null || value === undefined) return "\u2013";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e9)) {
      return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
    }
    return value.toLocaleString("en", { maximumSignificantDigits: size >= 1e4 ? 9 : 5 });
  }

  function tick(value) {
    if (value === null) return "";
    if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) {
      return value.toExponential(6).replace(/\.?0+e/, "e").replace("e+", "e");
    }
    return value.toLocaleString("en", { maximumSignificantDigits: 6 });
  }

  // A logarithmic axis shows positive numbers only; others are gaps in the curve.
  function table(run) {
    const x = [], y = [];
    run.columns[state.x].forEach((place, k) => {
      const value = run.columns[state.y][k];
      if (place === null || (state.logX && place <= 0)) return;
      x.push(place);
      y.push(value === null || (state.logY && value <= 0) ? null : value);
    });
    return [x, y];
  }

  // The nearest evaluation of each run: runs are evaluated at different positions.
  function nearest(u, series, index, value) {
    const x = u.data[0], y = u.data[series];
    if (y[index] !== null && y[index] !== undefined) return index;
    let left = index, right = index;
    while (left >= 0 && (y[left] === null || y[left] === undefined)) left--;
    while (right < y.length && (y[right] === null || y[right] === undefined)) right++;
    if (left < 0) return right < y.length ? right : null;
    if (right >= y.length) return left;
    return value - x[left] < x[right] - value ? left : right;
  }

  function drawTolerance(u) {
    if (chart.tol === null || state.y !== chart.tolAxis) return;
    const y = Math.round(u.valToPos(chart.tol, "y", true));
    const { left, top, width, height } = u.bbox;
    if (!(y >= top && y <= top + height)) return;
    const ratio = uPlot.pxRatio;
    u.ctx.save();
    u.ctx.strokeStyle = style("--quiet");
    u.ctx.lineWidth = ratio;
    u.ctx.setLineDash([2 * ratio, 3 * ratio]);
    u.ctx.beginPath();
    u.ctx.moveTo(left, y);
    u.ctx.lineTo(left + width, y);
    u.ctx.stroke();
    u.ctx.restore();
  }

  const shortLabel = (run) => (run.theory ? run.label.split(",")[0] : run.label);

  // Where the curve of a label ends in the part of the chart that is shown, in pixels.
  function endOf(u, label) {
    const series = 1 + chart.runs.findIndex((run) => run.label === label);
    const inside = (value, key) => value >= u.scales[key].min && value <= u.scales[key].max;
    for (let k = u.data[0].length - 1; k >= 0; k--) {
      const x = u.data[0][k], y = u.data[series][k];
      if (y !== null && y !== undefined && inside(x, "x") && inside(y, "y")) {
        const run = chart.runs[series - 1];
        return { text: shortLabel(run), color: run.color, x: u.valToPos(x, "x"), y: u.valToPos(y, "y") };
      }
    }
    return null;
  }

  // Labels right of the ends of their curves, moved up until none covers another one.
  function drawLabels(u) {
    u.over.querySelectorAll(".label-at-curve").forEach((each) => each.remove());
    const wanted = labels.filter((label) => !hidden.has(label)).map((label) => endOf(u, label));
    const ends = wanted.filter((each) => each !== null).sort((a, b) => b.y - a.y);
    const width = u.over.clientWidth, placed = [];
    const level = chart.tol === null || state.y !== chart.tolAxis ? NaN : u.valToPos(chart.tol, "y");
    if (level >= 0 && level <= u.over.clientHeight) {
      // A curve that ends just below the line of tol has its label below the line's.
      for (const end of ends) {
        if (end.y > level && level + 23 < u.over.clientHeight) end.y = Math.max(end.y, level + 15);
      }
      ends.unshift({ text: `tol ${number(chart.tol)}`, color: "t", x: width, y: level });
    }
    for (const end of ends) {
      const element = make("span", u.over, { textContent: end.text });
      element.className = `label-at-curve c${end.color}`;
      element.style.maxWidth = `${Math.max(room(), 0.3 * width)}px`;
      const size = element.offsetWidth, x = Math.min(end.x + 7, width + room() - size);
      let y = Math.min(end.y, u.over.clientHeight - 8);
      for (const other of placed) {
        const meets = x < other.x + other.size && other.x < x + size;
        if (meets && Math.abs(other.y - y) < 15) y = other.y - 15;
      }
      placed.push({ x, y, size });
      placed.sort((a, b) => b.y - a.y);
      element.style.left = `${x}px`;
      element.style.top = `${y - 8}px`;
    }
  }

  // Pixels right of the plot, for labels.
  function room() {
    const longest = Math.max(8, ...chart.runs.map((run) => shortLabel(run).length));
    return Math.min(7 * longest + 12, 0.28 * box.clientWidth);
  }

  function options(length) {
    const ink = () => style("--quiet");
    const line = { stroke: () => style("--line"), width: 1 };
    const decades = (u, splits) => {
      const found = splits.map((v) => (v && Number.isInteger(Math.log10(v)) ? v : null));
      return found.filter((v) => v !== null).length < 2 ? splits : found;
    };
    const lines = (log) => (log ? { ...line, filter: decades } : line);
    const axis = { stroke: ink, font: "12px system-ui, sans-serif",
      labelFont: "13px system-ui, sans-serif", values: (u, splits) => splits.map(tick) };
    const narrow = box.clientWidth < 520;
    return {
      width: box.clientWidth || 600,
      height: narrow ? 320 : 420,
      legend: { show: false },
      padding: [12, room(), 0, 0],
      focus: { alpha: 0.35 },
      cursor: { dataIdx: nearest, drag: { x: true, y: true, uni: 30 }, focus: { prox: 24 } },
      scales: {
        x: { time: false, distr: state.logX ? 3 : 1 },
        y: { distr: state.logY ? 3 : 1 },
      },
      axes: [
        { ...axis, label: chart.xAxes[state.x], space: 70, grid: lines(state.logX),
          ticks: lines(state.logX) },
        { ...axis, label: narrow ? undefined : chart.yAxes[state.y].split(",")[0], size: 66,
          grid: lines(state.logY), ticks: lines(state.logY) },
      ],
      series: [{}, ...chart.runs.map((run) => ({
        label: run.label,
        show: !hidden.has(run.label),
        stroke: color(run),
        width: run.width,
        dash: run.dash,
        points: { show: !run.theory && length <= 80, size: 6, fill: color(run) },
      }))],
      hooks: { draw: [drawTolerance, drawLabels], setCursor: [readOut] },
    };
  }

  function draw() {
    if (plot) plot.destroy();
    const joined = uPlot.join(chart.runs.map(table));
    const longest = Math.max(...chart.runs.map((run) => run.columns.iteration.length));
    plot = new uPlot(options(longest), joined, holder);
    holder.setAttribute("aria-label", `${chart.yAxes[state.y]} against ${chart.xAxes[state.x]}`);
    box.dataset.x = state.x;
    box.dataset.y = state.y;
    readOut(plot);
  }

  // Of several seeds the values of the first are shown; the others have the same style.
  function readOut(u) {
    const index = u.cursor.idx;
    place.textContent = index === null || index === undefined
      ? "point at the chart to read values"
      : `${chart.xAxes[state.x].split(",")[0]}: ${number(u.data[0][index])}`;
    labels.forEach((label, k) => {
      const series = 1 + chart.runs.findIndex((run) => run.label === label);
      const at = u.cursor.idxs ? u.cursor.idxs[series] : null;
      outputs[k].textContent = at === null || at === undefined ? "" : number(u.data[series][at]);
    });
  }

  function select(title, axes, chosen, id, change) {
    const label = make("label", controls, { textContent: title });
    const element = make("select", label, { id });
    for (const [key, text] of Object.entries(axes)) {
      const short = text.split(",")[0];
      make("option", element, { value: key, textContent: short, selected: key === chosen });
    }
    element.addEventListener("change", () => change(element.value));
    return element;
  }

  function check(title, chosen, id, change) {
    const label = make("label", controls, { className: "check" });
    const element = make("input", label, { type: "checkbox", checked: chosen, id });
    label.append(title);
    element.addEventListener("change", () => change(element.checked));
    return element;
  }

  function swatch(run) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const line = document.createElementNS(space, "line");
    const attributes = { x1: 0, x2: 26, y1: 4, y2: 4, "stroke-width": run.width || 2,
      "stroke-dasharray": run.dash.join(" ") || "none" };
    for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);
    svg.setAttribute("viewBox", "0 0 26 8");
    svg.setAttribute("aria-hidden", "true");
    svg.append(line);
    const paint = () => line.setAttribute("stroke", color(run));
    dark.addEventListener("change", paint);
    paint();
    return svg;
  }

  function legendItem(label) {
    const run = chart.runs.find((each) => each.label === label);
    const item = make("li", legend);
    const button = make("button", item, { type: "button", title: "show or hide" });
    button.setAttribute("aria-pressed", "true");
    button.append(swatch(run), label);
    const output = make("output", button);
    button.addEventListener("click", () => {
      const show = hidden.delete(label) || !hidden.add(label);
      button.setAttribute("aria-pressed", String(show));
      chart.runs.forEach((each, k) => {
        if (each.label === label) plot.setSeries(k + 1, { show });
      });
    });
    return output;
  }

  const controls = make("div", box, { className: "controls" });
  const holder = make("div", box);
  holder.setAttribute("role", "img");
  const legend = make("ul", box, { className: "readout" });
  const outputs = labels.map(legendItem);
  const place = make("li", legend, { className: "place" });
  select("vertical", chart.yAxes, state.y, "axis-y", (value) => {
    state.y = value;
    state.logY = scaleY.checked = !chart.linear.includes(value);
    draw();
  });
  select("horizontal", chart.xAxes, state.x, "axis-x", (value) => {
    state.x = value;
    draw();
  });
  const scaleY = check("log vertical", state.logY, "log-y", (on) => {
    state.logY = on;
    draw();
  });
  check("log horizontal", state.logX, "log-x", (on) => {
    state.logX = on;
    draw();
  });
  const whole = make("button", controls, { type: "button", id: "zoom-out", textContent: "See all" });
  whole.addEventListener("click", draw);

  box.hidden = false;
  document.documentElement.classList.add("js");
  draw();
  new ResizeObserver(() => {
    if (Math.abs(box.clientWidth - plot.width) > 1 && box.clientWidth > 0) {
      plot.setSize({ width: box.clientWidth, height: plot.height });
    }
  }).observe(box);
  dark.addEventListener("change", draw);
})();
