// What a person can take away.

import { announce, get, h, problem, put } from "./dom.js";

export function exportsSection(id) {
  const commands = h("div", {});
  const link = (what, words, more) => h("li", {}, h("a", { href: `/api/searches/${id}/exports/${what}`, target: what.endsWith("html") ? "_blank" : null, rel: "noopener" }, words), h("span", { class: "soft" }, ` ${more}`));

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
      const code = await get(`/api/searches/${id}/exports/commands`);
      put(commands, code.shell ? block("The same in a shell", code.shell) : h("p", { class: "soft" }, code.why_not), block("The same in Python", code.python));
    } catch (error) { put(commands, problem(error.message)); }
  }

  const node = h("section", {}, h("h2", {}, "Take it away"),
    h("ul", { class: "links" },
      link("report.html", "The report", "one page, to read, print or archive"),
      link("letter.txt", "The letter", "the answer in sentences, to be edited"),
      link("answers.csv", "Answers as CSV", "the row and its changed versions"),
      link("steps.csv", "Questions as CSV", "every row that was sent"),
      link("explanation.json", "Everything as JSON", "for programs")),
    h("details", { ontoggle: event => { if (event.currentTarget.open) load(); } }, h("summary", {}, "Commands that give the same result"), commands));
  return node;
}
