// Small helpers. Data is only inserted as text: nothing here parses a string as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "indeterminate") element[name] = value;
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);
export const put = (element, ...children) => { element.replaceChildren(); return fill(element, {}, children); };

// Redraw an element only if it has changed, and keep the focus.
const mark = e => [e.tagName, e.getAttribute("href"), e.getAttribute("aria-label"), e.textContent].join("|");
export function redraw(element, content, draw) {
  const now = JSON.stringify(content);
  if (element.shown === now) return;
  element.shown = now;
  const focused = element.contains(document.activeElement) && document.activeElement !== element ? mark(document.activeElement) : null;
  draw();
  if (focused) [...element.querySelectorAll("a, button, [tabindex]")].find(e => mark(e) === focused)?.focus({ preventScroll: true });
}

let unique = 0;
export const newId = () => `e${++unique}`;

export class Failed extends Error {
  constructor(status, words) { super(words); this.status = status; }
}

async function answer(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Failed(response.status, body.error || `The studio answered ${response.status}.`);
  return body;
}
const lost = () => { throw new Failed(0, "The studio does not answer. Is it still running?"); };
export const get = path => fetch(path, { headers: { accept: "application/json" } }).catch(lost).then(answer);
export const post = (path, body = {}) => fetch(path, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
}).catch(lost).then(answer);

// Announce a text to screen readers once, without moving the focus.
export function announce(words) {
  const live = document.getElementById("live");
  live.textContent = "";
  requestAnimationFrame(() => { live.textContent = words; });
}

export function debounced(wait, run) {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => run(...given), wait); };
}

const whole = new Intl.NumberFormat("en");
const currency = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 });
export const count = (n, one, many = `${one}s`) => `${whole.format(n)} ${n === 1 ? one : many}`;
export const number = n => whole.format(n);
export const money = n => currency.format(n);
export const short = n => n === null || n === undefined ? "" : Math.abs(n) >= 100 ? n.toFixed(0) : n.toPrecision(3);
export const problem = words => h("p", { class: "problem", role: "alert" }, words);
export const remarkLines = remarks => remarks.map(remark => h("p", { class: remark.is_warning ? "warning" : "soft" }, remark.text));

// Display names of columns and values.
const titles = new Map();
export const nameFeatures = features => features.forEach(f => titles.set(f.name, f.title));
export const titled = name => titles.get(name) ?? name;
const WORDS = { True: "yes", False: "no", true: "yes", false: "no", "": "missing" };
export const word = value => WORDS[String(value)] ?? String(value);

// Decisions differ in colour and in shape; the target comes first.
let labels = [];
export const nameLabels = (all, target) => {
  const goal = [target?.label ?? target ?? []].flat().map(String);
  labels = all.map(String).sort((a, b) => Number(goal.includes(b)) - Number(goal.includes(a)));
};
export const badge = (label, source) => label === null
  ? h("span", { class: "badge none" }, "not asked yet")
  : h("span", { class: `badge ${source === "file" ? "file" : ""} d${labels.includes(String(label)) ? labels.indexOf(String(label)) % 5 : "x"}` }, String(label), source === "file" ? h("small", {}, " on file") : null);

// Costs of changes: three digits, or more if different costs would look the same.
export const UNIT = "sd";
export function costTexts(costs) {
  let texts = [];
  for (let digits = 3; digits < 9; digits++) {
    texts = costs.map(cost => cost === null || cost === undefined ? "" : String(Number(cost.toPrecision(digits))));
    if (new Set(texts).size === new Set(costs).size) break;
  }
  return texts.map(text => text && `${text} ${UNIT}`);
}

// The address carries the state of a page, so that Back, Reload and a link show it again.
const PLACES = "acex-studio-places";
const places = () => { try { return JSON.parse(sessionStorage.getItem(PLACES)) || {}; } catch { return {}; } };
export const pathNow = () => location.hash.split("?")[0] || "#/";
export const address = (path, state) => {
  const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false)).toString();
  return query ? `${path}?${query}` : path;
};
export function remember(path, state) {
  if (pathNow() !== path) return; // the user has left the page in the meantime
  const now = address(path, state);
  history.replaceState(history.state, "", now);
  sessionStorage.setItem(PLACES, JSON.stringify({ ...places(), [path]: now }));
}
export const lastPlace = path => places()[path] ?? path;
export const parsed = (text, otherwise) => { try { return JSON.parse(text) ?? otherwise; } catch { return otherwise; } };

// Options for an address: only those that differ from the studio's defaults.
export function optionsText(workspace, options) {
  const changed = Object.entries(options).filter(([name, value]) => JSON.stringify(value ?? null) !== JSON.stringify(workspace.options[name] ?? null));
  return changed.length ? JSON.stringify(Object.fromEntries(changed)) : "";
}
export function readOptions(workspace, text) {
  const given = parsed(text, {});
  const like = (name, value) => { const own = workspace.options[name]; return name === "target" || value === null || typeof own !== "object" || (typeof value === "object" && Array.isArray(own) === Array.isArray(value)); };
  const known = new Set([...Object.keys(workspace.options), ...workspace.declared.map(d => d.name)]);
  return { ...structuredClone(workspace.options), ...Object.fromEntries(Object.entries(given).filter(([name, value]) => known.has(name) && like(name, value))) };
}

// A field for an integer. `read` returns the number, null if it is optional and empty, or undefined if it is invalid.
export function countField(words, { value = "", min = 1, max, optional = false, placeholder, changed }) {
  const id = newId(), hint = newId();
  const expected = `Enter a whole number ${max ? `from ${number(min)} to ${number(max)}` : `of at least ${number(min)}`}${optional ? ", or nothing" : ""}.`;
  const message = h("small", { id: hint, class: "invalid", hidden: true }, expected);
  const control = h("input", {
    id, type: "number", min, max, step: 1, value, placeholder, "aria-describedby": hint, required: !optional,
    oninput: () => { show(); changed(); },
  });
  const read = () => {
    if (control.value === "" && !control.validity.badInput) return optional ? null : undefined;
    const n = Number(control.value);
    return Number.isInteger(n) && n >= min && (!max || n <= max) && control.value !== "" ? n : undefined;
  };
  const show = () => { const bad = read() === undefined; message.hidden = !bad; control.setAttribute("aria-invalid", String(bad)); };
  return { node: h("div", { class: "field" }, h("label", { for: id }, words), control, message), read };
}

// Copy text to the clipboard; returns whether it worked.
async function copied(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* without HTTPS only the older API works */ }
  const area = h("textarea", { class: "unseen", value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
export function copyButton(text, label) {
  const button = h("button", {
    type: "button", class: "link", "aria-label": label, onclick: async () => {
      button.textContent = (await copied(text())) ? "Copied" : "Select the text to copy it";
      announce(button.textContent);
      button.focus();
      setTimeout(() => { button.textContent = "Copy"; }, 5000);
    },
  }, "Copy");
  return button;
}

// Bookmarks, stored in this browser only.
const KEY = "acex-studio-bookmarks";
export const bookmarks = {
  all() { try { return JSON.parse(localStorage.getItem(KEY)) || []; } catch { return []; } },
  has(id, position) { return this.all().some(b => b.id === id && b.position === position); },
  toggle(mark) {
    const others = this.all().filter(b => !(b.id === mark.id && b.position === mark.position));
    const is_new = others.length === this.all().length;
    localStorage.setItem(KEY, JSON.stringify(is_new ? [mark, ...others].slice(0, 200) : others));
    return is_new;
  },
};
