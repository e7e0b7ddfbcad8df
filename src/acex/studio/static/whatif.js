// A what-if row: the price is shown before a query is sent. Rows that were tried are kept in the address.

import { announce, badge, debounced, h, money, post, problem, put, word } from "./dom.js";
import { finder, MANY, valueField } from "./cards.js";

// `start`: rows tried before, as the values that differ from the row; `tried(all)` is called after each new one.
export function whatIf(workspace, row, wanted, { start, options, tried }) {
  const fields = workspace.features.map(f => [f.name, valueField(f, row[f.name], () => { put(price, h("span", { class: "soft" }, "…")); button.disabled = true; look(); })]);
  const price = h("div", { class: "cost", "aria-live": "polite" });
  const asked = h("ul", { class: "asked" });
  const button = h("button", { class: "button primary", type: "submit" }, "Ask the model");
  const values = () => Object.fromEntries(fields.map(([name, field]) => [name, field.read()]));
  const isChanged = (now, name) => String(now[name]) !== String(row[name]);
  const changesOf = now => Object.fromEntries(workspace.features.filter(f => isChanged(now, f.name)).map(f => [f.name, now[f.name]]));
  const inWords = changes => workspace.features.filter(f => f.name in changes).map(f => `${f.title} ${word(changes[f.name])}`).join(", ") || "the row as it is";
  const answerOf = answer => [badge(answer.label), answer.number === null ? null : ` probability ${answer.number.toFixed(3)}`];
  const all = [];
  let mine = 0;

  const look = debounced(200, async () => {
    const turn = ++mine;
    const now = values();
    for (const [name, field] of fields) field.node.classList.toggle("changed", isChanged(now, name));
    try {
      const answer = await post("/api/ask", { row: { values: now }, options });
      if (turn !== mine) return;
      button.disabled = answer.known;
      put(price, answer.known ? [Object.keys(changesOf(now)).length ? "Known already, and free: " : "As it is: ", answerOf(answer)]
        : [h("b", {}, `1 query${answer.price === null ? "" : `, ${money(answer.price)}`}`), h("span", { class: "soft" }, " — the model has not been asked about this row yet.")],
      answer.outside.map(name => { const f = workspace.features.find(g => g.name === name); return h("p", { class: "warning small" }, `${f.title} ${word(now[name])} is outside the known rows (${f.low} to ${f.high}). The model may never have seen such a value.`); }));
    } catch (error) { if (turn === mine) { put(price, problem(error.message)); button.disabled = true; } }
  });

  // Keep the changed features in view.
  function find(words) {
    const now = values();
    workspace.features.forEach((f, i) => { fields[i][1].node.hidden = !isChanged(now, f.name) && !words.every(w => f.title.toLowerCase().includes(w)); });
  }

  // Add a row with a known answer to the list.
  function add(changes, answer) {
    all.push(changes);
    asked.prepend(h("li", {}, answerOf(answer), h("span", {}, ` with ${inWords(changes)}`), h("small", { class: "soft" }, answer.paid ? " paid" : " known, free")));
  }

  const form = h("form", {
    class: "panel", onsubmit: async event => {
      event.preventDefault();
      const now = values();
      button.disabled = true;
      try {
        const answer = await post("/api/ask", { row: { values: now }, options, pay: true });
        add(changesOf(now), answer);
        tried(all);
        announce(`${answer.label}, with ${inWords(changesOf(now))}`);
        workspace.refresh();
        look();
      } catch (error) { put(price, problem(error.message)); button.disabled = false; }
    },
  }, fields.length > MANY ? h("div", { class: "card-tools" }, finder("Find a feature to change", find)) : null,
  h("div", { class: "fields" }, fields.map(([, field]) => field.node)), h("div", { class: "ask-line" }, button, price), asked);
  const node = h("section", { id: "whatif" }, h("h2", {}, "What if … ?"),
    h("p", { class: "soft" }, `Change the row as you like, and ask what the ${workspace.answers === "numbers" ? "answer" : "decision"} would be. Wanted: ${wanted.join(" or ")}.`), form);
  look();
  (async () => {
    for (const changes of start) {
      const answer = await post("/api/ask", { row: { values: { ...row, ...changes } }, options }).catch(() => null);
      if (answer?.known) add(changes, answer);
    }
  })();
  return {
    node, look, // other answers may be known by now
    load(to) { for (const [name, field] of fields) field.set(to[name]); look(); node.scrollIntoView({ block: "start" }); node.querySelector("input,select").focus({ preventScroll: true }); },
  };
}
