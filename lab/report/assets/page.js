// Draws the page's charts with uPlot and notes on each how many of its lines are really there: the page's test reads
// `data-lines` and `data-drawn`.
(() => {
  "use strict";
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = i => () => css(`--c${i}`);
  const plots = [];

  const short = v => v == null ? "–"
    : v >= 1e6 ? (v / 1e6).toPrecision(3) + "M"
    : v >= 1e3 ? (v / 1e3).toPrecision(3) + "k"
    : v.toPrecision(3);
  const tick = v => v >= 1e6 ? +(v / 1e6).toFixed(2) + "M" : v >= 1e3 ? +(v / 1e3).toFixed(2) + "k" : String(+v.toFixed(3));
  const time = us => us == null ? "–"
    : us >= 1e6 ? +(us / 1e6).toPrecision(3) + " s"
    : us >= 1e3 ? +(us / 1e3).toPrecision(3) + " ms"
    : +us.toPrecision(3) + " us";

  // Percentiles spread so that 90, 99 and 99.9 are equally far apart.
  const nines = p => -Math.log10(1 - p / 100);
  const percent = x => +(100 * (1 - 10 ** -x)).toFixed(4) + " %";
  const NINES = [50, 90, 99, 99.9, 99.99, 99.999, 99.9999];

  // One line a power of ten.
  const decades = u => {
    const { min, max } = u.scales.y;
    const splits = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) splits.push(10 ** e);
    return splits;
  };

  const axis = extra => ({
    stroke: () => css("--soft"), font: "12px system-ui, sans-serif",
    grid: { stroke: () => css("--grid"), width: 1 }, ticks: { show: false }, ...extra,
  });

  function options(chart, element) {
    const latency = chart.kind === "latency";
    return {
      width: element.clientWidth, height: 260,
      padding: [10, 30, 0, 0],
      cursor: { points: { size: 7 }, drag: { x: true, y: false } },
      legend: { live: true },
      scales: {
        x: { time: false },
        y: latency ? { distr: 3, log: 10 } : { range: (u, min, max) => [0, max > 0 ? max * 1.06 : 1] },
      },
      series: [
        { label: latency ? "percentile" : "time", value: (u, v) => v == null ? "" : latency ? percent(v) : +v.toFixed(2) + " s" },
        ...chart.series.map(s => ({
          label: s.label, stroke: colour(s.colour), width: 1.75, points: { show: false },
          // Engines have points at different times.
          spanGaps: !latency,
          value: (u, v) => latency ? time(v) : short(v),
        })),
      ],
      axes: [
        axis(latency
          ? { splits: u => NINES.map(nines).filter(x => x >= u.scales.x.min && x <= u.scales.x.max), values: (u, xs) => xs.map(percent), space: 10, size: 30 }
          : { values: (u, xs) => xs.map(x => +x.toFixed(2) + " s"), size: 30 }),
        axis(latency
          ? { size: 62, splits: decades, values: (u, ys) => ys.map(time) }
          : { size: 62, values: (u, ys) => ys.map(tick) }),
      ],
      hooks: { draw: [u => note(u, chart, element)] },
    };
  }

  // Counts the lines whose colour is on the canvas. Done at the first drawing only.
  function note(u, chart, element) {
    if (element.dataset.lines) return;
    const { left, top, width, height } = u.bbox;
    // A line at zero lies half below the plotting area.
    const pixels = u.ctx.getImageData(left, top, width, height + 4).data;
    const probe = document.createElement("canvas").getContext("2d");
    let drawn = 0;
    for (const series of chart.series) {
      probe.fillStyle = css(`--c${series.colour}`);
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
      for (let i = 0; i < pixels.length; i += 4) {
        if (pixels[i + 3] > 200 && Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < 24) {
          drawn++;
          break;
        }
      }
    }
    element.dataset.lines = chart.series.length;
    element.dataset.drawn = drawn;
  }

  for (const chart of JSON.parse(document.getElementById("charts").textContent)) {
    const element = document.getElementById(chart.id);
    if (!element) continue;
    const x = chart.kind === "latency" ? chart.x.map(nines) : chart.x;
    const plot = new uPlot(options(chart, element), [x, ...chart.series.map(s => s.y)], element);
    plots.push(plot);
    new ResizeObserver(() => {
      if (element.clientWidth && element.clientWidth !== plot.width) plot.setSize({ width: element.clientWidth, height: 260 });
    }).observe(element);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(p => p.redraw()));
})();
