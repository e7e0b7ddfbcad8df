// Bookmarks of this browser.

import { bookmarks, h, put } from "./dom.js";

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
