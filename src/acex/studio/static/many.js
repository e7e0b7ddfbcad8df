// A table of the explanations of many rows, to which other processes may add at the same time.

import { targetChoice } from "./target.js";
import { pages } from "./rows.js";
import { announce, badge, count, countField, debounced, get, h, money, newId, number, post, problem, put, redraw, remember, short, costTexts, titled, UNIT, word } from "./dom.js";

const PATH = "#/many";
const COLUMNS = [
  ["position", "Row"], ["before", "Decision"], ["outcome", "Outcome"], ["changes", "What would have to change"], ["cost", "Cost"], ["paid", "Queries"],
];

export async function manyPage(workspace, params) {
  const state = Object.fromEntries(["q", "outcome", "sort", "down", "by", "all", "page"].map(name => [name, params.get(name) ?? ""]));
  let table = await get(`/api/many?${query()}`);
  let timer = 0, gone = false;
  const list = h("div", {}), groups = h("div", {}), summary = h("div", {}), progress = h("div", { "aria-live": "polite" });
  const trouble = h("div", {});
  function query() { return new URLSearchParams(Object.entries(state).filter(([, value]) => value !== "")); }

  async function load() {
    const asked = query();
    remember(PATH, state);
    try {
      const now = await get(`/api/many?${asked}`);
      if (gone || String(asked) !== String(query())) return; // outdated: the query has changed
      table = now;
      show();
    } catch (error) { put(progress, problem(error.message)); }
    again();
  }
  function again() {
    clearTimeout(timer);
    if (!gone) timer = setTimeout(load, table.pending ? 100 : table.batch.live ? 1000 : 5000);
  }
  // After a change of filter, order or group, show the first page.
  function set(changes) { Object.assign(state, { page: "" }, changes); return load(); }

  function show() {
    showProgress();
    redraw(summary, [table.summary, table.pending], () => put(summary, table.explanations ? facts(table.summary) : null));
    showList();
    redraw(groups, [table.groups, state.by], showGroups);
  }

  function showProgress() {
    const b = table.batch;
    quote();
    stop.hidden = !b.live;
    put(progress, b.live || b.done ? [
      h("progress", { max: b.total || 1, value: b.done, "aria-label": "Rows explained" }),
      h("p", {}, `${number(b.done)} of ${number(b.total)} rows, ${number(b.found)} found, ${count(b.paid, "query", "queries")} paid for${b.live ? "" : b.state === "stopped" ? "; stopped" : "; done"}.`)] : null,
    b.error ? problem(b.error) : null);
  }

  function facts(sum) {
    // While explanations are still being read, totals are marked as preliminary.
    const soFar = table.pending ? h("small", {}, ` so far; reading ${number(table.pending)} more …`) : null;
    return h("dl", { class: "figures" },
      h("div", {}, h("dt", {}, "Rows explained"), h("dd", {}, number(sum.rows), soFar)),
      h("div", {}, h("dt", {}, "With a change that works"), h("dd", {}, number(sum.found), soFar?.cloneNode(true))),
      h("div", {}, h("dt", {}, "Queries paid for"), h("dd", {}, number(sum.paid), soFar?.cloneNode(true))),
      h("div", {}, h("dt", {}, "Changes, on average"), h("dd", {}, sum.mean_changes === null ? "–" : sum.mean_changes.toFixed(1), soFar?.cloneNode(true))),
      h("div", { class: "wide-fact" }, h("dt", {}, "Changed most often", soFar?.cloneNode(true)), h("dd", {}, sum.often.length ? sum.often.slice(0, 4).map(o => h("span", { class: "often" }, titled(o.feature), h("small", {}, ` ${Math.round(100 * o.share)} %`))) : "–")));
  }

  function showList() {
    const rows = table.summary.rows, n = table.explanations - table.pending;
    fits.textContent = table.explanations ? `${count(table.total, state.all ? "search" : "row", state.all ? "searches" : "rows")}${state.q || state.outcome ? (table.total === 1 ? " matches" : " match") : ""}${n > rows ? `; ${count(n, "search", "searches")} of ${count(rows, "row")} in all` : ""}` : "";
    redraw(list, [state, table.lines, table.total, table.pending > 0], () => drawList(table.lines));
  }

  function drawList(lines) {
    const head = COLUMNS.map(([key, words]) => h("th", { scope: "col", class: key === "cost" || key === "paid" ? "figure" : null, "aria-sort": state.sort === key ? (state.down ? "descending" : "ascending") : "none" },
      h("button", {
        type: "button", class: "sort", onclick: async () => {
          await set({ down: state.sort === key && !state.down ? "1" : "", sort: key });
          [...list.querySelectorAll(".sort")].find(b => b.textContent.startsWith(words))?.focus();
          announce(`Sorted by ${words}, ${state.down ? "descending" : "ascending"}`);
        },
      }, words, h("span", { "aria-hidden": "true", class: "arrow" }, state.sort === key ? (state.down ? " ↓" : " ↑") : ""))));
    const costs = costTexts(lines.map(line => line.cost));
    put(list, !table.explanations
      ? h("p", { class: "empty" }, "Nothing here yet. Explain some rows above, one by one on their own pages, or with “acex batch” and the same ledger.")
      : h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Explanations" }, h("table", { class: "rows many" },
        h("thead", {}, h("tr", {}, head)),
        h("tbody", {}, lines.map((line, i) => h("tr", {},
          h("th", { scope: "row" }, h("a", { href: `#/search/${line.id}` }, line.position === null ? "own" : line.name)),
          h("td", { "data-label": "Decision" }, h("span", {}, line.before === null ? "–" : badge(line.before), line.after === null ? null : [" → ", badge(line.after)])),
          h("td", { "data-label": "Outcome" }, workspace.outcomes[line.outcome]),
          h("td", { "data-label": "To change", class: "long" }, h("span", {}, line.changes.map(([name, from, to], j) => [j ? ", " : "", `${titled(name)} ${word(from)} → `, h("b", {}, word(to))]))),
          h("td", { "data-label": "Cost", class: "figure" }, costs[i]),
          h("td", { "data-label": "Queries", class: "figure" }, number(line.paid))))))),
    pages(table, by => { state.page = String(Math.max(Number(state.page) + by, 0) || ""); return load(); }));
  }

  function showGroups() {
    put(groups, table.groups.length ? h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "By group" }, h("table", { class: "lines groups" },
      h("thead", {}, h("tr", {}, [titled(state.by), "Rows", "With a change that works", `Cost (median, ${UNIT})`, "Changes", "Queries", "Most often"].map((t, i) => h("th", { scope: "col", class: i > 0 && i < 6 ? "figure" : null }, t)))),
      h("tbody", {}, table.groups.map(g => h("tr", {}, h("th", { scope: "row" }, word(g.group)), h("td", { class: "figure" }, number(g.rows)),
        h("td", { class: "figure" }, `${Math.round((100 * g.found) / g.rows)} %`), h("td", { class: "figure" }, short(g.median_cost)),
        h("td", { class: "figure" }, g.mean_changes === null ? "" : g.mean_changes.toFixed(1)), h("td", { class: "figure" }, number(g.paid)),
        h("td", {}, g.often.slice(0, 2).map(o => titled(o.feature)).join(", "))))))) : null);
  }

  // -- starting some
  const ids = Object.fromEntries(["decision", "filter", "by", "outcome", "all"].map(name => [name, newId()]));
  const decision = h("select", { id: ids.decision }, h("option", { value: "" }, "any"), workspace.labels.map(l => h("option", { value: String(l) }, String(l))));
  const quote = () => {
    const given = [most, each, total].map(field => field.read());
    const wrong = given.includes(undefined) || !target.isComplete();
    start.disabled = table.batch.live || wrong;
    const n = Math.min(given[0] * given[1], given[2] ?? Infinity);
    put(cost, wrong ? h("span", { class: "soft" }, target.problem() || "Enter how much may be asked to see the price.")
      : [h("b", {}, `At most ${count(n, "query", "queries")}${workspace.price === null ? "" : `, for ${money(n * workspace.price)}`}`), h("span", { class: "soft" }, " Rows learn from each other, so it is often less.")]);
  };
  const most = countField("How many rows, at most", { value: 10, max: 5000, changed: quote });
  const each = countField("Queries a row, at most", { value: Math.min(workspace.options.budget, 15), min: 2, max: 10000, changed: quote });
  const total = countField("Queries in all, at most", { optional: true, placeholder: "no limit", changed: quote });
  const cost = h("p", { class: "cost" });
  const start = h("button", { class: "button primary", type: "submit" }, "Explain these rows");
  const stop = h("button", { class: "button", type: "button", hidden: true, onclick: async () => { table.batch = await post("/api/many/stop"); showProgress(); } }, "Stop");
  const options = structuredClone(workspace.options);
  const target = targetChoice(workspace, options, quote);
  const goal = [options.target.label ?? options.target].flat();
  const other = workspace.labels.find(label => !goal.includes(label));
  if (goal.length && other !== undefined) decision.value = other;
  const form = h("form", {
    class: "panel", novalidate: true, onsubmit: async event => {
      event.preventDefault();
      try {
        options.budget = each.read();
        table.batch = await post("/api/many", { rows: { decision: decision.value, most: most.read() }, options, budget_total: total.read() });
        put(trouble);
        showProgress();
        again();
      } catch (error) { put(trouble, problem(error.message)); }
    },
  }, h("div", { class: "fields" },
    workspace.labels.length ? h("div", { class: "field" }, h("label", { for: ids.decision }, "Rows decided"), decision) : null, most.node, each.node, total.node),
  h("div", { class: "field wanted" }, h("span", { class: "label" }, "Wanted"), target.node),
  cost, trouble, h("div", { class: "buttons" }, start, stop), progress);

  const fits = h("span", { class: "soft fits" });
  const filter = h("input", { id: ids.filter, type: "search", class: "search", placeholder: "Any word, or a condition", value: state.q, oninput: debounced(200, () => set({ q: filter.value })) });
  const outcome = h("select", { id: ids.outcome, onchange: () => set({ outcome: outcome.value }) },
    h("option", { value: "" }, "all"), Object.entries(workspace.outcomes).map(([value, words]) => h("option", { value, selected: value === state.outcome }, words)));
  const by = h("select", { id: ids.by, onchange: () => set({ by: by.value }) }, h("option", { value: "" }, "nothing"), workspace.features.map(f => h("option", { value: f.name, selected: f.name === state.by }, f.title)));
  const every = h("input", { id: ids.all, type: "checkbox", checked: state.all === "1", onchange: () => set({ all: every.checked ? "1" : "" }) });
  show();
  remember(PATH, state);
  again();
  const view = h("div", {},
    h("div", { class: "lead" }, h("h1", {}, "Many rows"),
      h("p", {}, "All rows of this model that were explained, whatever made the explanations. Each leads to its own page.")),
    h("details", { class: "starter", open: !table.explanations || table.batch.live }, h("summary", {}, "Explain more rows"), form),
    summary,
    h("div", { class: "tools" },
      h("div", { class: "field grow" }, h("label", { for: ids.filter }, "Filter"), filter),
      h("div", { class: "field" }, h("label", { for: ids.outcome }, "Outcome"), outcome),
      h("div", { class: "field" }, h("label", { for: ids.by }, "Group by"), by),
      h("label", { class: "check", for: ids.all }, every, "Also earlier searches of the same row")),
    groups, fits, list);
  return { title: "Many rows", view, leave: () => { gone = true; clearTimeout(timer); } };
}
