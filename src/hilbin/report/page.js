"use strict";
(() => {
  const find = (selector) => document.querySelector(selector);
  const data = JSON.parse(find("#data").textContent);
  const figures = [...document.querySelectorAll(".gallery figure")];
  const matrix = find("#matrix");
  const heads = [...matrix.tHead.rows[0].cells].slice(1);
  const FIRST = 12, MORE = 48, MOST_NAMES = 1000;
  let limit = FIRST;
  let wanted = { kind: "all" };

  // the filter lives in the address, so that it can be sent and the back button works
  const read = (hash) => {
    const cell = /^#cell=(\d+)-(\d+)$/.exec(hash);
    if (cell && data.classes[cell[1]] !== undefined && data.classes[cell[2]] !== undefined) {
      return { kind: "cell", t: +cell[1], p: +cell[2] };
    }
    if (hash === "#mistakes-only") return { kind: "mistakes" };
    return hash === "" || hash === "#all" ? { kind: "all" } : null;
  };
  const fits = (t, p) => wanted.kind === "all" || (wanted.kind === "mistakes" ? t !== p : t === wanted.t && p === wanted.p);
  const many = (n) => n.toLocaleString("en") + " " + data.thing + (n === 1 ? "" : "s");
  const cellOf = (t, p) => {
    const column = heads.findIndex((head) => +head.dataset.k === p);
    const row = [...matrix.tBodies[0].rows].find((one) => +one.cells[0].dataset.k === t);
    return row && column >= 0 ? row.cells[column + 1] : null;
  };
  const placeOf = (cell) => ({ t: +cell.parentNode.cells[0].dataset.k, p: +heads[cell.cellIndex - 1].dataset.k });
  const relation = (t, p) => t === p ? `${data.classes[t]}, correct` : `${data.classes[t]} predicted as ${data.classes[p]}`;

  const total = () => {
    if (wanted.kind === "all") return data.n;
    if (wanted.kind === "mistakes") return data.wrong;
    const cell = cellOf(wanted.t, wanted.p);
    return cell ? +cell.textContent : figures.filter((f) => fits(+f.dataset.t, +f.dataset.p)).length;
  };
  const list = (withPicture) => {
    const rest = data.rest.filter(([t, p]) => fits(t, p));
    const box = find("#rest");
    box.hidden = rest.length === 0;
    const unlisted = Math.max(0, total() - withPicture - rest.length) + Math.max(0, rest.length - MOST_NAMES);
    box.firstElementChild.textContent = (figures.length ? `${many(rest.length)} more, by name` : "By name") +
      (unlisted ? ` (${unlisted.toLocaleString("en")} not listed)` : "");
    box.lastElementChild.replaceChildren(...rest.slice(0, MOST_NAMES).map(([t, p, name]) => {
      const item = document.createElement("li"), shown = document.createElement("bdi");
      shown.textContent = name;
      item.append(shown, t === p ? "" : ` (${relation(t, p)})`);
      return item;
    }));
  };
  const apply = () => {
    let met = 0;
    for (const figure of figures) {
      const hit = fits(+figure.dataset.t, +figure.dataset.p);
      met += hit;
      figure.hidden = !hit || met > limit;
    }
    find("#more").hidden = met <= limit;
    find("#more").textContent = `Show ${Math.min(MORE, met - limit)} more`;
    const what = { all: data.n > 1 ? "All " : "", mistakes: "Mistakes: ", cell: wanted.kind === "cell" ? relation(wanted.t, wanted.p) + ": " : "" };
    find("#filter").textContent = what[wanted.kind] + many(total());
    find("#show-all").setAttribute("aria-pressed", wanted.kind === "all");
    find("#show-mistakes").setAttribute("aria-pressed", wanted.kind === "mistakes");
    for (const old of matrix.querySelectorAll(".chosen")) { old.classList.remove("chosen"); old.removeAttribute("aria-selected"); }
    const cell = wanted.kind === "cell" && cellOf(wanted.t, wanted.p);
    if (cell) { cell.classList.add("chosen"); cell.setAttribute("aria-selected", "true"); }
    list(met);
  };
  const follow = () => {
    const next = read(location.hash);
    if (!next) return;
    wanted = next;
    limit = FIRST;
    apply();
  };
  const go = (hash) => { location.hash = hash; };
  addEventListener("hashchange", follow);
  find("#show-all").addEventListener("click", () => go("#all"));
  find("#show-mistakes").addEventListener("click", () => go("#mistakes-only"));
  find("#more").addEventListener("click", () => { limit += MORE; apply(); });

  // the matrix: one stop of the tab key, arrows inside, words for the cell that is pointed at
  const tell = (cell) => {
    const { t, p } = placeOf(cell), count = +cell.textContent, n = +cell.parentNode.cells[0].dataset.n;
    const share = n ? ` of ${n.toLocaleString("en")} (${(100 * count / n).toFixed(1)} %)` : "";
    find("#told").textContent = `${relation(t, p)}: ${count.toLocaleString("en")}${share}`;
  };
  const isCell = (node) => node instanceof HTMLTableCellElement && node.tagName === "TD" && node.parentNode.parentNode === matrix.tBodies[0];
  const choose = (cell) => {
    const { t, p } = placeOf(cell);
    go(`#cell=${t}-${p}`);
    find(".gallery-head").scrollIntoView({ block: "nearest" });
  };
  const rove = (cell) => {
    for (const old of matrix.querySelectorAll("[tabindex]")) old.tabIndex = -1;
    cell.tabIndex = 0;
  };
  rove(matrix.tBodies[0].rows[0].cells[1]);
  matrix.addEventListener("mouseover", (event) => { if (isCell(event.target)) tell(event.target); });
  matrix.addEventListener("focusin", (event) => { if (isCell(event.target)) tell(event.target); });
  matrix.addEventListener("click", (event) => {
    if (!isCell(event.target)) return;
    rove(event.target);
    tell(event.target);
    choose(event.target);
  });
  matrix.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target;
    if (!isCell(cell)) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(cell);
    } else if (step) {
      const row = matrix.tBodies[0].rows[cell.parentNode.sectionRowIndex + step[0]];
      const next = row && row.cells[cell.cellIndex + step[1]];
      if (!isCell(next)) return;
      event.preventDefault();
      rove(next);
      next.focus();
    }
  });

  // the table of classes: a click on a head sorts, another one the other way
  const table = find("#classes-table");
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("button")?.parentNode;
    if (!head) return;
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const one of head.parentNode.cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[head.cellIndex].dataset.v ?? row.cells[head.cellIndex].textContent;
    const order = (a, b) => {
      const x = key(a), y = key(b);
      if (x === "" || y === "") return (x === "") - (y === ""); // what cannot be counted comes last
      return (up ? 1 : -1) * (head.cellIndex ? x - y : x.localeCompare(y));
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  });

  wanted = read(location.hash) ?? wanted;
  apply();
})();
