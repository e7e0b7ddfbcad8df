// One search: watch it, compare what it finds, try something of one's own, take it along.

import { announce, count, get, h, money, newId, number, post, problem, put, redraw, short, titled, word } from "./dom.js";
import { answerCard } from "./answers.js";
import { drawChart, newChart } from "./chart.js";
import { takeAlong } from "./take.js";
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
};

export async function searchPage(desk, id) {
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
  const go = button("Go on", () => act(post(`/api/searches/${id}/go`, { budget: search.budget })));
  const more = button("Ten more questions", () => {
    const budget = Math.max(search.budget, search.paid) + MORE;
    const isSettled = search.state === "ended" && search.told?.stopped_by === "settled";
    act(isSettled ? post("/api/searches", { row: rowSaid(), wishes: { ...search.wishes, budget: search.paid + MORE, effort: "spend" } }) : post(`/api/searches/${id}/go`, { budget }));
  });
  const after = h("div", {});

  async function act(promise) {
    try {
      const now = await promise;
      if (now.id !== id) { location.hash = `#/search/${now.id}`; return; }
      put(trouble);
      take(now);
      follow();
    } catch (error) { put(trouble, problem(error.message)); }
  }

  function take(now) {
    const before = search.told?.sentence, was = search.state;
    search = { ...search, ...now };
    if (now.told === null) search.told = null;
    if (LIVE.includes(search.state)) wasLive = true;
    show();
    const sentence = search.told?.answers.length ? search.told.sentence : "";
    if (sentence && sentence !== before) announce(`Best so far: ${sentence}`);
    if (search.state !== was && !LIVE.includes(search.state)) { announce(`${STATES[search.state]}. ${search.told?.sentence || ""}`); compare(); desk.refresh(); tryForm.look(); }
  }

  function show() {
    const live = LIVE.includes(search.state);
    const told = search.told;
    const best = told?.answers.length > 0;
    const before = told?.before ?? (steps.length ? steps[0].label : null);
    put(about, ` — ${[before, `wanted: ${search.wanted.join(" or ")}`, noteOf(search)].filter(Boolean).join(", ")}`);
    put(heading, best ? told.sentence : live || !told ? "Looking for a change that alters the decision …" : told.sentence);
    put(state, h("span", { class: `dot ${search.state}`, "aria-hidden": "true" }), STATES[search.state],
      search.state === "ended" && told ? h("span", { class: "soft" }, ` ${told.outcome === "already_target" ? "" : ENDS[told.stopped_by]}`) : null,
      search.state === "interrupted" ? h("span", { class: "soft" }, " Nothing is lost: go on continues from here.") : null);
    const free = Math.max(steps.length - search.paid, 0);
    put(numbers, h("b", {}, `${number(search.paid)} of ${number(search.budget)}`), " questions paid for", search.money === null ? "" : ` (${money(search.money)})`,
      free ? `, ${number(free)} known and free` : "", ".");
    stop.disabled = !live || search.state === "stopping";
    go.disabled = live || search.state === "ended";
    more.disabled = live || (search.state === "ended" && told?.stopped_by === "exhausted") || told?.outcome === "already_target";
    put(trouble, search.error ? problem(search.error) : null,
      !live && told && !best && told.advice ? h("p", { class: "warning" }, told.advice) : null,
      (told?.warnings || []).filter(w => !w.includes("has not ended")).map(words => h("p", { class: "warning" }, words)));
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
    const mine = (search.told?.answers || []).map(answer => [{ id, wishes: search.wishes, model: desk.model, note: noteOf(search) }, answer, true]);
    const rest = others.filter(o => o.id !== id).flatMap(o => o.told.answers.slice(0, 2).map(answer => [{ id: o.id, wishes: o.wishes, model: desk.model, note: noteOf(o) }, answer, false]));
    const seen = new Set(), shown = [];
    for (const each of [...mine, ...rest]) {
      const key = JSON.stringify(each[1].row);
      if (!seen.has(key)) { seen.add(key); shown.push(each); }
    }
    redraw(answers, [shown, busy], () => put(answers, shown.map(([entry, answer, current], i) => answerCard(entry, answer, `Answer ${i + 1}`, {
      current, busy, without, tryOut: told => tryForm.load(told.row),
    }))));
    section.hidden = !shown.length;
  }

  function noteOf(entry) {
    const own = entry.wishes.freeze.filter(name => !desk.wishes.freeze.includes(name));
    return own.length ? `without ${own.map(titled).join(", ")}` : "";
  }

  // The same wishes, but this feature stays: a search of its own, with what is known already free.
  const rowSaid = () => search.position !== null ? { position: search.position } : { values: search.row };
  async function without(name, entry) {
    const wishes = { ...entry.wishes, freeze: [...entry.wishes.freeze, name] };
    try { location.hash = `#/search/${(await post("/api/searches", { row: rowSaid(), wishes })).id}`; } catch (error) { put(trouble, problem(error.message)); }
  }

  async function compare() {
    try { others = await get(`/api/searches/${id}/answers`); if (!gone) showAnswers(); } catch { /* they are extra */ }
  }

  // -- following it: the browser comes back by itself when the studio does
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
        // The studio was started anew in the midst of it: go on with what was agreed upon.
        resume();
        return;
      }
      if (now.n_steps < steps.length) steps = steps.slice(0, now.n_steps);
      take(now);
      if (!LIVE.includes(now.state)) close();
    });
    stream.onerror = () => {
      put(banner, "The studio does not answer. The page looks for it, and goes on when it is back.");
      banner.hidden = false;
      if (stream && stream.readyState === EventSource.CLOSED) { close(); retry = setTimeout(follow, 1500); }
    };
  }
  async function resume() {
    close();
    try {
      search = { ...search, ...(await post(`/api/searches/${id}/go`, { budget: search.budget })) };
      show();
      follow();
    } catch (error) { take({ state: "interrupted", error: error.message }); }
  }
  function close() { stream?.close(); stream = null; banner.hidden = true; }

  const table = newId();
  const tryForm = whatIf(desk, search.row, search.wanted);
  const section = h("section", {}, h("h2", {}, "Answers"),
    h("p", { class: "soft" }, "Each was confirmed by the model itself. An answer says how the model would decide, not what would happen in the world."), answers);
  const name = search.position === null ? "A row of your own" : `Row ${search.position}`;
  const from = search.position === null ? "#/own/plan" : `#/row/${search.position}`;
  put(after, section, tryForm.node, takeAlong(id));
  const view = h("div", {},
    h("p", { class: "crumb" }, h("a", { href: "#/" }, "Rows"), " / ", h("a", { href: from }, name), about),
    h("div", { class: "watch" },
      h("div", { class: "verdict" }, heading, state, numbers, h("div", { class: "buttons" }, stop, go, more), trouble,
        search.rules.length ? h("details", {}, h("summary", {}, `${count(search.rules.length, "rule")} held`), h("ul", { class: "rules" }, search.rules.map(words => h("li", {}, words)))) : null),
      h("figure", {}, chart,
        h("figcaption", {}, [["hit", desk.answers === "numbers" ? "the answer is as wanted" : "the decision changed"], ["miss", desk.answers === "numbers" ? "it is not" : "it did not"], ["line", "smallest so far"]].map(([key, words]) => h("span", {}, h("span", { class: `key ${key}` }), words))),
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
