// Tells below a chart what the mark is that one points at, with a mouse or with a finger.
"use strict";
for (const chart of document.querySelectorAll("figure.chart")) {
  const value = chart.querySelector(".chart-value");
  const tell = (event) => {
    const point = event.target.closest(".point");
    if (!point) return;
    value.textContent = point.querySelector("title").textContent;
    for (const each of chart.querySelectorAll(".point.is-told")) each.classList.remove("is-told");
    point.classList.add("is-told");
  };
  value.hidden = false;
  value.textContent = "Point at a mark.";
  chart.addEventListener("pointerover", tell);
  chart.addEventListener("click", tell);
}
