// One search: follow it, compare the changes found, try other rows, download the results.

import { address, announce, copyButton, count, get, h, lastPlace, money, newId, number, optionsText, parsed, post, problem, put, redraw, remarkLines, remember, short, titled, UNIT, word } from "./dom.js";
import { answerCards, noteOf } from "./answers.js";
import { drawChart, newChart } from "./chart.js";
import { whatIf } from "./whatif.js";

const LIVE = ["waiting", "running", "stopping"];
const MORE = 10;
const STATES = {
  waiting: "Waiting for its turn", running: "Searching", stopping: "Stopping after this answer", stopped: "Stopped",
  ended: "Done", failed: "Interrupted by an error", interrupted: "Interrupted",
};
const ENDS = {
  budget: "The budget ended the search. More queries may find a smaller change.",
  settled: "More queries are not expected to find a smaller change.",
  exhausted: "There is nothing left to send.",
  time: "The time limit was reached. More time may find a smaller change.",
};
// Why nothing was found.
const REASONS = {
  budget_spent: "All queries were used, and none of the rows asked was decided as wanted.",
  time_spent: "The time was over before a row was decided as wanted.",
  unlikely: "Within these rules, a row that is decided as wanted has become very unlikely.",
  exhausted: "Every row that these rules allow was asked.",
  unfinished: "None of the rows asked so far was decided as wanted.",
};
// How to relax a rule, by the option that it comes from.
const RELAX = {
  freeze: title => `Unlock ${title}`, ranges: title => `Remove the limits of ${title}`, values: title => `Allow every ${title}`,
  directions: title => `Let ${title} go both ways`, weights: title => `Make ${title} as easy to change as others`,
};

// What was relaxed to count the rows that may be sent, by option.
const WITHOUT = {
  plausibility: "rows may look unlike the known ones", max_changes: "any number of features may change", freeze: "all features are unlocked",
  ranges: "the limits are removed", values: "every value is allowed", directions: "every feature may go both ways", rules: "the rules are removed",
};

