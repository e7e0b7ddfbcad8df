// One row: its decision, known answers, what may change, and the price of a search. No query is sent before a click.

import { address, badge, count, countField, debounced, get, h, lastPlace, money, optionsText, parsed, post, problem, put, readOptions, redraw, remarkLines, remember, word } from "./dom.js";
import { answerCards } from "./answers.js";
import { featureCards, valueField } from "./cards.js";
import { isSet, optionFields } from "./options.js";
import { targetChoice } from "./target.js";

const MAX_BUDGET = 10000;

export async function ownPage(workspace, params) {
  const start = parsed(params.get("v"), {});
  const fields = workspace.features.map(f => [f.name, valueField(f, start[f.name] ?? f.middle, () => remember("#/own", { v: JSON.stringify(values()) }))]);
  const values = () => Object.fromEntries(fields.map(([name, field]) => [name, field.read()]));
  const trouble = h("div", {});
  const form = h("form", {
    class: "panel", onsubmit: async event => {
      event.preventDefault();
      try {
        await post("/api/ask", { row: { values: values() } }); // only checks the row: nothing is paid
        location.hash = address("#/own/plan", { v: JSON.stringify(values()) });
      } catch (error) { put(trouble, problem(error.message)); }
    },
  }, h("div", { class: "fields" }, fields.map(([, field]) => field.node)), trouble,
  h("button", { class: "button primary", type: "submit" }, "Continue"));
  const view = h("div", { class: "narrow" }, h("p", { class: "breadcrumb" }, h("a", { href: lastPlace("#/") }, "Rows")),
    h("h1", {}, "Type in a row"),
    h("p", {}, "The fields hold typical values of the known rows. Enter what you know; nothing is asked yet."), form);
  return { title: "Type in a row", view };
}

