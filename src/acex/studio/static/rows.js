// The known rows, to search and to pick from.

import { announce, count, debounced, get, h, newId, number, problem, put, titled, word } from "./dom.js";

export const badge = (label, source) => label === null
  ? h("span", { class: "badge none" }, "not asked yet")
  : h("span", { class: `badge ${source || "model"}` }, String(label), source === "file" ? h("small", {}, " on file") : null);

export async function rowsPage(workspace) {
  const numbers = new Set(workspace.features.filter(f => f.kind === "number").map(f => f.name));
  const list = h("div", {});
  const total = h("p", { class: "soft", "aria-live": "polite" });
  const state = { q: "", decision: "", page: 0 };
  const search = newId();
  const box = h("input", {
    id: search, type: "search", class: "search", placeholder: "Any word or number, or column:value", maxlength: 200,
    autocomplete: "off", oninput: debounced(200, () => { state.page = 0; load(); }),
  });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Filter by decision" },
    ["", ...workspace.labels].map(label => h("button", {
      type: "button", class: "chip", "aria-pressed": String(label === ""),
      onclick: event => {
        for (const chip of chips.children) chip.setAttribute("aria-pressed", "false");
        event.currentTarget.setAttribute("aria-pressed", "true");
        state.decision = String(label); state.page = 0; load();
      },
    }, label === "" ? "All" : String(label))));

  let turn = 0;
  async function load() {
    const mine = ++turn;
    state.q = box.value;
    const asked = new URLSearchParams({ q: state.q, decision: state.decision, page: String(state.page) });
    try {
      const found = await get(`/api/rows?${asked}`);
      if (mine !== turn) return; // the search has changed meanwhile
      put(total, `${count(found.total, "row")}${state.q || state.decision ? (found.total === 1 ? " matches" : " match") : ""}`);
      put(list, table(found), pages(found));
    } catch (error) { put(list, problem(error.message)); }
  }

  function table(found) {
    if (!found.lines.length) return h("p", { class: "empty" }, "No row contains all of these words.");
    return h("div", { class: "wide", role: "region", "aria-label": "Rows", tabindex: "0" },
      h("table", { class: "rows pick" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Row"), h("th", { scope: "col" }, workspace.answers === "numbers" ? "Answer" : "Decision"),
          found.columns.map(name => h("th", { scope: "col", class: numbers.has(name) ? "figure" : null }, titled(name))))),
        h("tbody", {}, found.lines.map(line => h("tr", {},
          h("th", { scope: "row" }, h("a", { href: `#/row/${line.position}` }, `${line.position}`)),
          h("td", { "data-label": "Decision" }, badge(line.decision.label, line.decision.source)),
          line.cells.map((cell, j) => h("td", { "data-label": titled(found.columns[j]), class: `${j > 4 ? "more " : ""}${numbers.has(found.columns[j]) ? "figure" : ""}` }, word(cell))))))));
  }

  function pages(found) {
    const last = Math.max(Math.ceil(found.total / found.size) - 1, 0);
    const leaf = by => { state.page += by; load().then(() => announce(`Page ${state.page + 1} of ${last + 1}`)); };
    return h("div", { class: "pages" },
      h("button", { type: "button", class: "button", disabled: found.page === 0, onclick: () => leaf(-1) }, "Previous"),
      h("span", { class: "soft" }, `Page ${number(found.page + 1)} of ${number(last + 1)}`),
      h("button", { type: "button", class: "button", disabled: found.page >= last, onclick: () => leaf(1) }, "Next"));
  }

  await load();
  const view = h("div", {},
    h("div", { class: "lead" },
      h("h1", {}, "Whose decision would you like to understand?"),
      h("p", {}, "Pick a row. You see what is known about its decision, choose what may change, and learn the smallest change ",
        "that would have led to another decision. Nothing is asked or paid for before you confirm it.")),
    h("div", { class: "tools" },
      h("div", { class: "field grow" }, h("label", { for: search }, "Search"), box),
      workspace.labels.length ? h("div", { class: "field" }, h("span", { class: "label" }, "Decision"), chips) : null,
      h("a", { class: "button", href: "#/own" }, "Type in a row")),
    total, list);
  return { title: "Rows", view };
}
