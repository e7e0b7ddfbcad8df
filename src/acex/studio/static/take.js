// What a person takes along.

import { announce, get, h, problem, put } from "./dom.js";

export function takeAlong(id) {
  const commands = h("div", {});
  const link = (what, words, more) => h("li", {}, h("a", { href: `/api/searches/${id}/take/${what}`, target: what.endsWith("html") ? "_blank" : null, rel: "noopener" }, words), h("span", { class: "soft" }, ` ${more}`));

  function block(title, code) {
    return h("div", { class: "code" }, h("div", { class: "code-head" }, h("h3", {}, title),
      h("button", {
        type: "button", class: "link", "aria-label": `Copy: ${title}`,
        onclick: async () => {
          try { await navigator.clipboard.writeText(code); announce("Copied"); } catch { announce("This browser does not let the page copy; select the text instead."); }
        },
      }, "Copy")), h("pre", { tabindex: "0" }, code));
  }

  async function load() {
    try {
      const told = await get(`/api/searches/${id}/take/commands`);
      put(commands, told.shell ? block("The same in a shell", told.shell) : h("p", { class: "soft" }, told.why_not), block("The same in Python", told.python));
    } catch (error) { put(commands, problem(error.message)); }
  }

  const node = h("section", {}, h("h2", {}, "Take it along"),
    h("ul", { class: "links" },
      link("report.html", "The report", "one page, to read, print or file"),
      link("letter.txt", "The letter", "the answer in sentences, to be edited"),
      link("answers.csv", "Answers as CSV", "the row and its changed versions"),
      link("steps.csv", "Questions as CSV", "everything that was asked"),
      link("explanation.json", "All of it as JSON", "for programs")),
    h("details", { ontoggle: event => { if (event.currentTarget.open) load(); } }, h("summary", {}, "Commands that give the same result"), commands));
  return node;
}
