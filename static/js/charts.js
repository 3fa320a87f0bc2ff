// The charts of the rates pages, drawn with Chart.js. Each page shows the same
// numbers as a table.

// Blue and orange of Okabe and Ito, which colour-blind people can tell apart;
// bars are also empty or filled, and lines solid or dashed.
const LIGHT = {
  start: "#0072b2",
  finish: "#d55e00",
  rate: "#14242b",
  pace: "#4a5c65",
  ink: "#14242b",
  grid: "#d3dce0",
  off: "#e6ebee",
  ground: "#ffffff",
};
const DARK = {
  start: "#56b4e9",
  finish: "#e69f00",
  rate: "#e9eff1",
  pace: "#aebcc3",
  ink: "#e9eff1",
  grid: "#34444c",
  off: "#2b3940",
  ground: "#19242a",
};
// Pixels: the height of one school or district, and the width on paper.
const PLACE_HEIGHT = 26;
const PRINTED_WIDTH = 660;
// Below this width, names of places get only as many letters.
const NARROW_WIDTH = 480;
const LETTERS_IF_NARROW = 16;

// The words of the charts, in the language of the page.
function word(name) {
  return document.getElementById("chart-words").dataset[name];
}

const configurations = { days: daysChart, hours: hoursChart, places: placesChart };
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
      canvas.parentElement.style.blockSize = `${90 + PLACE_HEIGHT * data.labels.length}px`;
    }
    charts.push(new window.Chart(canvas, configurations[canvas.dataset.chart](data, palette())));
  }
}

// Without animation, because the page is drawn again each minute.
const COMMON_OPTIONS = { animation: false, responsive: true, maintainAspectRatio: false };

function legend(colours, hasDaysOff = false) {
  const more = hasDaysOff ? [daysOffLabel(colours)] : [];
  return {
    position: "bottom",
    labels: {
      color: colours.ink,
      usePointStyle: true,
      boxWidth: 28,
      generateLabels: (chart) => [...legendLabels(chart), ...more],
    },
    onClick: toggleSeries,
  };
}

// The legend of Chart.js shows dashed lines as solid ones.
function legendLabels(chart) {
  const labels = window.Chart.defaults.plugins.legend.labels.generateLabels(chart);
  return labels.map((label) => ({
    ...label,
    lineDash: chart.data.datasets[label.datasetIndex].borderDash ?? [],
  }));
}

function daysOffLabel(colours) {
  return {
    text: word("noSchool"),
    fontColor: colours.ink,
    fillStyle: colours.off,
    strokeStyle: colours.grid,
    lineWidth: 1,
    pointStyle: "rect",
  };
}

function toggleSeries(event, label, legend) {
  // Days without school are no series.
  if (label.datasetIndex !== undefined) {
    window.Chart.defaults.plugins.legend.onClick.call(legend, event, label, legend);
  }
}

// Days without school are grey, behind the figures of both axes.
function greyDays(days, colour) {
  return {
    id: "greyDays",
    beforeDraw({ ctx, chartArea, scales }) {
      const width = scales.x.width / days.length;
      ctx.save();
      ctx.fillStyle = colour;
      days.forEach((off, day) => {
        if (off) {
          const middle = scales.x.getPixelForValue(day);
          ctx.fillRect(middle - width / 2, chartArea.top, width, chartArea.height);
        }
      });
      ctx.restore();
    },
  };
}

function axis(colours, title, more) {
  return {
    beginAtZero: true,
    ticks: { color: colours.ink, precision: 0, ...more?.ticks },
    grid: { color: colours.grid, ...more?.grid },
    border: { color: colours.grid },
    title: { display: Boolean(title), text: title, color: colours.ink },
    ...more?.axis,
  };
}

const DAY_TICKS = { ticks: { maxRotation: 60, autoSkipPadding: 10 }, grid: { display: false } };

