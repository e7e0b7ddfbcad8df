// One row: its decision, what may change, and what a search will cost. Nothing is asked here.

import { count, debounced, get, h, money, newId, number, post, problem, put, remarkLines, word } from "./dom.js";
import { featureCards, valueField } from "./cards.js";
import { isSet, optionFields } from "./options.js";
import { badge } from "./rows.js";
import { targetChoice } from "./target.js";

const OWN = "acex-studio-own";

export async function ownPage(workspace) {
  let start = {};
  try { start = JSON.parse(sessionStorage.getItem(OWN)) || {}; } catch { /* then typical values */ }
  const fields = workspace.features.map(f => [f.name, valueField(f, start[f.name] ?? f.middle, () => {})]);
  const trouble = h("div", {});
  const form = h("form", {
    class: "panel", onsubmit: async event => {
      event.preventDefault();
      const values = Object.fromEntries(fields.map(([name, field]) => [name, field.read()]));
      try {
        await post("/api/ask", { row: { values } }); // only checks the row: nothing is paid
        sessionStorage.setItem(OWN, JSON.stringify(values));
        location.hash = "#/own/plan";
      } catch (error) { put(trouble, problem(error.message)); }
    },
  }, h("div", { class: "fields" }, fields.map(([, field]) => field.node)), trouble,
  h("button", { class: "button primary", type: "submit" }, "Continue"));
  const view = h("div", { class: "narrow" }, h("p", { class: "crumb" }, h("a", { href: "#/" }, "Rows")),
    h("h1", {}, "Type in a row"),
    h("p", {}, "The fields hold typical values of the known rows. Enter what you know; nothing is asked yet."), form);
  return { title: "Type in a row", view };
}

export async function rowPage(workspace, position) {
  let row, request;
  if (position === null) {
    let values = null;
    try { values = JSON.parse(sessionStorage.getItem(OWN)); } catch { /* nothing was typed in */ }
    if (!values) throw new Error("No row has been typed in yet.");
    request = { values };
    row = { values, others: [], decision: { label: null, source: null } };
  } else {
    row = await get(`/api/rows/${position}`);
    request = { position: Number(position) };
  }
  const options = structuredClone(workspace.options);
  const name = position === null ? "Your own row" : `Row ${number(Number(position))}`;
  const heading = h("h1", {});
  const source = h("p", { class: "soft" });
  const rules = h("div", {});
  const cost = h("p", { class: "cost" });
  const trouble = h("div", {});
  const go = h("button", { class: "button primary big", type: "button", onclick: begin }, "Find the smallest change");
  const ask = h("button", { class: "button", type: "button", onclick: askNow });
  const before = h("div", { class: "ask" }, ask);
  const ofNumbers = workspace.answers === "numbers";
  const target = targetChoice(workspace, options, () => quote());
  let decision = row.decision;

  function showDecision() {
    const known = decision.source === "model";
    put(heading, decision.label === null ? `${name}: the ${ofNumbers ? "answer" : "decision"} is not known yet`
      : [`${name}: `, known ? (ofNumbers ? "the model says " : "decided ") : "on file as ", badge(decision.label, "model")]);
    put(source, known ? "This is the model's own answer. It is known and free."
      : decision.source === "file" ? "This is the outcome in your data. The model's own answer will be the first question."
        : "The model has not been asked about this row. That will be the first question.");
    before.hidden = known;
    put(ask, `Ask the model now: 1 question${workspace.price === null ? "" : `, ${money(workspace.price)}`}`);
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

  let asked = 0;
  const quote = debounced(150, async () => {
    const mine = ++asked;
    if (!target.isComplete()) {
      go.disabled = true;
      put(cost, h("b", {}, "Which number would you like to see?"), h("span", { class: "soft" }, " Enter it to see the price."));
      return;
    }
    try {
      const plan = await post("/api/plan", { row: request, options });
      if (mine !== asked) return;
      put(trouble);
      go.disabled = plan.most < 1 && !plan.paid;
      const price = workspace.price === null ? "" : `, for ${money(plan.most * workspace.price)} at most`;
      put(go, plan.paid && !plan.most ? "Open the search" : plan.paid ? "Go on with the search" : "Find the smallest change");
      put(cost, plan.paid && !plan.most ? h("b", {}, "Nothing to pay") : h("b", {}, `At most ${count(plan.most, "question")}${price}`),
        h("span", { class: "soft" }, plan.paid ? ` ${count(plan.paid, "question")} of this search ${plan.paid === 1 ? "was" : "were"} asked before.` : plan.decision !== null ? " The row itself is known and free." : " The row itself is one of them."));
      put(rules, plan.rules.length ? h("ul", { class: "rules" }, plan.rules.map(words => h("li", {}, words)))
        : h("p", { class: "soft" }, "None: every feature may become anything that known rows show."),
      remarkLines(plan.remarks));
    } catch (error) {
      if (mine !== asked) return;
      go.disabled = true;
      put(trouble, problem(error.message));
    }
  });

  async function begin() {
    go.disabled = true;
    try {
      const search = await post("/api/searches", { row: request, options });
      location.hash = `#/search/${search.id}`;
    } catch (error) { put(trouble, problem(error.message)); go.disabled = false; }
  }

  const budgetId = newId();
  const budget = h("input", {
    id: budgetId, type: "number", min: 2, max: 10000, step: 1, value: options.budget,
    onchange: () => { options.budget = Math.round(Number(budget.value)) || 2; quote(); },
  });
  showDecision();
  quote();
  const values = workspace.features.map(f => h("div", {}, h("dt", {}, f.title), h("dd", {}, word(row.values[f.name]), f.unit ? h("small", {}, ` ${f.unit}`) : null)));
  const view = h("div", {},
    h("p", { class: "crumb" }, h("a", { href: "#/" }, "Rows")), heading, source, before,
    h("div", { class: "columns" },
      h("div", {},
        h("section", {}, h("h2", {}, ofNumbers ? "Which answer would you like to see?" : "What should the decision have been?"), target.node),
        h("section", {}, h("h2", {}, "What may change?"),
          h("p", { class: "soft" }, "Everything that is not locked, within what the known rows show. Lock what has to stay, such as an age. ",
            "“Adjust” sets limits, a direction, or how hard a change would be."),
          featureCards(workspace, row.values, options, quote)),
        h("section", {}, h("h2", {}, "Rules that will hold"), rules)),
      h("aside", { class: "side" },
        h("div", { class: "panel" },
          h("h2", {}, "What it will cost"),
          h("div", { class: "field" }, h("label", { for: budgetId }, "Questions, at most"), budget),
          cost, trouble, go,
          h("p", { class: "soft small" }, "You can stop at any time. Every answer is recorded, and free from then on.")),
        h("details", { class: "panel", open: isSet(workspace.declared, options) }, h("summary", {}, "More options"),
          optionFields(workspace.declared, options, quote)),
        h("details", { class: "panel" }, h("summary", {}, "The row as it is"),
          h("dl", { class: "values" }, row.others.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))), values)))));
  return { title: name, view };
}
