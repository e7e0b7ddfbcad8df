// One search: watch it, compare its answers, try other rows, take the results away.

import { announce, count, get, h, money, newId, number, post, problem, put, redraw, remarkLines, short, titled, word } from "./dom.js";
import { answerCard } from "./answers.js";
import { drawChart, newChart } from "./chart.js";
import { whatIf } from "./whatif.js";

const LIVE = ["waiting", "running", "stopping"];
const MORE = 10;
const STATES = {
  waiting: "Waiting for its turn", running: "Searching", stopping: "Stopping after this answer", stopped: "Stopped",
  ended: "Done", failed: "Interrupted by an error", interrupted: "Interrupted",
};
const ENDS = {
  budget: "All questions of the budget were asked. More may find a smaller change.",
  settled: "More questions are not expected to find a smaller change.",
  exhausted: "There is nothing left to ask.",
  time: "The time limit was reached. More time may find a smaller change.",
};

export async function searchPage(workspace, id) {
  let search = await get(`/api/searches/${id}`);
  let steps = search.steps;
  let others = [];
  let stream = null, retry = 0, gone = false, wasLive = false;

  const heading = h("h1", { class: "answer-line" });
  const about = h("span", { class: "soft" });
  const state = h("p", { class: "state-line" });
  const numbers = h("p", { class: "numbers" });
  const trouble = h("div", {});
  const chart = newChart();
  const lines = h("tbody", {});
  const answers = h("ul", { class: "answers" });
  const button = (words, act, kind = "") => h("button", { type: "button", class: `button ${kind}`, onclick: act }, words);
  const stop = button("Stop", () => act(post(`/api/searches/${id}/stop`)));
  const go = button("Go on", () => act(post(`/api/searches/${id}/resume`, { budget: search.budget })));
  const more = button("Ten more questions", () => {
    const budget = Math.max(search.budget, search.paid) + MORE;
    // A search that has settled continues only with effort "spend": another search, for which known answers are free.
    const isSettled = search.state === "ended" && search.explanation?.stopped_by === "settled";
    act(isSettled ? post("/api/searches", { row: rowRequest(), options: { ...search.options, budget: MORE, effort: "spend" } }) : post(`/api/searches/${id}/resume`, { budget }));
  });
  const after = h("div", {});

  async function act(promise) {
    try {
      const now = await promise;
      if (now.id !== id) { location.hash = `#/search/${now.id}`; return; }
      put(trouble);
      update(now);
      follow();
    } catch (error) { put(trouble, problem(error.message)); }
  }

  function update(now) {
    const before = search.explanation?.sentence, was = search.state;
    search = { ...search, ...now };
    if (now.explanation === null) search.explanation = null;
    if (LIVE.includes(search.state)) wasLive = true;
    show();
    const sentence = search.explanation?.answers.length ? search.explanation.sentence : "";
    if (sentence && sentence !== before) announce(`Best so far: ${sentence}`);
    if (search.state !== was && !LIVE.includes(search.state)) { announce(`${STATES[search.state]}. ${search.explanation?.sentence || ""}`); compare(); workspace.refresh(); tryForm.look(); }
  }

  function show() {
    const live = LIVE.includes(search.state);
    const found = search.explanation;
    const best = found?.answers.length > 0;
    const before = found?.before ?? (steps.length ? steps[0].label : null);
    put(about, ` — ${[before, `wanted: ${search.wanted.join(" or ")}`, noteOf(search)].filter(Boolean).join(", ")}`);
    put(heading, best ? found.sentence : live || !found ? "Looking for a change that alters the decision …" : found.sentence);
    put(state, h("span", { class: `dot ${search.state}`, "aria-hidden": "true" }), STATES[search.state],
      search.state === "ended" && found ? h("span", { class: "soft" }, ` ${found.outcome === "already_target" ? "" : ENDS[found.stopped_by]}`) : null,
      search.state === "interrupted" ? h("span", { class: "soft" }, " Nothing is lost: “Go on” continues from here.") : null);
    const free = Math.max(steps.length - search.paid, 0);
    put(numbers, h("b", {}, `${number(search.paid)} of ${number(search.budget)}`), " questions paid for", workspace.price === null ? "" : ` (${money(search.paid * workspace.price)})`,
      free ? `, ${number(free)} known and free` : "", ".");
    stop.disabled = !live || search.state === "stopping";
    go.disabled = live || search.state === "ended";
    more.disabled = live || (search.state === "ended" && found?.stopped_by === "exhausted") || found?.outcome === "already_target";
    put(trouble, search.error ? problem(search.error) : null,
      !live && found && !best && found.advice ? h("p", { class: "warning" }, found.advice) : null,
      remarkLines((found?.remarks || []).filter(remark => remark.code !== "unfinished"))); // the line above says so
    drawChart(chart, steps, search.budget);
    showLines();
    showAnswers();
  }

  function showLines() {
    put(lines, steps.map(step => h("tr", {}, h("th", { scope: "row" }, step.position === 0 ? "the row" : step.position),
      h("td", {}, step.changes.map(([name, , to]) => `${titled(name)} ${word(to)}`).join(", ") || "as it is"),
      h("td", {}, String(step.label)), h("td", {}, step.position === 0 ? "" : step.hit ? "yes" : "no"),
      h("td", { class: "figure" }, short(step.cost)), h("td", {}, step.paid ? "paid" : "free"))));
  }

  function showAnswers() {
    const busy = LIVE.includes(search.state);
    const mine = (search.explanation?.answers || []).map(answer => [{ id, options: search.options, model: workspace.model, note: noteOf(search) }, answer, true]);
    const rest = others.filter(o => o.id !== id).flatMap(o => o.explanation.answers.slice(0, 2).map(answer => [{ id: o.id, options: o.options, model: workspace.model, note: noteOf(o) }, answer, false]));
    const seen = new Set(), shown = [];
    for (const each of [...mine, ...rest]) {
      const key = JSON.stringify(each[1].row);
      if (!seen.has(key)) { seen.add(key); shown.push(each); }
    }
    redraw(answers, [shown, busy], () => put(answers, shown.map(([entry, answer, current], i) => answerCard(entry, answer, `Answer ${i + 1}`, {
      current, busy, without, tryOut: answer => tryForm.load(answer.row),
    }))));
    section.hidden = !shown.length;
  }

  function noteOf(entry) {
    const own = entry.options.freeze.filter(name => !workspace.options.freeze.includes(name));
    return own.length ? `without ${own.map(titled).join(", ")}` : "";
  }

  // The same options, but this feature stays: another search, for which known answers are free.
  const rowRequest = () => search.position !== null ? { position: search.position } : { values: search.row };
  async function without(name, entry) {
    const options = { ...entry.options, freeze: [...entry.options.freeze, name] };
    try { location.hash = `#/search/${(await post("/api/searches", { row: rowRequest(), options })).id}`; } catch (error) { put(trouble, problem(error.message)); }
  }

  async function compare() {
    try { others = await get(`/api/searches/${id}/answers`); if (!gone) showAnswers(); } catch { /* shown without them */ }
  }

  // -- following it: the browser reconnects when the studio is back
  const banner = document.getElementById("banner");
  function follow() {
    if (stream || gone || !LIVE.includes(search.state)) return;
    stream = new EventSource(`/api/searches/${id}/events?after=${steps.length - 1}`);
    stream.addEventListener("step", event => {
      const step = JSON.parse(event.data);
      steps = [...steps.slice(0, step.position), step];
      drawChart(chart, steps, search.budget);
      showLines();
    });
    stream.addEventListener("state", event => {
      banner.hidden = true;
      const now = JSON.parse(event.data);
      if (now.state === "interrupted" && wasLive) {
        // The studio was restarted during the search: continue within the agreed budget.
        resume();
        return;
      }
      if (now.n_steps < steps.length) steps = steps.slice(0, now.n_steps);
      update(now);
      if (!LIVE.includes(now.state)) close();
    });
    stream.onerror = () => {
      put(banner, "The studio does not answer. The page keeps trying and continues when it is back.");
      banner.hidden = false;
      if (stream && stream.readyState === EventSource.CLOSED) { close(); retry = setTimeout(follow, 1500); }
    };
  }
  async function resume() {
    close();
    try {
      search = { ...search, ...(await post(`/api/searches/${id}/resume`, { budget: search.budget })) };
      show();
      follow();
    } catch (error) { update({ state: "interrupted", error: error.message }); }
  }
  function close() { stream?.close(); stream = null; banner.hidden = true; }

  const table = newId();
  const tryForm = whatIf(workspace, search.row, search.wanted);
  const section = h("section", {}, h("h2", {}, "Answers"),
    h("p", { class: "soft" }, "Each was confirmed by the model itself. An answer says how the model would decide, not what would happen in the world."), answers);
  const name = search.position === null ? "A row of your own" : `Row ${search.position}`;
  const from = search.position === null ? "#/own/plan" : `#/row/${search.position}`;
  put(after, section, tryForm.node, exportsSection(id));
  const view = h("div", {},
    h("p", { class: "crumb" }, h("a", { href: "#/" }, "Rows"), " / ", h("a", { href: from }, name), about),
    h("div", { class: "watch" },
      h("div", { class: "verdict" }, heading, state, numbers, h("div", { class: "buttons" }, stop, go, more), trouble,
        search.rules.length ? h("details", {}, h("summary", {}, `${count(search.rules.length, "rule")} held`), h("ul", { class: "rules" }, search.rules.map(words => h("li", {}, words)))) : null),
      h("figure", {}, chart,
        h("figcaption", {}, [["hit", workspace.answers === "numbers" ? "the answer is as wanted" : "the decision changed"], ["miss", workspace.answers === "numbers" ? "it is not" : "it did not"], ["line", "smallest so far"]].map(([key, words]) => h("span", {}, h("span", { class: `key ${key}` }), words))),
        h("details", {}, h("summary", {}, "Every question in a table"),
          h("div", { class: "wide", tabindex: "0", role: "region", "aria-labelledby": table },
            h("table", { class: "lines" }, h("caption", { class: "unseen", id: table }, "Every question"),
              h("thead", {}, h("tr", {}, ["Question", "What was different", "Answer", "Wanted", "Size", ""].map(t => h("th", { scope: "col" }, t)))), lines))))),
    after);
  const resized = new ResizeObserver(() => drawChart(chart, steps, search.budget));
  resized.observe(chart);
  show();
  if (LIVE.includes(search.state)) wasLive = true;
  follow();
  compare();
  return { title: name, view, leave: () => { gone = true; resized.disconnect(); clearTimeout(retry); close(); } };
}

