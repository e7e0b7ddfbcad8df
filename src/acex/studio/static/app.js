// Routing from addresses to pages, and the common header.

import { debounced, get, h, lastPlace, money, nameFeatures, nameLabels, number, pathNow, problem, put } from "./dom.js";
import { rowsPage } from "./rows.js";
import { ownPage, rowPage } from "./row.js";
import { searchPage } from "./search.js";
import { savedPage } from "./answers.js";
import { manyPage } from "./many.js";

const main = document.getElementById("main");
const PAGES = [
  [/^#?\/?$/, "rows", rowsPage],
  [/^#\/row\/(\d+)$/, "rows", rowPage],
  [/^#\/own$/, "rows", ownPage],
  [/^#\/own\/plan$/, "rows", (workspace, params) => rowPage(workspace, params, null)],
  [/^#\/search\/([0-9a-f]+)$/, "rows", searchPage],
  [/^#\/many$/, "many", manyPage],
  [/^#\/saved$/, "saved", savedPage],
];
let leave = () => {};
let workspace = null;
let turn = 0;
let drawn = null; // the address of the current page

export function showBudget(remaining) {
  if (remaining !== undefined) workspace.remaining = remaining;
  const left = workspace.remaining === null ? null : `${number(workspace.remaining)} queries left`;
  const price = workspace.price === null ? null : `${money(workspace.price)} a query`;
  put(document.getElementById("about"), [workspace.title, price, left].filter(Boolean).join(" · "));
}

async function show() {
  const mine = ++turn;
  const hash = location.hash;
  if (hash && !hash.startsWith("#/")) return;
  leave();
  leave = () => {};
  drawn = null;
  const [path, query] = hash.split(/\?(.*)/s);
  const [pattern, name, page] = PAGES.find(([p]) => p.test(path)) || PAGES[0];
  for (const link of document.querySelectorAll("nav a")) {
    link.href = lastPlace(link.dataset.place);
    if (link.dataset.page === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    if (workspace === null) { workspace = await get("/api/workspace"); workspace.refresh = refresh; nameFeatures(workspace.features); nameLabels(workspace.labels, workspace.options.target); }
    showBudget();
    const given = pattern.exec(path)?.slice(1) || [];
    const made = await page(workspace, new URLSearchParams(query), ...given);
    if (mine !== turn) { made.leave?.(); return; }
    put(main, made.view);
    document.title = `${made.title} · acex studio`;
    leave = made.leave || (() => {});
    window.scrollTo(0, history.state?.scroll ?? 0);
    drawn = pathNow();
    if (hash) main.focus({ preventScroll: true });
  } catch (error) {
    if (mine !== turn) return;
    put(main, h("div", { class: "narrow" }, h("h1", {}, "This page cannot be shown"), problem(error.message),
      h("p", {}, h("button", { class: "button", type: "button", onclick: show }, "Try again"))));
    document.title = "acex studio";
  }
}

// Queries of other users reduce the remaining budget.
async function refresh() {
  try { showBudget((await get("/api/workspace")).remaining); } catch { /* the next refresh will show it */ }
}

document.getElementById("skip").addEventListener("click", event => { event.preventDefault(); main.focus(); });
history.scrollRestoration = "manual"; // the browser would scroll before a page is drawn
window.addEventListener("scroll", debounced(100, () => { if (pathNow() === drawn) history.replaceState({ ...history.state, scroll: window.scrollY }, ""); }));
window.addEventListener("hashchange", show);
show();
