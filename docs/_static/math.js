// Draws the formulas with KaTeX, which is part of this site: no network is needed.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".math")) {
    const text = place.textContent.trim();
    const displayMode = text.startsWith("\\[");
    katex.render(text.slice(2, -2), place, { displayMode, throwOnError: false });
  }
});
