// Counterfactuals side by side, each confirmed by the model itself, and bookmarks of them in this browser.

import { announce, badge, bookmarks, h, put, s, costTexts, titled, word } from "./dom.js";

function way(change) {
  // The positions before and after within the feature's range: a ring and a diamond on a line.
  if (!change.places) return h("span", { class: "way" });
  const [a, b] = change.places.map(p => 5 + p * 110);
  return s("svg", { class: "way", viewBox: "0 0 120 12", "aria-hidden": "true" },
    s("line", { class: "rule", x1: 2, x2: 118, y1: 6, y2: 6 }), s("line", { class: "go", x1: a, x2: b, y1: 6, y2: 6 }),
    s("circle", { class: "from", cx: a, cy: 6, r: 3.5 }), s("path", { class: "to", d: `M${b} 1l5 5l-5 5l-5 -5z` }));
}

function needed(changes) {
  const asked = changes.filter(change => change.needed === "needed (asked)").length;
  if (asked === changes.length) return "yes, the model was asked";
  return asked ? `${asked} of ${changes.length}, the model was asked` : "not checked";
}

// A name for a counterfactual, made from its changes so that it is the same wherever it is shown.
function nameOf(answer) {
  const names = answer.changes.map(change => titled(change.feature));
  if (names.length > 3) names.splice(2, names.length, `${names.length - 2} more`);
  return `Change ${names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}` : names[0]}`;
}

// The options of a search that differ from the studio's own, in a few words.
export function noteOf(workspace, options) {
  const own = options.freeze.filter(name => !workspace.options.freeze.includes(name));
  return own.length ? `without ${own.map(titled).join(", ")}` : "";
}

// Cards of answers, without duplicates. An entry has `id` (of its search, or "" for a what-if row), `options`, `answer`,
// `breaks` (rules of the page that it violates) and `current`.
export function answerCards(workspace, entries, actions) {
  const seen = new Set();
  const different = entries.filter(({ answer }) => { const key = JSON.stringify(answer.row); return !seen.has(key) && seen.add(key); });
  const costs = costTexts(different.map(({ answer }) => answer.cost));
  const names = different.map(({ answer }) => nameOf(answer));
  return different.map((entry, i) => card(workspace, entry, names.indexOf(names[i]) === names.lastIndexOf(names[i]) ? names[i] : `${names[i]} (${costs[i]})`, costs[i], actions));
}

// `without` starts a search without a feature, `tryOut` copies the row to the what-if form; `row` is the name of the row.
function card(workspace, entry, title, cost, { without, tryOut, busy, row = "" }) {
  const { id, answer, breaks = [], current } = entry;
  const mark = h("button", {
    type: "button", class: "star", "aria-pressed": String(bookmarks.has(id, answer.position)), "aria-label": `Bookmark ${title}`,
    onclick: () => {
      const on = bookmarks.toggle({ id, position: answer.position, sentence: answer.sentence, row, model: workspace.model, at: new Date().toISOString() });
      mark.setAttribute("aria-pressed", String(on));
      announce(on ? "Bookmarked" : "Bookmark removed");
    },
  }, s("svg", { viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true" },
    s("path", { d: "M10 2.5l2.3 4.7 5.2.8-3.8 3.7.9 5.2-4.6-2.5-4.6 2.5.9-5.2L2.5 8l5.2-.8z" })));
  const note = id === "" ? "found by “What if”" : noteOf(workspace, entry.options);
  return h("li", { class: `answer${current ? " current" : ""}${breaks.length ? " breaks" : ""}` },
    h("div", { class: "answer-head" }, h("h3", {}, title), id === "" ? null : mark),
    answer.kind ? h("p", { class: "soft small" }, answer.kind) : null,
    note ? h("p", { class: "soft small" }, note) : null,
    breaks.length ? h("p", { class: "warning small" }, h("b", {}, "Does not count under these rules: "), breaks.join(" ")) : null,
    h("p", { class: "becomes" }, badge(answer.label), h("span", { class: "soft" }, " if")),
    h("ul", { class: "changes" }, answer.changes.map(change => h("li", {},
      h("div", { class: "change" },
        h("span", { class: "what" }, titled(change.feature)),
        h("span", { class: "values" }, h("span", { class: "before" }, word(change.before)), h("span", { class: "unseen" }, " becomes "), h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
          h("b", {}, word(change.after)), change.unit ? h("small", {}, ` ${change.unit}`) : null)),
      h("div", { class: "change-more" }, way(change),
        without && !breaks.length ? h("button", { type: "button", class: "link", disabled: busy, onclick: () => without(change.feature, entry), "aria-label": `Not this feature: ${titled(change.feature)}` }, "Not this feature") : null)))),
    h("dl", { class: "facts" },
      h("div", {}, h("dt", {}, "Cost of the change"), h("dd", {}, answer.size, h("small", { title: "in standard deviations of the known rows" }, ` ${cost}`))),
      h("div", {}, h("dt", {}, answer.changes.length === 1 ? "Is it needed?" : "Is each change needed?"), h("dd", {}, needed(answer.changes))),
      h("div", {}, h("dt", {}, "Such a row is"), h("dd", {}, answer.typical))),
    answer.robust ? h("p", { class: "small" }, answer.robust) : null,
    h("div", { class: "answer-foot" },
      tryOut ? h("button", { type: "button", class: "link", onclick: () => tryOut(answer) }, "Try it a little differently") : null,
      current || id === "" ? null : h("a", { href: `#/search/${id}` }, "Open its search")));
}

export async function savedPage() {
  const list = h("ul", { class: "saved" });
  function show() {
    const all = bookmarks.all();
    put(list, all.map(mark => h("li", {}, h("a", { href: `#/search/${mark.id}` }, mark.row ? `${mark.row}: ` : "", mark.sentence), h("small", { class: "soft" }, ` ${mark.model}, ${new Date(mark.at).toLocaleDateString()}`),
      h("button", { type: "button", class: "link", "aria-label": `Remove: ${mark.sentence}`, onclick: () => { bookmarks.toggle(mark); show(); } }, "Remove"))));
    if (!all.length) put(list, h("li", { class: "empty" }, "No bookmarks yet. The star on a change puts it here."));
  }
  show();
  return { title: "Bookmarks", view: h("div", { class: "narrow" }, h("h1", {}, "Bookmarks"), h("p", { class: "soft" }, "Kept in this browser only."), list) };
}
