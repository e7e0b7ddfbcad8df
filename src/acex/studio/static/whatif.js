// A what-if row: the price is shown before it is paid.

import { announce, debounced, h, money, post, problem, put, word } from "./dom.js";
import { valueField } from "./cards.js";
import { badge } from "./rows.js";

export function whatIf(workspace, row, wanted) {
  const fields = workspace.features.map(f => [f.name, valueField(f, row[f.name], () => look())]);
  const price = h("p", { class: "cost", "aria-live": "polite" });
  const asked = h("ul", { class: "asked" });
  const button = h("button", { class: "button primary", type: "submit" }, "Ask the model");
  const values = () => Object.fromEntries(fields.map(([name, field]) => [name, field.read()]));
  const differs = now => workspace.features.filter(f => String(now[f.name]) !== String(row[f.name])).map(f => `${f.title} ${word(now[f.name])}`);
  let mine = 0;

  const look = debounced(200, async () => {
    const turn = ++mine;
    const now = values();
    const changed = differs(now);
    for (const [name, field] of fields) field.node.classList.toggle("changed", String(now[name]) !== String(row[name]));
    try {
      const answer = await post("/api/ask", { row: { values: now } });
      if (turn !== mine) return;
      button.disabled = answer.known;
      put(price, answer.known ? [changed.length ? "Known already, and free: " : "As it is: ", badge(answer.label)]
        : [h("b", {}, `1 question${answer.price === null ? "" : `, ${money(answer.price)}`}`), h("span", { class: "soft" }, " — the model has not been asked about this row yet.")]);
    } catch (error) { if (turn === mine) { put(price, problem(error.message)); button.disabled = true; } }
  });

  const form = h("form", {
    class: "panel", onsubmit: async event => {
      event.preventDefault();
      const now = values();
      button.disabled = true;
      try {
        const answer = await post("/api/ask", { row: { values: now }, pay: true });
        const words = differs(now).join(", ") || "the row as it is";
        asked.prepend(h("li", {}, badge(answer.label), h("span", {}, ` with ${words}`), h("small", { class: "soft" }, answer.paid ? " paid" : " known, free")));
        announce(`${answer.label}, with ${words}`);
        workspace.refresh();
        look();
      } catch (error) { put(price, problem(error.message)); button.disabled = false; }
    },
  }, h("div", { class: "fields" }, fields.map(([, field]) => field.node)), h("div", { class: "ask-line" }, button, price), asked);
  const node = h("section", { id: "whatif" }, h("h2", {}, "What if … ?"),
    h("p", { class: "soft" }, `Change the row as you like, and ask what the ${workspace.answers === "numbers" ? "answer" : "decision"} would be. Wanted: ${wanted.join(" or ")}.`), form);
  look();
  return {
    node, look, // more may be known by now
    load(to) { for (const [name, field] of fields) field.set(to[name]); look(); node.scrollIntoView({ block: "start" }); node.querySelector("input,select").focus({ preventScroll: true }); },
  };
}
