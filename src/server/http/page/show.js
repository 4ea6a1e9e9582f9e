// Verdicts as tables with bars, dialogues as curves. Every colour has its number beside it.

const DIMENSIONS = ["task_framing", "interpersonal_stance", "linguistic_style"];
const LABELS = ["aligned", "indeterminate", "contradictory"];
const SVG = "http://www.w3.org/2000/svg";

const words = (name) => name.replaceAll("_", " ");
const number = (value) => value.toFixed(3);

/** An element with attributes and children; text becomes text, never markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** What went wrong, for people. */
export function errorText(status, answer) {
  const error = answer.error ?? {};
  const fields = (error.fields ?? []).map(({ field, description }) => `${field}: ${description}`);
  const wait = error.retry_after_ms ? `\nTry again in ${error.retry_after_ms} ms.` : "";
  const message = fields.length > 0 ? fields.join("\n") : (error.message ?? `HTTP ${status}`);
  return message + wait;
}

/** One article for each reply, best first. */
export function verdicts(answer, replies) {
  const results = answer.results.slice();
  results.sort((a, b) => (b.verdict?.s_prism ?? -1) - (a.verdict?.s_prism ?? -1));
  return results.map((result) => {
    const title = `Reply ${result.index + 1}`;
    const text = make("blockquote", {}, replies[result.index]);
    if (!result.verdict) {
      const why = result.error.field === "" ? result.error.message : `${result.error.field}: ${result.error.message}`;
      return make("article", {}, make("h3", {}, title), text, make("p", {}, `Not judged: ${why}`));
    }
    const s = make("span", {}, `S_PRISM ${number(result.verdict.s_prism)}`);
    return make("article", {}, make("h3", {}, title, s), text, table(result.verdict, title));
  });
}

function table(verdict, title) {
  const weakest = verdict.weakest_dimension.replace("DIMENSION_", "").toLowerCase();
  const keys = LABELS.map((label) => make("th", { scope: "col" }, make("span", { class: `key ${label}`, "aria-hidden": "true" }), label));
  const rows = DIMENSIONS.map((dimension) => {
    const found = verdict.dimensions[dimension];
    const parts = LABELS.map((label) => {
      const part = make("i", { class: label });
      part.style.width = `${100 * found[label]}%`;
      return part;
    });
    return make(
      "tr",
      dimension === weakest ? { class: "weakest" } : {},
      make("th", { scope: "row" }, words(dimension)),
      ...LABELS.map((label) => make("td", {}, number(found[label]))),
      make("td", { class: "bar", "aria-hidden": "true" }, make("div", { class: "stack" }, ...parts)),
    );
  });
  const head = make("tr", {}, make("th", { scope: "col" }, "dimension"), ...keys, make("td"));
  return make("table", { "aria-label": `Posterior of ${title}` }, make("thead", {}, head), make("tbody", {}, ...rows));
}

/** A curve for S_PRISM and each dimension, and the same as a table. */
export function drift(answer, turns) {
  const judged = answer.results.filter((result) => result.verdict);
  const failed = answer.results.filter((result) => !result.verdict);
  const values = {
    s_prism: judged.map(({ verdict }) => verdict.s_prism),
    ...Object.fromEntries(
      DIMENSIONS.map((dimension) => [dimension, judged.map(({ verdict }) => verdict.dimensions[dimension].evidence)]),
    ),
  };
  const at = judged.map(({ turn }) => turn + 1);
  const blocks = [];
  if (judged.length > 0) blocks.push(curves(values, at), numbers(values, at, judged, turns), summary(answer.drift));
  for (const { turn, error } of failed) blocks.push(make("p", {}, `Turn ${turn + 1} was not judged: ${error.message}`));
  return blocks;
}

function curves(values, at) {
  const [width, height, left, right, top, bottom] = [640, 280, 40, 32, 12, 32];
  const x = (index) => left + (at.length === 1 ? 0.5 : index / (at.length - 1)) * (width - left - right);
  const y = (value) => top + (1 - value) * (height - top - bottom);
  const chart = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Evidence at each judged turn; the numbers are in the table below" });
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    chart.append(
      draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)),
    );
  }
  const every = Math.ceil(at.length / 16);
  at.forEach((turn, index) => {
    if (index % every === 0) chart.append(draw("text", { x: x(index), y: height - 10, "text-anchor": "middle" }, `turn ${turn}`));
  });
  for (const [name, series] of Object.entries(values)) {
    chart.append(draw("polyline", { class: `curve ${name}`, points: series.map((value, index) => `${x(index)},${y(value)}`).join(" ") }));
    series.forEach((value, index) => chart.append(draw("circle", { class: name, cx: x(index), cy: y(value), r: 2.5 })));
  }
  const keys = Object.keys(values).map((name) =>
    make("span", {}, make("span", { class: `key ${name}`, "aria-hidden": "true" }), name === "s_prism" ? "S_PRISM" : words(name)),
  );
  return make("figure", {}, chart, make("figcaption", {}, ...keys));
}

function numbers(values, at, judged, turns) {
  const names = Object.keys(values);
  const head = ["turn", ...names.map((name) => (name === "s_prism" ? "S_PRISM" : words(name)))];
  const rows = at.map((turn, index) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", title: turns[judged[index].turn].text }, String(turn)),
      ...names.map((name) => make("td", {}, number(values[name][index]))),
    ),
  );
  const cells = head.map((text) => make("th", { scope: "col" }, text));
  return make("table", { "aria-label": "Evidence at each judged turn" }, make("thead", {}, make("tr", {}, ...cells)), make("tbody", {}, ...rows));
}

function summary(found) {
  const { mean, change, lowest, lowest_turn: turn } = found.s_prism;
  const sign = change < 0 ? "−" : "+";
  return make(
    "p",
    {},
    `S_PRISM: mean ${number(mean)}, ${sign}${number(Math.abs(change))} from first to last, lowest ${number(lowest)} at turn ${turn + 1}.`,
  );
}
