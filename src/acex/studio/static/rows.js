// The table of known rows, to search and pick from.

import { address, announce, badge, count, debounced, get, h, newId, number, problem, put, remember, costTexts, titled, word } from "./dom.js";

const PATH = "#/";

export async function rowsPage(workspace, params) {
  const numbers = new Set(workspace.features.filter(f => f.kind === "number").map(f => f.name));
  const list = h("div", {});
  const total = h("p", { class: "soft", "aria-live": "polite" });
  const state = { q: params.get("q") ?? "", decision: params.get("decision") ?? "", page: Number(params.get("page")) || 0 };
  const search = newId(), hint = newId();
  const box = h("input", {
    id: search, type: "search", class: "search", placeholder: "Any word, or a condition", maxlength: 200, value: state.q, "aria-describedby": hint,
    autocomplete: "off", oninput: debounced(200, () => { state.page = 0; load(); }),
  });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Filter by decision" },
    ["", ...workspace.labels].map(label => h("button", {
      type: "button", class: "chip", "aria-pressed": String(String(label) === state.decision),
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
    remember(PATH, { ...state, page: state.page || "" });
    const asked = new URLSearchParams({ q: state.q, decision: state.decision, page: String(state.page) });
    try {
      const found = await get(`/api/rows?${asked}`);
      if (mine !== turn) return; // outdated: the search has changed
      put(total, `${count(found.total, "row")}${state.q || state.decision ? (found.total === 1 ? " matches" : " match") : ""}`);
      put(list, table(found), pages(found, by => { state.page += by; return load(); }));
    } catch (error) { put(list, problem(error.message)); }
  }

  // Results of earlier searches.
  function known(line, cost) {
    if (line.known === null) return h("span", { class: "soft" }, "–");
    const { outcome, times } = line.known;
    const words = outcome === "found" ? `found, ${cost}` : workspace.outcomes[outcome];
    return h("span", {}, words, times > 1 ? h("small", {}, ` ${times} searches`) : null);
  }

  function table(found) {
    if (!found.lines.length) return h("p", { class: "empty" }, "No row matches all of this.");
    const costs = costTexts(found.lines.map(line => line.known?.cost ?? null));
    return h("div", { class: "wide", role: "region", "aria-label": "Rows", tabindex: "0" },
      h("table", { class: "rows pick" },
        h("thead", {}, h("tr", {}, ["Row", workspace.answers === "numbers" ? "Answer" : "Decision", "Known change"].map(words => h("th", { scope: "col" }, words)),
          found.columns.map(name => h("th", { scope: "col", class: numbers.has(name) ? "figure" : null, title: titled(name) }, titled(name))))),
        h("tbody", {}, found.lines.map((line, i) => h("tr", {},
          h("th", { scope: "row" }, h("a", { href: `#/row/${line.position}` }, line.name)),
          h("td", { "data-label": "Decision" }, badge(line.decision.label, line.decision.source)),
          h("td", { "data-label": "Known change", class: line.known === null ? "nothing" : null }, known(line, costs[i])),
          line.cells.map((cell, j) => h("td", { "data-label": titled(found.columns[j]), class: `${j > 4 ? "more " : ""}${numbers.has(found.columns[j]) ? "figure" : ""}` }, word(cell))))))));
  }

  await load();
  const example = workspace.features.filter(f => f.kind === "number").sort((a, b) => a.title.length - b.title.length)[0];
  const view = h("div", {},
    h("div", { class: "lead" },
      h("h1", {}, "Whose decision would you like to understand?"),
      h("p", {}, "Pick a row. You see what is known about its decision, choose what may change, and learn the smallest change ",
        "that would have led to another decision. Nothing is asked or paid for before you confirm it.")),
    h("div", { class: "tools" },
      h("div", { class: "field grow" }, h("label", { for: search }, "Search"), box,
        h("small", { id: hint }, example ? `Words, or conditions such as ${example.title} > ${example.middle}` : "Words, or conditions such as column: value")),
      workspace.labels.length ? h("div", { class: "field" }, h("span", { class: "label" }, "Decision"), chips) : null,
      h("a", { class: "button", href: address("#/own", {}) }, "Type in a row")),
    total, list);
  return { title: "Rows", view };
}

// Buttons for the previous and next page of a table; `go(by)` loads another page.
export function pages(found, go) {
  const last = Math.max(Math.ceil(found.total / found.size) - 1, 0);
  if (!last) return null;
  const leaf = by => go(by).then(() => announce(`Page ${found.page + by + 1} of ${last + 1}`));
  return h("div", { class: "pages" },
    h("button", { type: "button", class: "button", disabled: found.page === 0, onclick: () => leaf(-1) }, "Previous"),
    h("span", { class: "soft" }, `Page ${number(found.page + 1)} of ${number(last + 1)}`),
    h("button", { type: "button", class: "button", disabled: found.page >= last, onclick: () => leaf(1) }, "Next"));
}
