"use strict";
(() => {
  const find = (selector) => document.querySelector(selector);
  const data = JSON.parse(find("#data").textContent);
  const view = find("#view"), wall = find("#wall"), mark = find("#mark"), large = find("#large");
  const { side, height, width, at, names, links } = data;
  const MOST = 320; // pixels of a picture at the largest scale
  let x = 0, y = 0, scale = 1, chosen = -1;

  const fitting = () => Math.min(view.clientWidth / (width * side), view.clientHeight / (height * side));
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  const place = () => {
    const w = width * side * scale, h = height * side * scale;
    const keep = (at, size, room) => size <= room ? (room - size) / 2 : clamp(at, room - size, 0);
    x = keep(x, w, view.clientWidth);
    y = keep(y, h, view.clientHeight);
    wall.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    mark.style.outlineWidth = `${3 / scale}px`;
  };
  const zoom = (factor, px, py) => {
    const next = clamp(scale * factor, Math.min(fitting(), 1), Math.max(fitting(), MOST / side));
    x = px - (px - x) * next / scale;
    y = py - (py - y) * next / scale;
    scale = next;
    place();
  };
  const fit = () => { scale = fitting(); x = y = 0; place(); };
  const middle = () => [view.clientWidth / 2, view.clientHeight / 2];
  const boxOf = (cell) => [cell % width * side, Math.floor(cell / width) * side];

  const show = (cell) => {
    chosen = cell;
    const [left, top] = boxOf(cell);
    Object.assign(mark.style, { left: `${left}px`, top: `${top}px`, width: `${side}px`, height: `${side}px` });
    mark.hidden = false;
    const name = document.createElement(links ? "a" : "span"), text = document.createElement("bdi");
    text.textContent = names[at[cell]];
    name.append(text);
    if (links) { name.href = links[at[cell]]; name.target = "_blank"; name.rel = "noopener"; }
    find("#told").replaceChildren(name);
    draw(left, top);
  };
  const draw = (left, top) => {
    for (const sheet of wall.querySelectorAll("img")) {
      const sx = left - sheet.offsetLeft, sy = top - sheet.offsetTop;
      if (sx < 0 || sy < 0 || sx >= sheet.naturalWidth || sy >= sheet.naturalHeight) continue;
      large.getContext("2d").drawImage(sheet, sx, sy, side, side, 0, 0, large.width, large.height);
      large.hidden = false;
    }
  };
  const reveal = (cell) => {
    const [left, top] = boxOf(cell), size = side * scale;
    const into = (at, begin, room) => clamp(at, -begin * scale, room - begin * scale - size);
    if (size < Math.min(view.clientWidth, view.clientHeight)) {
      x = into(x, left, view.clientWidth);
      y = into(y, top, view.clientHeight);
      place();
    }
  };
  const cellAt = (px, py) => {
    const column = Math.floor((px - x) / scale / side), row = Math.floor((py - y) / scale / side);
    const inside = column >= 0 && row >= 0 && column < width && row < height;
    return inside && at[row * width + column] >= 0 ? row * width + column : -1;
  };

  // one finger or the mouse moves, two fingers zoom, a tap chooses
  const pointers = new Map();
  let travelled = 0;
  const local = (event) => {
    const box = view.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  view.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    view.setPointerCapture(event.pointerId);
    if (pointers.size === 0) travelled = 0;
    pointers.set(event.pointerId, local(event));
    view.classList.add("moving");
  });
  view.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = local(event);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (other) {
      const apart = (p) => Math.max(1, Math.hypot(p[0] - other[0], p[1] - other[1]));
      zoom(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    }
    x += (now[0] - before[0]) / pointers.size;
    y += (now[1] - before[1]) / pointers.size;
    place();
    pointers.set(event.pointerId, now);
  });
  const lift = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (pointers.size === 0) view.classList.remove("moving");
    if (event.type !== "pointerup" || pointers.size > 0 || travelled > 6) return;
    const cell = cellAt(...local(event));
    if (cell >= 0) show(cell);
  };
  view.addEventListener("pointerup", lift);
  view.addEventListener("pointercancel", lift);
  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1;
    zoom(Math.exp(-event.deltaY * lines / 400), ...local(event));
  }, { passive: false });
  view.addEventListener("dblclick", (event) => zoom(3, ...local(event)));

  // arrows go from picture to picture, over empty cells
  const step = (down, right) => {
    if (chosen < 0) {
      const first = cellAt(...middle());
      return first >= 0 ? first : at.findIndex((number) => number >= 0);
    }
    let row = Math.floor(chosen / width) + down, column = chosen % width + right;
    for (; row >= 0 && row < height && column >= 0 && column < width; row += down, column += right) {
      if (at[row * width + column] >= 0) return row * width + column;
    }
    return chosen;
  };
  const KEYS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  view.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const centered = chosen < 0 ? middle() : boxOf(chosen).map((v, axis) => (axis ? y : x) + (v + side / 2) * scale);
    if (KEYS[event.key]) {
      const next = step(...KEYS[event.key]);
      if (next >= 0) { show(next); reveal(next); }
    } else if (event.key === "+" || event.key === "=") zoom(1.5, ...centered);
    else if (event.key === "-" || event.key === "_") zoom(1 / 1.5, ...centered);
    else if (event.key === "0") fit();
    else if (event.key === "Enter" && chosen >= 0) find("#told a")?.click();
    else return;
    event.preventDefault();
  });
  find("#in").addEventListener("click", () => zoom(1.5, ...middle()));
  find("#out").addEventListener("click", () => zoom(1 / 1.5, ...middle()));
  find("#fit").addEventListener("click", fit);
  addEventListener("resize", () => { scale = Math.max(scale, Math.min(fitting(), 1)); place(); });
  fit();
})();
