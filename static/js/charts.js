// Charts by Chart.js, whose numbers stand in a table beside each as well.

// Told apart by everybody: blue and orange as Okabe and Ito chose them, bars
// that are empty and full, lines that are whole and broken.
const LIGHT = {
  start: "#0072b2",
  finish: "#d55e00",
  rate: "#14242b",
  pace: "#4a5c65",
  ink: "#14242b",
  grid: "#d3dce0",
  ground: "#ffffff",
};
const DARK = {
  start: "#56b4e9",
  finish: "#e69f00",
  rate: "#e9eff1",
  pace: "#aebcc3",
  ink: "#e9eff1",
  grid: "#34444c",
  ground: "#19242a",
};
const PER_PLACE = 26;
const PRINTED_WIDTH = 660;

const kinds = { curve: curveOf, places: placesOf };
let charts = [];
let printing = false;

function palette() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return dark && !printing ? DARK : LIGHT;
}

export function drawCharts() {
  for (const chart of charts) {
    chart.destroy();
  }
  charts = [];
  if (!window.Chart) {
    return;
  }
  for (const canvas of document.querySelectorAll("canvas[data-chart]")) {
    const source = document.getElementById(canvas.dataset.source);
    const data = JSON.parse(source.textContent);
    if (canvas.dataset.chart === "places") {
      canvas.parentElement.style.blockSize = `${90 + PER_PLACE * data.labels.length}px`;
    }
    charts.push(new window.Chart(canvas, kinds[canvas.dataset.chart](data, palette())));
  }
}

// Nothing moves: the page is drawn anew each minute.
const STILL = { animation: false, responsive: true, maintainAspectRatio: false };

function legendOf(colours) {
  return {
    position: "bottom",
    labels: { color: colours.ink, usePointStyle: true, boxWidth: 28, generateLabels: labelsOf },
  };
}

// Chart.js itself shows every line whole.
function labelsOf(chart) {
  const labels = window.Chart.defaults.plugins.legend.labels.generateLabels(chart);
  return labels.map((label) => ({
    ...label,
    lineDash: chart.data.datasets[label.datasetIndex].borderDash ?? [],
  }));
}

function axisOf(colours, title, more) {
  return {
    beginAtZero: true,
    ticks: { color: colours.ink, precision: 0, ...more?.ticks },
    grid: { color: colours.grid, ...more?.grid },
    border: { color: colours.grid },
    title: { display: Boolean(title), text: title, color: colours.ink },
    ...more?.axis,
  };
}

function curveOf(data, colours) {
  const ofRate = { axis: { position: "right", max: 100 }, grid: { drawOnChartArea: false } };
  const datasets = [
    barsOf("Starts", data.started, colours.start, colours.ground),
    barsOf("Finishes", data.finished, colours.finish, colours.finish),
    lineOf("Rate so far (%)", data.rate, colours.rate, []),
  ];
  if (data.pace.some((one) => one !== null)) {
    datasets.push(lineOf("Pace needed (%)", data.pace, colours.pace, [6, 5]));
  }
  return {
    data: { labels: data.labels, datasets },
    options: {
      ...STILL,
      interaction: { mode: "index", intersect: false },
      plugins: { legend: legendOf(colours) },
      scales: {
        x: axisOf(colours, "", {
          ticks: { maxRotation: 60, autoSkipPadding: 10 },
          grid: { display: false },
        }),
        y: axisOf(colours, "People", {}),
        rate: axisOf(colours, "Rate (%)", ofRate),
      },
    },
  };
}

function barsOf(label, data, colour, inside) {
  return {
    type: "bar",
    label,
    data,
    borderColor: colour,
    backgroundColor: inside,
    borderWidth: 1.5,
    pointStyle: "rect",
    order: 2,
  };
}

function lineOf(label, data, colour, dashes) {
  return {
    type: "line",
    label,
    data,
    yAxisID: "rate",
    borderColor: colour,
    backgroundColor: colour,
    borderDash: dashes,
    borderWidth: 2,
    pointRadius: dashes.length ? 0 : 2,
    pointStyle: "line",
    order: 1,
  };
}

function placesOf(data, colours) {
  const finished = barsOf("Finished (%)", data.finished, colours.finish, colours.finish);
  const started = barsOf(
    "Started, not finished (%)", data.started, colours.start, colours.ground,
  );
  const threshold = {
    ...lineOf("Threshold (%)", data.threshold, colours.rate, []),
    yAxisID: undefined,
    showLine: false,
    stack: "threshold",
    pointStyle: "line",
    rotation: 90,
    pointRotation: 90,
    pointRadius: 9,
    pointBorderWidth: 3,
  };
  return {
    data: {
      labels: data.labels,
      datasets: [
        { ...finished, stack: "people" },
        { ...started, stack: "people" },
        threshold,
      ],
    },
    options: {
      ...STILL,
      indexAxis: "y",
      plugins: { legend: legendOf(colours) },
      scales: {
        x: axisOf(colours, "Percent of who is invited", { axis: { max: 100, stacked: true } }),
        y: axisOf(colours, "", {
          axis: { stacked: true },
          ticks: { autoSkip: false },
          grid: { display: false },
        }),
      },
    },
  };
}

// On paper: dark on white, and as wide as the paper.
export function drawForPaper(isPaper) {
  printing = isPaper;
  drawCharts();
  for (const chart of charts) {
    if (isPaper) {
      chart.resize(PRINTED_WIDTH, chart.canvas.parentElement.clientHeight);
    } else {
      chart.resize();
    }
  }
}
