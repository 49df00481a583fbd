"use strict";
(() => {
  const root = document.documentElement;
  // light and dark: the system's choice until the button is pressed
  const keep = (theme) => { try { localStorage.setItem("hilbin-theme", theme); } catch { /* private */ } };
  try { const kept = localStorage.getItem("hilbin-theme"); if (kept) root.dataset.theme = kept; } catch { /* private */ }
  document.querySelector("#theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    keep(root.dataset.theme);
  });
})();
