// Many rows: their explanations in a table, which other processes may extend at the same time.

import { targetChoice } from "./target.js";
import { announce, count, get, h, money, newId, number, post, problem, put, redraw, short, titled, word } from "./dom.js";

const OUTCOMES = {
  found: "found", already_target: "nothing to change", budget_spent: "not found yet", time_spent: "not found yet", unlikely: "unlikely", exhausted: "none exists",
  unfinished: "unfinished", failed: "failed",
};
const COLUMNS = [
  ["row", "Row", line => line.position ?? Infinity], ["before", "Decision", line => String(line.before)],
  ["outcome", "Outcome", line => line.outcome], ["changes", "What would have to change", line => line.changes.length],
  ["cost", "Size", line => line.cost ?? Infinity], ["paid", "Questions", line => line.paid],
];

export async function manyPage(workspace) {
  const state = { sort: null, down: false, outcome: "", text: "", by: "" };
  let table = await get("/api/many");
  let timer = 0, gone = false;
  const list = h("div", {}), groups = h("div", {}), summary = h("div", {}), progress = h("div", { "aria-live": "polite" });
  const trouble = h("div", {});

  async function load() {
    try {
      const by = state.by;
      const now = await get(`/api/many?${new URLSearchParams({ by })}`);
      if (gone || by !== state.by) return; // the next response has these groups
      table = now;
      show();
    } catch (error) { put(progress, problem(error.message)); }
    again();
  }
  function again() {
    clearTimeout(timer);
    if (!gone) timer = setTimeout(load, table.pending ? 100 : table.batch.live ? 1000 : 5000);
  }

  function show() {
    showProgress();
    put(summary, table.lines.length ? facts(table.summary) : null);
    showList();
    showGroups();
  }

  function showProgress() {
    const b = table.batch;
    start.disabled = b.live || !target.isComplete();
    stop.disabled = !b.live;
    put(progress, b.live || b.done ? [
      h("progress", { max: b.total || 1, value: b.done, "aria-label": "Rows explained" }),
      h("p", {}, `${number(b.done)} of ${number(b.total)} rows, ${number(b.found)} found, ${count(b.paid, "question")} paid for${b.live ? "" : b.state === "stopped" ? "; stopped" : "; done"}.`)] : null,
    b.error ? problem(b.error) : null, table.pending ? h("p", { class: "soft" }, `Reading ${number(table.pending)} more from the ledger …`) : null);
  }

  function facts(sum) {
    return h("dl", { class: "figures" },
      h("div", {}, h("dt", {}, "Rows"), h("dd", {}, number(sum.rows))),
      h("div", {}, h("dt", {}, "With an answer"), h("dd", {}, number(sum.found))),
      h("div", {}, h("dt", {}, "Questions paid for"), h("dd", {}, number(sum.paid))),
      h("div", {}, h("dt", {}, "Changes, on average"), h("dd", {}, sum.mean_changes === null ? "–" : sum.mean_changes.toFixed(1))),
      h("div", { class: "wide-fact" }, h("dt", {}, "Most often"), h("dd", {}, sum.often.length ? sum.often.slice(0, 4).map(o => h("span", { class: "often" }, titled(o.feature), h("small", {}, ` ${Math.round(100 * o.share)} %`))) : "–")));
  }

  function fitting() {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const lines = table.lines.filter(line => (!state.outcome || line.outcome === state.outcome)
      && words.every(w => [...Object.values(line.row), line.before, line.after, ...line.changes.flat()].some(v => String(v).toLowerCase().includes(w))));
    const column = COLUMNS.find(([key]) => key === state.sort);
    if (!column) return lines;
    const [, , value] = column;
    return [...lines].sort((a, b) => {
      const x = value(a), y = value(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1);
    });
  }

  function showList() {
    const lines = fitting();
    fits.textContent = table.lines.length ? `${count(lines.length, "explanation")}` : "";
    redraw(list, [state, lines], () => drawList(lines));
  }

  function drawList(lines) {
    const head = COLUMNS.map(([key, words]) => h("th", { scope: "col", class: key === "cost" || key === "paid" ? "figure" : null, "aria-sort": state.sort === key ? (state.down ? "descending" : "ascending") : "none" },
      h("button", {
        type: "button", class: "sort", onclick: () => {
          state.down = state.sort === key && !state.down; state.sort = key;
          showList();
          [...list.querySelectorAll(".sort")].find(b => b.textContent.startsWith(words))?.focus();
          announce(`Sorted by ${words}, ${state.down ? "descending" : "ascending"}`);
        },
      }, words, h("span", { "aria-hidden": "true", class: "arrow" }, state.sort === key ? (state.down ? " ↓" : " ↑") : ""))));
    put(list, !table.lines.length && !table.pending
      ? h("p", { class: "empty" }, "Nothing here yet. Explain some rows above, one by one on their own pages, or with “acex batch” and the same ledger.")
      : h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Explanations" }, h("table", { class: "rows many" },
        h("thead", {}, h("tr", {}, head)),
        h("tbody", {}, lines.slice(0, 300).map(line => h("tr", {},
          h("th", { scope: "row" }, h("a", { href: `#/search/${line.id}` }, line.position === null ? "own" : String(line.position))),
          h("td", { "data-label": "Decision" }, h("span", {}, line.before === null ? "–" : String(line.before), line.after === null ? null : [" → ", h("b", {}, String(line.after))])),
          h("td", { "data-label": "Outcome" }, OUTCOMES[line.outcome] || line.outcome),
          h("td", { "data-label": "To change", class: "long" }, h("span", {}, line.changes.map(([name, from, to], i) => [i ? ", " : "", `${titled(name)} ${word(from)} → `, h("b", {}, word(to))]))),
          h("td", { "data-label": "Size", class: "figure" }, short(line.cost)),
          h("td", { "data-label": "Questions", class: "figure" }, number(line.paid))))))),
    lines.length > 300 ? h("p", { class: "soft" }, `The first 300 of ${number(lines.length)}; filter to see others.`) : null);
  }

  function showGroups() {
    put(groups, table.groups.length ? h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "By group" }, h("table", { class: "lines" },
      h("thead", {}, h("tr", {}, [titled(state.by), "Rows", "With an answer", "Size (median)", "Changes", "Questions", "Most often"].map(t => h("th", { scope: "col" }, t)))),
      h("tbody", {}, table.groups.map(g => h("tr", {}, h("th", { scope: "row" }, g.group), h("td", { class: "figure" }, number(g.rows)),
        h("td", { class: "figure" }, `${Math.round((100 * g.found) / g.rows)} %`), h("td", { class: "figure" }, short(g.median_cost)),
        h("td", { class: "figure" }, g.mean_changes === null ? "" : g.mean_changes.toFixed(1)), h("td", { class: "figure" }, number(g.paid)),
        h("td", {}, g.often.slice(0, 2).map(o => titled(o.feature)).join(", "))))))) : null);
  }

  // -- starting some
  const ids = Object.fromEntries(["decision", "most", "each", "total", "filter", "by", "outcome"].map(name => [name, newId()]));
  const decision = h("select", { id: ids.decision, onchange: quote }, h("option", { value: "" }, "any"), workspace.labels.map(l => h("option", { value: String(l) }, String(l))));
  const most = h("input", { id: ids.most, type: "number", min: 1, max: 5000, value: 10, oninput: quote });
  const each = h("input", { id: ids.each, type: "number", min: 2, max: 10000, value: Math.min(workspace.options.budget, 15), oninput: quote });
  const total = h("input", { id: ids.total, type: "number", min: 1, placeholder: "no limit", oninput: quote });
  const cost = h("p", { class: "cost" });
  const start = h("button", { class: "button primary", type: "submit" }, "Explain these rows");
  const stop = h("button", { class: "button", type: "button", disabled: true, onclick: async () => { table.batch = await post("/api/many/stop"); showProgress(); } }, "Stop");
  function atMost() { return Math.min(Number(most.value) * Number(each.value), Number(total.value) || Infinity); }
  function quote() {
    const n = atMost();
    start.disabled = table.batch.live || !target.isComplete();
    put(cost, h("b", {}, `At most ${count(n, "question")}${workspace.price === null ? "" : `, for ${money(n * workspace.price)}`}`), h("span", { class: "soft" }, " Rows learn from each other, so it is often less."));
  }
  const options = structuredClone(workspace.options);
  const target = targetChoice(workspace, options, quote);
  const goal = [options.target.label ?? options.target].flat();
  const other = workspace.labels.find(label => !goal.includes(label));
  if (goal.length && other !== undefined) decision.value = other;
  quote();
  const form = h("form", {
    class: "panel", onsubmit: async event => {
      event.preventDefault();
      try {
        options.budget = Number(each.value);
        const chosen = { decision: decision.value, most: Number(most.value) };
        table.batch = await post("/api/many", { rows: chosen, options, budget_total: total.value ? Number(total.value) : null });
        put(trouble);
        showProgress();
        again();
      } catch (error) { put(trouble, problem(error.message)); }
    },
  }, h("div", { class: "fields" },
    workspace.labels.length ? h("div", { class: "field" }, h("label", { for: ids.decision }, "Rows decided"), decision) : null,
    h("div", { class: "field" }, h("label", { for: ids.most }, "How many rows, at most"), most),
    h("div", { class: "field" }, h("label", { for: ids.each }, "Questions a row, at most"), each),
    h("div", { class: "field" }, h("label", { for: ids.total }, "Questions in all, at most"), total)),
  h("div", { class: "field wanted" }, h("span", { class: "label" }, "Wanted"), target.node),
  cost, trouble, h("div", { class: "buttons" }, start, stop), progress);

  const fits = h("span", { class: "soft fits" });
  const filter = h("input", { id: ids.filter, type: "search", class: "search", placeholder: "Any value", oninput: () => { state.text = filter.value; showList(); } });
  const outcome = h("select", { id: ids.outcome, onchange: () => { state.outcome = outcome.value; showList(); } },
    h("option", { value: "" }, "all"), Object.entries(OUTCOMES).map(([value, words]) => h("option", { value }, words)));
  const by = h("select", { id: ids.by, onchange: () => { state.by = by.value; load(); } }, h("option", { value: "" }, "nothing"), workspace.features.map(f => h("option", { value: f.name }, f.title)));
  show();
  again();
  const view = h("div", {},
    h("div", { class: "lead" }, h("h1", {}, "Many rows"),
      h("p", {}, "All explanations of this model in the ledger, whatever made them. Each leads to its own page.")),
    h("details", { class: "starter", open: !table.lines.length || table.batch.live }, h("summary", {}, "Explain more rows"), form),
    summary,
    h("div", { class: "tools" },
      h("div", { class: "field grow" }, h("label", { for: ids.filter }, "Filter"), filter),
      h("div", { class: "field" }, h("label", { for: ids.outcome }, "Outcome"), outcome),
      h("div", { class: "field" }, h("label", { for: ids.by }, "Group by"), by)),
    groups, fits, list);
  return { title: "Many rows", view, leave: () => { gone = true; clearTimeout(timer); } };
}
