// Filters the table of operators as one types. What is chosen stands in the address, so that it can be linked to.
"use strict";
(() => {
  const form = document.getElementById("filter");
  const table = document.getElementById("every-operator");
  if (!form || !table) return;
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row,
    words: row.textContent.toLowerCase().replace(/_/g, " ") + " " + row.dataset.name.toLowerCase(),
    types: new Map(row.dataset.types.split(" ").map((each) => each.split(":"))),
    engines: row.dataset.engines.split(" "),
  }));
  const count = form.querySelector(".count");
  const nothing = document.getElementById("nothing");
  const fields = ["words", "family", "type", "level", "engine"];

  const fits = ({ row, words, types, engines }, chosen) => {
    const level = chosen.level ? parseFloat(chosen.level) : Infinity;
    const since = chosen.type ? types.get(chosen.type) : row.dataset.level;
    return (
      since !== undefined &&
      parseFloat(since) <= level &&
      (!chosen.family || row.dataset.family === chosen.family) &&
      (!chosen.engine || engines.includes(chosen.engine)) &&
      chosen.words.toLowerCase().split(/\s+/).every((word) => words.includes(word) || hasType(types, word))
    );
  };
  const hasType = (types, word) => word.length > 2 && [...types.keys()].some((each) => each.toLowerCase() === word);

  const apply = () => {
    const chosen = Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()]));
    let shown = 0;
    for (const each of rows) {
      each.row.hidden = !fits(each, chosen);
      shown += !each.row.hidden;
    }
    count.value = shown === rows.length ? `${shown} operators` : `${shown} of ${rows.length}`;
    nothing.hidden = shown > 0;
    const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
    const address = query.size ? `?${query}` : location.pathname;
    try {
      history.replaceState(null, "", address);
    } catch {
      // Pages that are opened as files of some browsers have no address of their own.
    }
  };

  const asked = new URLSearchParams(location.search);
  for (const name of fields) {
    if (asked.has(name)) form.elements[name].value = asked.get(name);
  }
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
})();