export async function rowPage(workspace, params, position) {
  let row, request;
  if (position === null) {
    const values = parsed(params.get("v"), null);
    if (!values) throw new Error("No row has been typed in yet.");
    request = { values };
    row = { values, others: [], decision: { label: null, source: null } };
  } else {
    row = await get(`/api/rows/${position}`);
    request = { position: Number(position) };
  }
  const options = readOptions(workspace, params.get("o"));
  const path = position === null ? "#/own/plan" : `#/row/${position}`;
  const name = position === null ? "Your own row" : `Row ${row.name}`;
  const heading = h("h1", {});
  const source = h("p", { class: "soft" });
  const rules = h("div", {});
  const cost = h("p", { class: "cost", "aria-live": "polite" });
  const trouble = h("div", {});
  const go = h("button", { class: "button primary big", type: "button", onclick: begin }, "Find the smallest change");
  const ask = h("button", { class: "button", type: "button", onclick: askNow });
  const before = h("div", { class: "ask" }, ask);
  const ofNumbers = workspace.answers === "numbers";
  const target = targetChoice(workspace, options, () => edited());
  const knownCards = h("ul", { class: "answers" });
  const known = h("section", { hidden: true }, h("h2", {}, "Known already, and free"), knownCards);
  let decision = row.decision;

  function showDecision() {
    const isModel = decision.source === "model";
    put(heading, decision.label === null ? `${name}: the ${ofNumbers ? "answer" : "decision"} is not known yet`
      : [`${name}: `, isModel ? (ofNumbers ? "the model says " : "decided ") : "on file as ", badge(decision.label, "model")]);
    put(source, isModel ? "This is the model's own answer. It is known and free."
      : decision.source === "file" ? "This is the outcome in your data. The model's own answer will be the first query."
        : "The model has not been asked about this row. That will be the first query.");
    before.hidden = isModel;
    put(ask, `Ask the model now: 1 query${workspace.price === null ? "" : `, ${money(workspace.price)}`}`);
    target.show(decision.label);
  }

  async function askNow() {
    ask.disabled = true;
    try {
      const answer = await post("/api/ask", { row: request, pay: true });
      decision = { label: answer.label, source: "model" };
      put(trouble);
      showDecision();
      workspace.refresh();
      quote();
    } catch (error) { put(trouble, problem(error.message)); ask.disabled = false; }
  }

  // What the user still has to choose; "" if nothing.
  function incomplete() {
    if (budget.read() === undefined) return "How many queries may be asked?";
    if (workspace.features.every(f => f.frozen || f.constant || options.freeze.includes(f.name))) return "Unlock at least one feature: nothing may change now.";
    const empty = Object.entries(options.values).find(([, allowed]) => !allowed.length);
    if (empty) return `${workspace.features.find(f => f.name === empty[0]).title}: choose at least one value, or lock it.`;
    return target.problem();
  }

  // Remove what was shown for other choices at once, then update the address and the price.
  function edited() {
    options.budget = budget.read() ?? options.budget;
    remember(path, { v: position === null ? JSON.stringify(request.values) : "", o: optionsText(workspace, options) });
    go.disabled = true;
    put(cost, h("span", { class: "soft" }, incomplete() || "…"));
    quote();
  }

  let asked = 0, opens = ""; // the existing search that can be opened without a query
  const quote = debounced(150, async () => {
    const mine = ++asked;
    if (incomplete()) return;
    try {
      const plan = await post("/api/plan", { row: request, options });
      if (mine !== asked || incomplete()) return;
      put(trouble);
      opens = plan.paid && !plan.most ? plan.id : "";
      go.disabled = plan.most < 1 && !plan.paid;
      const price = workspace.price === null ? "" : `, for ${money(plan.most * workspace.price)} at most`;
      put(go, plan.paid && !plan.most ? "Open the search" : plan.paid ? "Go on with the search" : "Find the smallest change");
      put(cost, plan.paid && !plan.most ? h("b", {}, "Nothing to pay") : h("b", {}, `At most ${count(plan.most, "query", "queries")}${price}`),
        h("span", { class: "soft" }, plan.paid ? ` ${count(plan.paid, "query", "queries")} of this search ${plan.paid === 1 ? "was" : "were"} asked before.` : plan.decision !== null ? " The row itself is known and free." : " The row itself is one of them."));
      put(rules, plan.rules.length ? h("ul", { class: "rules" }, plan.rules.map(rule => h("li", {}, rule.text)))
        : h("p", { class: "soft" }, "None: every feature may become anything that known rows show."),
      remarkLines(plan.remarks));
      showKnown(await post("/api/answers", { row: request, options }));
    } catch (error) {
      if (mine !== asked) return;
      go.disabled = true;
      put(cost, "");
      put(trouble, problem(error.message));
    }
  });

  function showKnown(entries) {
    entries = [...entries].sort((a, b) => Number(a.breaks.length > 0) - Number(b.breaks.length > 0) || a.answer.cost - b.answer.cost);
    redraw(knownCards, entries, () => put(knownCards, answerCards(workspace, entries, { row: row.name })));
    known.hidden = !entries.length;
  }

  async function begin() {
    if (opens) { location.hash = `#/search/${opens}`; return; }
    go.disabled = true;
    try {
      const search = await post("/api/searches", { row: request, options });
      location.hash = `#/search/${search.id}`;
    } catch (error) { put(trouble, problem(error.message)); go.disabled = false; }
  }

  const budget = countField("Queries, at most", { value: options.budget, min: 2, max: MAX_BUDGET, changed: edited });
  showDecision();
  if (!incomplete()) showKnown(await post("/api/answers", { row: request, options }).catch(() => [])); // before the page is drawn, so that nothing moves
  edited();
  const values = workspace.features.map(f => h("div", {}, h("dt", {}, f.title), h("dd", {}, word(row.values[f.name]), f.unit ? h("small", {}, ` ${f.unit}`) : null)));
  const view = h("div", {},
    h("p", { class: "breadcrumb" }, h("a", { href: lastPlace("#/") }, "Rows"), position === null ? [" / ", h("a", { href: address("#/own", { v: JSON.stringify(request.values) }) }, "Edit the row")] : null), heading, source, before, known,
    h("div", { class: "columns" },
      h("div", {},
        h("section", {}, h("h2", {}, ofNumbers ? "Which answer would you like to see?" : "What should the decision have been?"), target.node),
        h("section", {}, h("h2", {}, "What may change?"),
          h("p", { class: "soft" }, "Everything that is not locked, within what the known rows show. Lock what has to stay, such as an age. ",
            "“Adjust” sets limits, a direction, or how hard a change would be. With the keyboard, arrows lead from feature to feature."),
          featureCards(workspace, row.values, options, edited)),
        h("section", {}, h("h2", {}, "Rules that will hold"), rules)),
      h("aside", { class: "side" },
        h("div", { class: "panel price" },
          h("h2", {}, "Price"),
          budget.node, h("div", { class: "main-action" }, cost, trouble, go),
          h("p", { class: "soft small" }, "You can stop at any time. Every answer is recorded, and free from then on.")),
        h("details", { class: "panel", open: isSet(workspace.declared, options) }, h("summary", {}, "More options"),
          optionFields(workspace.declared, options, edited)),
        h("details", { class: "panel" }, h("summary", {}, "The row as it is"),
          h("dl", { class: "values" }, row.others.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))), values)))));
  return { title: name, view };
}
