// What may change: one card per feature, collapsed at first.

import { h, newId, put, s, titled, word } from "./dom.js";

const STEPS = 200; // maximum number of steps of a slider
const HARD = [[0.5, "easy"], [1, "normal"], [3, "hard"]];

export const MANY = 8; // with this many entries or more, a search field is shown

// A search field above a long list: `show` is called with the words that texts must contain.
export const finder = (words, show) => h("input", { type: "search", class: "search", placeholder: words, "aria-label": words, autocomplete: "off", oninput: event => show(event.target.value.toLowerCase().split(/\s+/)) });

export function featureCards(workspace, values, options, changed) {
  const cards = workspace.features.map(feature => [feature, card(feature, values[feature.name], options, changed)]);
  const free = workspace.features.filter(f => !f.frozen && !f.constant).map(f => f.name);
  const lock = locked => {
    options.freeze = locked ? [...new Set([...options.freeze, ...free])] : options.freeze.filter(name => !free.includes(name));
    for (const [, { refresh }] of cards) refresh();
    changed();
  };
  const find = words => {
    for (const [feature, { item }] of cards) item.hidden = !words.every(w => `${feature.title} ${feature.name}`.toLowerCase().includes(w));
    stopAt(cards.find(([, { item }]) => !item.hidden && item.querySelector(".card-buttons button:enabled"))?.[1].item ?? list);
  };
  const button = (words, locked) => h("button", { type: "button", class: "link", onclick: () => lock(locked) }, words);
  const list = h("ul", { class: "cards", onkeydown: turn, onfocusin: event => stopAt(event.target) }, cards.map(([, { item }]) => item));
  // Only one card is a tab stop; the arrow keys move between cards.
  function stopAt(target) { for (const button of list.querySelectorAll(".card-buttons button")) button.tabIndex = target.closest(".card") === button.closest(".card") ? 0 : -1; }
  function turn(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key], here = event.target.closest(".card-buttons button");
    if (!by || !here) return;
    event.preventDefault();
    const kind = here.classList.contains("lock") ? ".lock" : ".link";
    const buttons = cards.filter(([, { item }]) => !item.hidden).map(([, { item }]) => item.querySelector(`.card-buttons ${kind}:enabled`) ?? item.querySelector(".card-buttons button:enabled")).filter(button => button);
    buttons[buttons.indexOf(here) + by]?.focus();
  }
  stopAt(list.querySelector(".card-buttons button:enabled") ?? list);
  return h("div", {},
    h("div", { class: "card-tools" }, cards.length > MANY ? finder("Find a feature", find) : null, button("Lock all", true), button("Lock none", false)),
    list);
}

function card(feature, now, options, changed) {
  const { name, title: called } = feature;
  const fixed = feature.frozen || feature.constant;
  const isLocked = () => fixed || options.freeze.includes(name);
  const title = newId(), body = newId();
  const state = h("p", { class: "state" });
  const lock = h("button", {
    type: "button", class: "lock", "aria-pressed": String(isLocked()), disabled: fixed, "aria-describedby": title,
    onclick: () => {
      options.freeze = isLocked() ? options.freeze.filter(other => other !== name) : [...options.freeze, name];
      refresh();
      changed();
    },
  });
  const inside = h("div", { class: "inside", id: body, hidden: true });
  const open = h("button", {
    type: "button", class: "link", "aria-controls": body,
    onclick: () => {
      inside.hidden = !inside.hidden;
      showOpen();
      if (!inside.hidden && !inside.childElementCount) put(inside, controls());
    },
  });
  // The accessible name must contain the visible text.
  function showOpen() {
    open.textContent = inside.hidden ? "Adjust" : "Close";
    open.setAttribute("aria-expanded", String(!inside.hidden));
    open.setAttribute("aria-label", `${open.textContent} ${called}`);
  }

  function controls() {
    const limits = feature.kind === "category" ? choices(feature, now, options, update) : range(feature, now, options, update);
    return [limits, feature.ordered ? directions() : null, hardness()];
  }

  function update() { refresh(); changed(); }

  function radios(legend, choices, current, pick) {
    const group = newId();
    return h("fieldset", { class: "radios" }, h("legend", {}, legend), choices.map(([value, words]) =>
      h("label", {}, h("input", { type: "radio", name: group, checked: value === current, onchange: () => pick(value) }), words)));
  }

  function directions() {
    if (feature.direction) return h("p", { class: "soft" }, `May only ${feature.direction === "increase" ? "rise" : "fall"}; this is fixed.`);
    return radios("Which way", [["", "either way"], ["increase", "only up"], ["decrease", "only down"]],
      options.directions[name] || "", way => {
        if (way) options.directions[name] = way; else delete options.directions[name];
        update();
      });
  }

  function hardness() {
    const now = options.weights[name] ?? feature.weight;
    const weights = HARD.some(([weight]) => weight === now) ? HARD : [...HARD, [now, `counts × ${now}`]];
    return radios("How hard is it to change?", weights, now, weight => {
      if (weight === feature.weight) delete options.weights[name]; else options.weights[name] = weight;
      update();
    });
  }

  function words() {
    if (feature.frozen) return "Always stays as it is";
    if (feature.constant) return "The same in all known rows";
    if (isLocked()) return "Stays as it is";
    const parts = [];
    const limits = options.ranges[name], allowed = options.values[name];
    if (limits) parts.push(limits[0] === null ? `up to ${limits[1]}` : limits[1] === null ? `from ${limits[0]}` : `${limits[0]} to ${limits[1]}`);
    if (allowed) parts.push(allowed.length > 3 ? `${allowed.length} values` : allowed.map(value => word(value ?? "")).join(" or "));
    const way = options.directions[name] || feature.direction;
    if (way) parts.push(way === "increase" ? "only up" : "only down");
    const weight = options.weights[name] ?? feature.weight;
    if (weight !== 1) parts.push(HARD.find(([w]) => w === weight)?.[1] ?? `counts × ${weight}`);
    return parts.length ? `May change: ${parts.join(", ")}` : "May change";
  }

  function refresh() {
    const locked = isLocked();
    lock.setAttribute("aria-pressed", String(locked));
    lock.setAttribute("aria-label", locked ? `Locked: unlock ${called}` : `Lock ${called}`);
    put(lock, icon(locked), locked ? "Locked" : "Lock");
    open.disabled = locked;
    if (locked) inside.hidden = true;
    showOpen();
    item.classList.toggle("locked", locked);
    put(state, words());
  }

  const item = h("li", { class: "card" }, h("div", { class: "card-row" },
    h("div", { class: "card-head" },
      h("h3", { id: title, title: called }, called), h("span", { class: "now" }, word(now), feature.unit ? h("small", {}, ` ${feature.unit}`) : null)),
    h("div", { class: "card-line" }, state, h("span", { class: "card-buttons" }, open, lock))), inside);
  refresh();
  return { item, refresh };
}