export async function searchPage(workspace, params, id) {
  let search = await get(`/api/searches/${id}`);
  let steps = search.steps;
  let others = [], tried = parsed(params.get("tried"), []);
  let stream = null, retry = 0, gone = false, wasLive = false;

  const path = `#/search/${id}`;
  const heading = h("h1", { class: "answer-line" });
  const about = h("span", { class: "soft" });
  const state = h("p", { class: "state-line" });
  const numbers = h("p", { class: "numbers" });
  const trouble = h("div", {});
  const obstacles = h("div", {});
  const chart = newChart();
  const lines = h("tbody", {});
  const title = h("h2", {});
  const answers = h("ul", { class: "answers" });
  const button = (act, kind = "") => h("button", { type: "button", class: `button ${kind}`, onclick: act });
  const stop = button(() => act(post(`/api/searches/${id}/stop`)));
  const go = button(() => act(resume()));
  const more = button(() => act(post(`/api/searches/${id}/resume`, { budget: search.paid + MORE })));
  const after = h("div", {});
  const resume = () => post(`/api/searches/${id}/resume`, search.extended ? { budget: search.budget } : {});

  async function act(promise) {
    try {
      update(await promise);
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

  // A number of queries and their price.
  const priced = n => `${count(n, "query", "queries")}${workspace.price === null ? "" : `, ${money(n * workspace.price)}`}`;

  function show() {
    const live = LIVE.includes(search.state);
    const found = search.explanation;
    const best = found?.answers.length > 0;
    const before = found?.before ?? (steps.length ? steps[0].label : null);
    put(about, ` — ${[before, `wanted: ${search.wanted.join(" or ")}`, noteOf(workspace, search.options)].filter(Boolean).join(", ")}`);
    put(heading, best ? found.sentence : live || !found ? "Looking for a change that alters the decision …" : found.sentence);
    put(state, h("span", { class: `dot ${search.state}`, "aria-hidden": "true" }), STATES[search.state],
      search.state === "ended" && found ? h("span", { class: "soft" }, ` ${best ? ENDS[found.stopped_by] : ""}`) : null,
      search.state === "interrupted" ? h("span", { class: "soft" }, " Nothing is lost: “Go on” continues from here.") : null);
    const free = Math.max(steps.length - search.paid, 0);
    put(numbers, h("b", {}, `${number(search.paid)} of ${number(Math.max(search.budget, search.paid))}`), " queries paid for", workspace.price === null ? "" : ` (${money(search.paid * workspace.price)})`,
      free ? `, ${number(free)} known and free` : "", ".");
    // Show buttons only for actions that are possible now.
    const left = workspace.remaining ?? Infinity;
    const toGo = Math.min(Math.max(search.budget - search.paid, 0), left);
    const isOver = search.state === "ended" && (found?.stopped_by === "exhausted" || (search.extended && search.paid < search.budget));
    put(stop, "Stop");
    put(go, `Go on: at most ${priced(toGo)}`);
    put(more, left < MORE ? `At most ${priced(left)} more` : `Ten more queries${workspace.price === null ? "" : `, ${money(MORE * workspace.price)} at most`}`);
    stop.hidden = !live;
    stop.disabled = search.state === "stopping";
    go.hidden = live || search.state === "ended";
    more.hidden = live || isOver || found?.outcome === "already_target" || left < 1;
    put(trouble, search.error ? problem(search.error) : null,
      !live && left < 1 ? h("p", { class: "soft" }, "No queries are left in the budget of the model.") : null,
      remarkLines((found?.remarks || []).filter(remark => !["unfinished", "excluded_hits"].includes(remark.code)))); // shown elsewhere
    redraw(obstacles, [live, found?.outcome, steps.length, others.map(other => other.breaks)], () => put(obstacles, live || best || !found ? null : inTheWay(found.outcome)));
    if (!live) reveal();
    drawChart(chart, steps, Math.max(search.budget, search.paid));
    showLines();
    showAnswers();
  }

  // Why nothing was found, and what the user can do about it.
  function inTheWay(outcome) {
    if (outcome === "already_target") return null;
    const unlike = steps.filter(step => step.hit && !step.counts).length;
    // First the rules that known counterfactuals violate.
    const promising = rule => others.some(other => other.breaks.includes(rule.text));
    const rules = search.rules.filter(rule => rule.option && rule.option !== "weights").sort((a, b) => Number(promising(b)) - Number(promising(a)));
    const relax = some => h("ul", { class: "relax" }, some.map(rule => h("li", {}, h("span", {}, rule.text, promising(rule) ? h("small", {}, " A known change needs this.") : null),
      h("a", { href: editAddress(relaxed(rule)) }, (RELAX[rule.option] ?? (() => "Remove this rule"))(titled(rule.column))))));
    const { "as given": asGiven, ...excluded } = search.explanation.excluded;
    const ways = Object.entries(excluded).sort((a, b) => b[1] - a[1]).map(([option, n]) => `${number(n)} if ${WITHOUT[option]}`);
    return h("div", { class: "warning" }, h("h2", {}, "What was in the way"),
      h("p", {}, unlike ? `${count(unlike, "row")} that ${unlike === 1 ? "was" : "were"} asked ${unlike === 1 ? "has" : "have"} the decision wanted, but ${unlike === 1 ? "looks" : "look"} unlike the known rows and so ${unlike === 1 ? "does" : "do"} not count.` : REASONS[outcome]),
      ways.length ? h("p", {}, `As it is, ${count(asGiven, "row")} could be asked; ${ways.join(", ")}.`) : null,
      rules.length ? relax(rules.slice(0, 4)) : null,
      rules.length > 4 ? h("details", {}, h("summary", {}, count(rules.length - 4, "more rule")), relax(rules.slice(4))) : null,
      h("p", {}, rules.length ? "Or " : "You can ", h("a", { href: editAddress(search.options) }, "edit this search"), ": choose another decision, or how many queries may be asked."));
  }

  // The options with a rule removed.
  function relaxed({ option, column }) {
    const options = structuredClone(search.options);
    if (option === "freeze") options.freeze = options.freeze.filter(name => name !== column);
    else if (column) delete options[option][column];
    else options[option] = null;
    return options;
  }
  const editAddress = options => address(search.position === null ? "#/own/plan" : `#/row/${search.position}`, { v: search.position === null ? JSON.stringify(search.row) : "", o: optionsText(workspace, options) });

  function showLines() {
    put(lines, steps.map(step => h("tr", {}, h("th", { scope: "row" }, step.position + 1),
      h("td", {}, step.changes.map(([name, , to]) => `${titled(name)} ${word(to)}`).join(", ") || "as it is"),
      h("td", {}, String(step.label)), h("td", {}, step.position === 0 ? "" : step.counts ? "yes" : step.hit ? "yes, but unlike known rows" : "no"),
      h("td", { class: "figure" }, short(step.cost)), h("td", {}, step.paid ? "paid" : "free"))));
  }

  function showAnswers() {
    const busy = LIVE.includes(search.state);
    const mine = (search.explanation?.answers || []).map(answer => ({ id, options: search.options, answer, breaks: [], current: true }));
    const entries = [...mine, ...others.filter(other => other.id !== id)];
    put(title, entries.length && entries.every(entry => entry.breaks.length) ? "Changes that work under other rules" : "Changes that work");
    redraw(answers, [entries, busy], () => put(answers, entries.length ? answerCards(workspace, entries, { busy, without, row: search.name, tryOut: answer => tryForm.load(answer.row) })
      : h("li", { class: "answer waiting" }, h("p", { class: "soft" }, busy ? "The first change that works will be shown here." : "No change that works is known yet."))));
  }

  // The same options with this feature frozen: another search, in which known answers are free.
  const rowRequest = () => search.position !== null ? { position: search.position } : { values: search.row };
  async function without(name, entry) {
    const options = { ...entry.options, freeze: [...entry.options.freeze, name] };
    try { location.hash = `#/search/${(await post("/api/searches", { row: rowRequest(), options })).id}`; } catch (error) { put(trouble, problem(error.message)); }
  }

  async function compare() {
    try {
      others = await post("/api/answers", { row: rowRequest(), options: search.options, tried: tried.map(changes => ({ ...search.row, ...changes })) });
      if (!gone) show();
    } catch { /* shown without them */ }
  }

  // -- following the search: the browser reconnects when the studio is available again
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
        close();
        resume().then(result => { update(result); follow(); }, error => update({ state: "interrupted", error: error.message }));
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
  function close() { stream?.close(); stream = null; banner.hidden = true; }

  const table = newId();
  const tryForm = whatIf(workspace, search.row, search.wanted, { start: tried, options: { target: search.options.target }, tried: all => { tried = [...all]; remember(path, { tried: JSON.stringify(tried) }); compare(); } });
  const section = h("section", {}, title,
    h("p", { class: "soft" }, "Each was confirmed by the model itself. It says how the model would decide, not what would happen in the world. ",
      `Cost: distance + ${search.options.beta ?? workspace.declared.find(d => d.name === "beta")?.default ?? 5} × the sum of all changes, in standard deviations of the known rows (${UNIT}).`), answers);
  const name = search.position === null ? "A row of your own" : `Row ${search.name}`;
  // The parts below appear when the search has ended, so that nothing moves while it runs.
  const below = h("div", { hidden: true }, tryForm.node, exportsSection(id, name));
  function reveal() { below.hidden = false; }
  put(after, section, below);
  const view = h("div", {},
    h("p", { class: "breadcrumb" }, h("a", { href: lastPlace("#/") }, "Rows"), " / ", h("a", { href: editAddress(search.options) }, name), about),
    h("div", { class: "watch" },
      h("div", { class: "verdict" }, heading, state, numbers, h("div", { class: "buttons" }, stop, go, more, h("a", { class: "button", href: editAddress(search.options) }, "Edit this search")), trouble, obstacles,
        search.rules.length ? h("details", {}, h("summary", {}, `${count(search.rules.length, "rule")} held`), h("ul", { class: "rules" }, search.rules.map(rule => h("li", {}, rule.text)))) : null),
      h("figure", {}, chart,
        h("figcaption", {}, [["hit", workspace.answers === "numbers" ? "the answer is as wanted" : "the decision changed"], ["half", "so, but unlike known rows"], ["miss", workspace.answers === "numbers" ? "it is not" : "it did not"], ["line", "smallest so far"]].map(([key, words]) => h("span", {}, h("span", { class: `key ${key}` }), words))),
        h("details", {}, h("summary", {}, "Every query in a table"),
          h("div", { class: "wide", tabindex: "0", role: "region", "aria-labelledby": table },
            h("table", { class: "lines" }, h("caption", { class: "unseen", id: table }, "Every query"),
              h("thead", {}, h("tr", {}, ["Query", "What was different", "Answer", "Wanted", `Cost (${UNIT})`, "Price"].map(t => h("th", { scope: "col" }, t)))), lines))))),
    after);
  const resized = new ResizeObserver(() => drawChart(chart, steps, Math.max(search.budget, search.paid)));
  resized.observe(chart);
  show();
  if (LIVE.includes(search.state)) wasLive = true;
  follow();
  compare();
  return { title: name, view, leave: () => { gone = true; resized.disconnect(); clearTimeout(retry); close(); } };
}

// Downloads.
const NOTICE = "acex-studio-notice";
const NOTICE_FIELDS = [
  ["recipient", "To whom, as in: Ms Miller (optional)"], ["organisation", "Who decided"], ["date", "Date of the decision"], ["reference", "Reference"], ["subject", "About what, such as: your request for a loan"],
  ["system", "What the system is, as a sentence"], ["role", "What it does and who decides in the end"], ["sources", "Where the data came from"],
  ["correct", "How to have wrong data corrected"], ["human", "How to ask for a review by a person"], ["keep_until", "Until when the data are kept"], ["contact", "Whom to contact"],
];

// A letter to the person concerned. The fields typed in are kept in this browser for the next letter.
function noticeForm(id, name) {
  const known = { date: new Date().toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" }), ...parsed(localStorage.getItem(NOTICE), {}), reference: name };
  const inputs = NOTICE_FIELDS.map(([key, words]) => { const field = newId(); return [key, h("input", { id: field, type: "text", required: key !== "recipient", value: known[key] ?? "", autocomplete: "off" }), h("label", { for: field }, words)]; });
  return h("form", {
    class: "panel", onsubmit: event => {
      event.preventDefault();
      const given = Object.fromEntries(inputs.map(([key, input]) => [key, input.value]));
      localStorage.setItem(NOTICE, JSON.stringify({ ...given, date: undefined, recipient: undefined }));
      window.open(`/api/searches/${id}/exports/notice.html?${new URLSearchParams(given)}`, "_blank", "noopener");
    },
  }, h("div", { class: "fields" }, inputs.map(([, input, label]) => h("div", { class: "field" }, label, input))), h("button", { class: "button", type: "submit" }, "Write the letter"));
}

function exportsSection(id, name) {
  const script = h("div", {});
  const link = (what, words, more) => h("li", {}, h("a", { href: `/api/searches/${id}/exports/${what}`, target: what.endsWith("html") ? "_blank" : null, rel: "noopener" }, words), h("span", { class: "soft" }, ` ${more}`));

  async function load() {
    try {
      const code = (await get(`/api/searches/${id}/exports/code`)).python;
      put(script, h("div", { class: "code" }, h("div", { class: "code-head" }, h("h3", {}, "The same in Python"),
        copyButton(() => code, "Copy the code")), h("pre", { tabindex: "0" }, code)));
    } catch (error) { put(script, problem(error.message)); }
  }

  return h("section", { id: "exports" }, h("h2", {}, "Take it away"),
    h("ul", { class: "links" },
      link("report.html", "The report", "one page, to read, print or archive"),
      link("counterfactuals.csv", "Changed rows as CSV", "the row with each change that works"),
      link("queries.csv", "Queries as CSV", "every row that was asked about"),
      link("explanation.json", "Everything as JSON", "with its certificate, for “acex verify” and programs")),
    h("details", {}, h("summary", {}, "A letter to the person concerned (notice)"), noticeForm(id, name)),
    h("details", { ontoggle: event => { if (event.currentTarget.open) load(); } }, h("summary", {}, "Code that gives the same result"), script));
}
