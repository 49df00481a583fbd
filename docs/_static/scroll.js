// Charts that scroll on narrow screens (hilbin.css) can be reached by the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll("figure:has(img.wide)")) figure.tabIndex = 0;
});