function icon(locked) {
  return s("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true", class: "icon" },
    s("rect", { x: 2.5, y: 7, width: 11, height: 7.5, rx: 1.5, fill: "currentColor" }),
    s("path", { d: locked ? "M5 7V4.5a3 3 0 0 1 6 0V7" : "M5 7V4.5a3 3 0 0 1 5.8-1.1", fill: "none", stroke: "currentColor", "stroke-width": 1.6 }));
}

// The slider of a feature: its number of places, and the value at each. No two places have the same value, so an arrow
// key always changes it.
function scaleOf({ kind, low, high, grid, places }) {
  if (kind === "moment") {
    const last = places.length - 1;
    const behind = value => places.findIndex(text => text >= value); // dates in year-first format
    const placeOf = value => places.includes(value) ? places.indexOf(value) : isDay(low) && behind(value) >= 0 ? behind(value) : last;
    return { steps: last, valueAt: place => places[place], placeOf, isLess: (a, b) => placeOf(a) < placeOf(b), read: text => text };
  }
  const wide = high - low || 1;
  const steps = grid ? Math.max(Math.min(STEPS, Math.round(wide / grid)), 1) : STEPS;
  const snap = x => grid ? Number((Math.round(x / grid) * grid).toPrecision(12)) : Number(x.toPrecision(4));
  return {
    steps, valueAt: place => snap(low + (place / steps) * wide), isLess: (a, b) => a < b, read: Number,
    placeOf: value => Math.min(Math.max(Math.round(((value - low) / wide) * steps), 0), steps),
  };
}

const isDay = text => /^\d{4}-\d\d-\d\d$/.test(text);
const inputOf = feature => feature.kind === "number" ? { type: "number", step: feature.grid === 1 ? 1 : "any" } : { type: isDay(feature.low) ? "date" : "text" };