// Between the two axes, so that the highest number of one is not printed over
// the zero of the other.
const GAP = {
  type: "linear",
  position: "left",
  stack: "figures",
  stackWeight: 0.3,
  ticks: { display: false },
  grid: { display: false },
  border: { display: false },
};

// The curve of the rate above, and the people of each day below on an axis of
// their own. Both have the same days.
function daysChart(data, colours) {
  const datasets = [];
  const scales = {
    x: axis(colours, "", DAY_TICKS),
    y: axis(colours, word("peopleADay"), { axis: { position: "left", stack: "figures", stackWeight: 2 } }),
  };
  const rates = [...data.rate, ...data.pace].filter((rate) => rate !== null);
  if (rates.length) {
    datasets.push(line(word("finishedSoFar"), data.rate, colours.rate, []));
    scales.gap = GAP;
    scales.rate = axis(colours, word("finishedSoFar"), {
      axis: { position: "left", stack: "figures", stackWeight: 3, max: roomAbove(Math.max(...rates)) },
    });
  }
  if (data.pace.some((rate) => rate !== null)) {
    datasets.push(line(word("neededByThen"), data.pace, colours.pace, [6, 5]));
  }
  return {
    data: { labels: data.labels, datasets: [...datasets, ...people(data, colours)] },
    options: {
      ...COMMON_OPTIONS,
      interaction: { mode: "index", intersect: false },
      plugins: { legend: legend(colours, data.off.includes(true)) },
      scales,
    },
    plugins: [greyDays(data.off, colours.off)],
  };
}

// The next ten above the highest rate. A small rate needs no room up to 100 %.
function roomAbove(rate) {
  const next = Math.floor(rate / 10) * 10 + 10;
  return rate > 100 ? next : Math.min(next, 100);
}

function hoursChart(data, colours) {
  return {
    data: { labels: data.labels, datasets: people(data, colours) },
    options: {
      ...COMMON_OPTIONS,
      interaction: { mode: "index", intersect: false },
      plugins: { legend: legend(colours) },
      scales: {
        x: axis(colours, "", DAY_TICKS),
        y: axis(colours, word("peopleAnHour"), {}),
      },
    },
  };
}

function people(data, colours) {
  return [
    bars(word("starts"), data.started, colours.start, colours.ground),
    bars(word("finishes"), data.finished, colours.finish, colours.finish),
  ];
}

function bars(label, data, colour, fill) {
  return {
    type: "bar",
    label,
    data,
    borderColor: colour,
    backgroundColor: fill,
    borderWidth: 1.5,
    pointStyle: "rect",
    order: 2,
  };
}

function line(label, data, colour, dashes) {
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

function placesChart(data, colours) {
  const finished = bars(word("finished"), data.finished, colours.finish, colours.finish);
  const started = bars(
    word("started"), data.started, colours.start, colours.ground,
  );
  const threshold = {
    ...line(word("threshold"), data.threshold, colours.rate, []),
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
      ...COMMON_OPTIONS,
      indexAxis: "y",
      plugins: { legend: legend(colours) },
      scales: {
        x: axis(colours, word("percent"), { axis: { max: mostPercent(data), stacked: true } }),
        y: axis(colours, "", {
          axis: { stacked: true },
          ticks: { autoSkip: false, callback: placeName },
          grid: { display: false },
        }),
      },
    },
  };
}

// Of the scale that calls it: a long name would be cut at its beginning.
function placeName(place) {
  const name = this.getLabelForValue(place);
  if (this.chart.width >= NARROW_WIDTH || name.length <= LETTERS_IF_NARROW) return name;
  return `${name.slice(0, LETTERS_IF_NARROW - 1).trim()}…`;
}

// Above 100 where more people answered than a school had counted.
function mostPercent(data) {
  const sums = data.finished.map((finished, place) => finished + data.started[place]);
  const most = Math.max(100, ...sums);
  // Two rounded shares can add up to 100.1.
  return most > 100.5 ? Math.ceil(most / 10) * 10 : 100;
}

// Draw dark on white and as wide as the paper, or again for the screen.
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
