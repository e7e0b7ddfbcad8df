// Every query as a point: the cost of the change tried, and whether the decision changed.

import { s, titled, word } from "./dom.js";

const HEIGHT = 260, LEFT = 40, RIGHT = 10, TOP = 24, BOTTOM = 38;

function nice(most) {
  const rough = most / 4, ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find(m => m * ten >= rough) * ten;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

export function drawChart(svg, steps, budget) {
  const WIDTH = Math.max(svg.clientWidth, 260);
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const last = Math.max(budget, steps.length, 1);
  const ticks = nice(Math.max(...steps.map(step => step.cost), 1));
  const most = ticks[ticks.length - 1];
  const x = n => LEFT + ((n - 0.5) / last) * (WIDTH - LEFT - RIGHT); // the row itself is the first query
  const y = cost => TOP + (1 - cost / most) * (HEIGHT - TOP - BOTTOM);
  const every = Math.max(Math.ceil(last / 6 / 5) * 5, 1);
  const marks = [1, ...Array.from({ length: Math.floor(last / every) }, (_, i) => (i + 1) * every)].filter(n => n === 1 || n > every / 2);
  let line = "";
  for (const step of steps) {
    if (step.best === null) continue;
    line += line ? `H${x(step.position + 1).toFixed(1)}V${y(step.best).toFixed(1)}` : `M${x(step.position + 1).toFixed(1)} ${y(step.best).toFixed(1)}`;
  }
  svg.replaceChildren(
    ...ticks.map(tick => s("g", {}, s("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }),
      s("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, String(Number(tick.toPrecision(3)))))),
    ...marks.map(n => s("text", { x: x(n), y: HEIGHT - 20, "text-anchor": "middle" }, n)),
    s("text", { x: WIDTH - RIGHT, y: HEIGHT - 3, "text-anchor": "end" }, "query number"),
    s("text", { x: 0, y: 11 }, "cost of the change, in standard deviations (sd)"),
    ...(line ? [s("path", { class: "best", d: line })] : []),
    ...steps.map(step => step.counts
      ? s("circle", { class: "hit", cx: x(step.position + 1), cy: y(step.cost), r: 4.5 }, s("title", {}, title(step)))
      : step.hit
        ? s("circle", { class: "half", cx: x(step.position + 1), cy: y(step.cost), r: 4 }, s("title", {}, title(step)))
        : s("path", { class: "miss", d: cross(x(step.position + 1), y(step.cost)) }, s("title", {}, title(step)))));
}

const cross = (x, y) => `M${x - 3.5} ${y - 3.5}l7 7M${x + 3.5} ${y - 3.5}l-7 7`;
const title = step => `Query ${step.position + 1}: ${step.label}; ${step.changes.map(([name, , after]) => `${titled(name)} ${word(after)}`).join(", ") || "the row as it is"}`;

export const newChart = () => s("svg", { class: "chart", role: "img", "aria-label": "Cost of the change tried, query by query; the table below has the same" });