// A range: two sliders on one track with a histogram of the known rows, and the same values as fields.
function range(feature, now, options, changed) {
  const { name, low, high } = feature;
  const { steps, valueAt, placeOf, isLess, read } = scaleOf(feature);
  const top = Math.max(...feature.bars, 1);
  const bars = feature.bars.map((n, i) => s("rect", {
    x: i * 10 + 1, y: 40 - (n / top) * 38, width: 8, height: (n / top) * 38, rx: 1,
  }));
  const mark = now === "" ? null : read(now);
  const here = mark === null ? 0 : (placeOf(mark) / steps) * feature.bars.length * 10;
  const picture = s("svg", { class: "bars", viewBox: `0 0 ${feature.bars.length * 10} 40`, preserveAspectRatio: "none", "aria-hidden": "true" },
    bars, mark !== null && !isLess(mark, low) && !isLess(high, mark) ? s("line", { class: "here", x1: here, x2: here, y1: 0, y2: 40 }) : null);
  const ends = () => options.ranges[name] || [null, null];
  const slider = (i, words) => h("input", {
    type: "range", min: 0, max: steps, step: 1, "aria-label": `${words} ${titled(name)}`, oninput: event => set(i, valueAt(Number(event.target.value)), true),
  });
  const field = (i, words) => h("input", {
    ...inputOf(feature), "aria-label": `${words} ${titled(name)}, ${feature.kind === "number" ? "as a number" : "as a date"}`, placeholder: String(i ? high : low),
    onchange: event => set(i, event.target.value === "" ? null : read(event.target.value), false),
  });
  const sliders = [slider(0, "Lowest"), slider(1, "Highest")];
  const fields = [field(0, "Lowest"), field(1, "Highest")];

  function set(i, value, slid) {
    let [a, b] = ends();
    if (slid && !isLess(low, value) && i === 0) value = null;
    if (slid && !isLess(value, high) && i === 1) value = null;
    if (i === 0) { a = value; if (a !== null && b !== null && isLess(b, a)) b = a; }
    else { b = value; if (a !== null && b !== null && isLess(b, a)) a = b; }
    if (a === null && b === null) delete options.ranges[name]; else options.ranges[name] = [a, b];
    show();
    changed();
  }

  function show() {
    const [a, b] = ends();
    const from = a === null ? 0 : placeOf(a), to = b === null ? steps : placeOf(b);
    sliders[0].value = from; sliders[1].value = to;
    sliders[0].setAttribute("aria-valuetext", a === null ? `no lower limit (${low})` : String(a));
    sliders[1].setAttribute("aria-valuetext", b === null ? `no upper limit (${high})` : String(b));
    fields[0].value = a ?? ""; fields[1].value = b ?? "";
    bars.forEach((bar, i) => {
      const middle = ((i + 0.5) / bars.length) * steps;
      bar.setAttribute("class", middle >= from && middle <= to ? "in" : "out");
    });
  }

  show();
  return h("div", { class: "range" },
    h("p", { class: "soft small" }, "It may become: (bars: known rows, line: this row)"),
    h("div", { class: "track" }, picture, sliders),
    h("div", { class: "ends" }, fields[0], h("span", { class: "soft" }, "to"), fields[1], feature.unit ? h("span", { class: "soft" }, feature.unit) : null));
}

// Categories, with how many known rows have each.
function choices(feature, now, options, changed) {
  const { name, categories } = feature;
  const top = Math.max(...feature.bars, 1), all = feature.bars.reduce((a, b) => a + b, 0) || 1;
  const allowed = () => options.values[name] || categories;
  const allow = next => {
    if (next.length === categories.length) delete options.values[name]; else options.values[name] = next;
    for (const [category, box] of boxes) box.checked = allowed().includes(category);
    changed();
  };
  const boxes = categories.map(category => [category, h("input", {
    type: "checkbox", checked: allowed().includes(category),
    onchange: event => allow(categories.filter(c => (c === category ? event.target.checked : allowed().includes(c)))),
  })]);
  const lines = categories.map((category, i) => h("label", {}, boxes[i][1], h("span", { class: "grow" }, word(category), category === now ? h("small", {}, " (now)") : null),
    h("span", { class: "share", "aria-hidden": "true" }, h("i", { style: { width: `${(100 * feature.bars[i]) / top}%` } })),
    h("small", { class: "soft figure" }, `${Math.round((100 * feature.bars[i]) / all)} %`)));
  const find = words => lines.forEach((line, i) => { line.hidden = !words.every(w => word(categories[i]).toLowerCase().includes(w)); });
  const button = (words, next) => h("button", { type: "button", class: "link", "aria-label": `${words} of ${feature.title}`, onclick: () => allow(next) }, words);
  return h("fieldset", {}, h("legend", {}, "It may become"),
    h("div", { class: "card-tools" }, categories.length > MANY ? finder(`Find a value of ${feature.title}`, find) : null, button("All", categories), button("None", [])),
    h("div", { class: "choices" }, lines));
}

// An input field for a value of a feature in a row that is typed in.
export function valueField(feature, value, changed) {
  const id = newId();
  const control = feature.kind === "category"
    ? h("select", { id, onchange: changed }, [...feature.categories, ...(feature.gaps ? [""] : [])].map(c => h("option", { value: c, selected: c === value }, word(c))))
    : h("input", {
      id, ...inputOf(feature), value: value ?? "", required: !feature.gaps, oninput: changed, autocomplete: "off",
      placeholder: feature.gaps ? "missing" : feature.kind === "moment" ? feature.middle : null,
    });
  const node = h("div", { class: "field" }, h("label", { for: id }, feature.title, feature.unit ? h("small", {}, ` in ${feature.unit}`) : null), control);
  return { node, read: () => control.value, set: to => { control.value = to; } };
}