// What a person can take away.
function exportsSection(id) {
  const script = h("div", {});
  const link = (what, words, more) => h("li", {}, h("a", { href: `/api/searches/${id}/exports/${what}`, target: what.endsWith("html") ? "_blank" : null, rel: "noopener" }, words), h("span", { class: "soft" }, ` ${more}`));

  async function copy(code) {
    try { await navigator.clipboard.writeText(code); announce("Copied"); } catch { announce("This browser does not let the page copy; select the text instead."); }
  }

  async function load() {
    try {
      const code = (await get(`/api/searches/${id}/exports/code`)).python;
      put(script, h("div", { class: "code" }, h("div", { class: "code-head" }, h("h3", {}, "The same in Python"),
        h("button", { type: "button", class: "link", "aria-label": "Copy the code", onclick: () => copy(code) }, "Copy")), h("pre", { tabindex: "0" }, code)));
    } catch (error) { put(script, problem(error.message)); }
  }

  return h("section", {}, h("h2", {}, "Take it away"),
    h("ul", { class: "links" },
      link("report.html", "The report", "one page, to read, print or archive"),
      link("answers.csv", "Answers as CSV", "the changed versions of the row"),
      link("steps.csv", "Questions as CSV", "every row that was sent"),
      link("explanation.json", "Everything as JSON", "for programs")),
    h("details", { ontoggle: event => { if (event.currentTarget.open) load(); } }, h("summary", {}, "Code that gives the same result"), script));
}
