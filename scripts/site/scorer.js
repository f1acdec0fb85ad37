// How the site's search orders pages: those about a task first, lists of everything last.
var Scorer = {
  score: ([page, , , , score]) => {
    if (page.startsWith("tasks/")) return score + 30;
    return /^(differences\/|api$|cli$|interfaces$|tables$|testing$|tools$)/.test(page)
      ? score - 10 : score;
  },
  // The rest as Sphinx has it.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
