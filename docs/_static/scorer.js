// Search results: pages of the section "Background" come last.
const BACKGROUND = new Set([
  "method", "benchmark", "reproduction", "scale", "promises", "strangers", "readings", "research", "decisions", "changelog",
]);
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => (BACKGROUND.has(docname) ? score - 1000 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
