// The target: another decision, or a range for the model's number or a decision's probability.

import { h, put } from "./dom.js";

const KINDS = [["at_least", "at least"], ["at_most", "at most"], ["between", "between"], ["more", "more than now, by"], ["less", "less than now, by"]];

function parts(target) {
  // A target in the format of the controls.
  if (Array.isArray(target)) return { labels: target.map(String), kind: "", numbers: ["", ""] };
  const labels = target.label === undefined ? [] : [String(target.label)];
  if ("between" in target) return { labels, kind: "between", numbers: target.between };
  if ("relative" in target) return { labels, kind: target.relative > 0 ? "more" : "less", numbers: [Math.abs(100 * target.relative), ""] };
  const kind = "at_least" in target ? "at_least" : "at_most";
  return { labels, kind, numbers: [target[kind], ""] };
}

// The controls, which set `options.target`. `show(decision)` redraws them without the current decision.
export function targetChoice(workspace, options, changed) {
  const ofNumbers = workspace.answers === "numbers";
  const state = parts(options.target);
  if (ofNumbers && !state.kind) state.kind = "at_least";
  const node = h("div", {});
  let decision = null;
  const isRelative = () => state.kind === "more" || state.kind === "less";
  const wantsNumber = () => ofNumbers || (workspace.scores && state.labels.length === 1 && state.kind !== "");
  const given = () => (state.kind === "between" ? state.numbers : state.numbers.slice(0, 1)).map(n => (n === "" || n === null ? NaN : Number(n)));
  // What is wrong with the target number; "" if it is valid.
  function problem() {
    if (!wantsNumber()) return "";
    const [a, b] = given();
    if (!given().every(Number.isFinite)) return "Which number would you like to see? Enter it to see the price.";
    if (!ofNumbers && !isRelative() && given().some(n => n < 0 || n > 1)) return "A probability is a number from 0 to 1.";
    if (isRelative() && a <= 0) return "By how many per cent? Enter a number above 0.";
    return state.kind === "between" && a > b ? "The first number has to be the smaller one." : "";
  }
  const isComplete = () => problem() === "";

  function keep() {
    if (wantsNumber() && isComplete()) {
      const [a, b] = given();
      const range = state.kind === "between" ? { between: [a, b] } : isRelative() ? { relative: (state.kind === "more" ? a : -a) / 100 } : { [state.kind]: a };
      options.target = ofNumbers ? range : { ...range, label: state.labels[0] };
    } else options.target = ofNumbers ? [] : state.labels;
    changed();
  }

  function chips() {
    const others = workspace.labels.filter(label => label !== decision);
    if (state.labels.length && !state.labels.some(label => others.includes(label)) && workspace.labels.length) { state.labels = []; state.kind = ""; options.target = []; }
    const choices = [[[], decision === null ? "any other" : `anything but ${decision}`], ...others.map(label => [[label], label])];
    if (state.labels.length > 1) choices.push([state.labels, state.labels.join(" or ")]);
    return h("div", { class: "chips", role: "group", "aria-label": "The decision wanted" }, choices.map(([labels, words]) => h("button", {
      type: "button", class: "chip", "aria-pressed": String(JSON.stringify(labels) === JSON.stringify(state.labels)),
      onclick: event => {
        state.labels = labels;
        if (labels.length !== 1) state.kind = "";
        keep();
        const place = [...event.currentTarget.parentElement.children].indexOf(event.currentTarget);
        show(decision);
        node.querySelectorAll(".chip")[place]?.focus();
      },
    }, words)));
  }

  function measure() {
    const what = ofNumbers ? "The answer wanted" : "Probability";
    const kind = h("select", {
      "aria-label": what, onchange: () => { state.kind = kind.value; keep(); show(decision); node.querySelector("select").focus(); },
    }, [...(ofNumbers ? [] : [["", "whatever makes it the likeliest"]]), ...KINDS].map(([value, words]) => h("option", { value, selected: value === state.kind }, words)));
    const field = (i, words) => h("input", {
      type: "number", step: "any", min: ofNumbers ? null : 0, max: ofNumbers || isRelative() ? null : 1, "aria-label": words, value: state.numbers[i] ?? "", oninput: event => { state.numbers[i] = event.target.value; keep(); },
    });
    return h("div", { class: "measure" }, ofNumbers ? null : h("span", {}, "with a probability of"), kind,
      state.kind === "" ? null : field(0, state.kind === "between" ? "The least" : isRelative() ? "Per cent" : "The number"),
      state.kind === "between" ? [h("span", {}, "and"), field(1, "The most")] : isRelative() ? h("span", {}, "%") : null);
  }

  function show(now) {
    decision = now;
    put(node, ofNumbers ? null : chips(), ofNumbers || (workspace.scores && state.labels.length === 1) ? measure() : null);
  }
  show(null);
  return { node, show, problem, isComplete };
}
