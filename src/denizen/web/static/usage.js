// The charts of the usage page. The tables below them say the same without a script.

const charts = document.getElementById("charts");

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// `line` is a second series, drawn as a line: a limit, or another count.
function draw(id, title, xs, ys, { isTime = true, format = (value) => value.toLocaleString(), line = null } = {}) {
  const place = document.getElementById(id);
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
  const options = {
    width: place.clientWidth,
    height: 190,
    scales: { x: { time: isTime }, y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1] } },
    axes: [axis, { ...axis, size: 60, values: (_, ticks) => ticks.map(format) }],
    series: [
      { value: (_, at) => (at == null ? "" : isTime ? new Date(at * 1000).toISOString().slice(0, 10) : `${at}:00`) },
      {
        label: title,
        stroke: color("--accent"),
        fill: `${color("--accent")}33`,
        paths: uPlot.paths.bars({ size: [0.7, 40] }),
        points: { show: false },
        value: (_, value) => (value == null ? "" : format(value)),
      },
    ],
  };
  if (line) {
    options.series.push({
      label: line.title,
      stroke: color("--bad"),
      dash: line.isLimit ? [6, 4] : [],
      points: { show: !line.isLimit },
      value: (_, value) => (value == null ? "" : format(value)),
    });
  }
  const chart = new uPlot({ ...options, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC") }, line ? [xs, ys, line.ys] : [xs, ys], place);
  new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: 190 })).observe(place);
}

async function show() {
  const answer = await fetch(charts.dataset.url);
  if (!answer.ok) {
    charts.textContent = "The charts cannot be loaded now; the tables below say the same.";
    return;
  }
  const { daily, hourly, feedback, day_budget_usd: budget } = await answer.json();
  const days = daily.map((row) => Date.parse(`${row.key}T00:00:00Z`) / 1000);
  const dollars = (value) => `$${value.toLocaleString([], { maximumFractionDigits: 4 })}`;
  draw("chart-messages", "Messages", days, daily.map((row) => row.messages));
  draw("chart-cost", "Cost", days, daily.map((row) => Number(row.cost_usd ?? 0)), {
    format: dollars,
    line: budget == null ? null : { title: "Budget", ys: days.map(() => Number(budget)), isLimit: true },
  });
  draw("chart-tokens", "Tokens", days, daily.map((row) => row.input_tokens + row.output_tokens));
  if (feedback.length) {
    const negative = { title: "Negative", ys: feedback.map((day) => day.negative), isLimit: false };
    draw("chart-feedback", "Positive", days, feedback.map((day) => day.positive), { line: negative });
  }
  draw("chart-hours", "Messages", hourly.map((row) => Number(row.key)), hourly.map((row) => row.messages), { isTime: false });
}

if (charts) show();
