// Answers side by side, each confirmed by the model itself, and bookmarks of them in this browser.

import { announce, bookmarks, h, put, s, short, titled, word } from "./dom.js";

function way(change) {
  // From where to where within the feature's range: a ring and a diamond on a line.
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

// One answer. `without` starts a search without a feature, `tryOut` copies the row to the what-if form.
export function answerCard(entry, answer, title, { without, tryOut, current, busy }) {
  const mark = h("button", {
    type: "button", class: "star", "aria-pressed": String(bookmarks.has(entry.id, answer.position)), "aria-label": `Bookmark ${title}`,
    onclick: () => {
      const on = bookmarks.toggle({ id: entry.id, position: answer.position, sentence: answer.sentence, model: entry.model, at: new Date().toISOString() });
      mark.setAttribute("aria-pressed", String(on));
      announce(on ? "Bookmarked" : "Bookmark removed");
    },
  }, s("svg", { viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true" },
    s("path", { d: "M10 2.5l2.3 4.7 5.2.8-3.8 3.7.9 5.2-4.6-2.5-4.6 2.5.9-5.2L2.5 8l5.2-.8z" })));
  return h("li", { class: current ? "answer current" : "answer" },
    h("div", { class: "answer-head" }, h("h3", {}, title), mark),
    answer.kind ? h("p", { class: "soft small" }, answer.kind) : null,
    entry.note ? h("p", { class: "soft small" }, entry.note) : null,
    h("p", { class: "becomes" }, h("span", { class: "badge" }, String(answer.label)), h("span", { class: "soft" }, " if"),),
    h("ul", { class: "changes" }, answer.changes.map(change => h("li", {},
      h("div", { class: "change" },
        h("span", { class: "what" }, titled(change.feature)),
        h("span", { class: "values" }, h("span", { class: "before" }, word(change.before)), h("span", { class: "unseen" }, " becomes "), h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
          h("b", {}, word(change.after)), change.unit ? h("small", {}, ` ${change.unit}`) : null)),
      h("div", { class: "change-more" }, way(change),
        without ? h("button", { type: "button", class: "link", disabled: busy, onclick: () => without(change.feature, entry), "aria-label": `Not ${titled(change.feature)}: search on without it` }, "Not this feature") : null)))),
    h("dl", { class: "facts" },
      h("div", {}, h("dt", {}, "Size of the change"), h("dd", {}, answer.size, h("small", {}, ` ${short(answer.cost)}`))),
      h("div", {}, h("dt", {}, answer.changes.length === 1 ? "Is it needed?" : "Is each change needed?"), h("dd", {}, needed(answer.changes))),
      h("div", {}, h("dt", {}, "Such a row is"), h("dd", {}, answer.typical, answer.affinity === null ? null : h("small", {}, ` ${answer.affinity.toFixed(2)}`))),
      h("div", {}, h("dt", {}, "Close by, decided alike"), h("dd", {}, answer.robustness === null ? "not estimated" : `about ${Math.round(100 * answer.robustness)} %`))),
    h("div", { class: "answer-foot" },
      tryOut ? h("button", { type: "button", class: "link", onclick: () => tryOut(answer) }, "Try it a little differently") : null,
      current ? null : h("a", { href: `#/search/${entry.id}` }, "Open its search")));
}

export async function savedPage() {
  const list = h("ul", { class: "saved" });
  function show() {
    const all = bookmarks.all();
    put(list, all.map(mark => h("li", {}, h("a", { href: `#/search/${mark.id}` }, mark.sentence), h("small", { class: "soft" }, ` ${mark.model}, ${new Date(mark.at).toLocaleDateString()}`),
      h("button", { type: "button", class: "link", "aria-label": `Remove: ${mark.sentence}`, onclick: () => { bookmarks.toggle(mark); show(); } }, "Remove"))));
    if (!all.length) put(list, h("li", { class: "empty" }, "No bookmarks yet. The star on an answer puts it here."));
  }
  show();
  return { title: "Bookmarks", view: h("div", { class: "narrow" }, h("h1", {}, "Bookmarks"), h("p", { class: "soft" }, "Kept in this browser only."), list) };
}
