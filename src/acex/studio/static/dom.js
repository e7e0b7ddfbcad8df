// Small helpers. Text from data only ever becomes text: nothing here turns a string into markup.

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

// Draw something again only when it has changed, and keep the focus where it was.
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

// Read out once by screen readers, without moving the focus.
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

// What columns and values are called on pages.
const titles = new Map();
export const nameFeatures = features => features.forEach(f => titles.set(f.name, f.title));
export const titled = name => titles.get(name) ?? name;
const WORDS = { True: "yes", False: "no", true: "yes", false: "no", "": "missing" };
export const word = value => WORDS[String(value)] ?? String(value);

// What a person has marked, in this browser only.
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
