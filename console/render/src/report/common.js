
"use strict";
// All text goes through textContent and attributes, never through markup.
const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#785ef0", "#999999"];
/** How columns of text break. */
const CLASSES = { process: "name", type: "name", kind: "word" };
const data = JSON.parse(document.getElementById("data").textContent);

/** An element with attributes and children, which are elements or text. */
function make(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function draw(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function count(number, what) {
  return number.toLocaleString("en") + " " + what + (number === 1 ? "" : "s");
}

/** A number as people read it: bytes with a unit, the others with commas. */
function amount(number, unit) {
  if (unit !== "bytes") return number.toLocaleString("en");
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const power = Math.min(Math.floor(Math.log2(Math.max(1, Math.abs(number))) / 10), units.length - 1);
  return (number / 1024 ** power).toFixed(power ? 2 : 0) + " " + units[power];
}

/** The same with its unit: "3 handles", "4.00 MiB". */
function measured(number, unit) {
  if (unit === "bytes") return amount(number, unit);
  return amount(number, unit) + " " + (number === 1 ? unit.slice(0, -1) : unit);
}

/** A table that a click on a heading sorts and a text above it searches. */
function table(columns, rows, label) {
  const body = make("tbody");
  const shown = make("span", { class: "dim" });
  const search = make("input", { type: "search", placeholder: "search " + label, "aria-label": "search " + label });
  const heads = columns.map((column) => make("th", { class: column.number ? "number" : null, scope: "col" }));
  let order = { column: -1, down: false };
  const text = (value) => value === null || value === undefined ? "" : String(value);
  const shownText = (column, row) => column.show ? column.show(row) : text(row[column.key]);

  function refresh() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = rows.filter((row) => {
      const line = columns.map((column) => shownText(column, row)).join(" ").toLowerCase();
      return words.every((word) => line.includes(word));
    });
    if (order.column >= 0) {
      const { key, number } = columns[order.column];
      const compare = (a, b) => number ? (a[key] ?? -1) - (b[key] ?? -1) : text(a[key]).localeCompare(text(b[key]));
      left = left.slice().sort((a, b) => order.down ? compare(b, a) : compare(a, b));
    }
    body.replaceChildren(...left.map((row) => make("tr", null, ...columns.map((column) => {
      const value = shownText(column, row);
      const target = column.link ? column.link(row) : null;
      const cell = target ? make("a", { href: target }, value) : value;
      return make("td", { class: column.number ? "number" : CLASSES[column.key] }, cell);
    }))));
    shown.textContent = " " + left.length.toLocaleString("en") + " of " + count(rows.length, "row");
    heads.forEach((head, at) => {
      if (at === order.column) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  heads.forEach((head, at) => {
    const button = make("button", { type: "button" }, columns[at].title);
    button.addEventListener("click", () => {
      const first = Boolean(columns[at].number);
      order = { column: at, down: order.column === at ? !order.down : first };
      refresh();
    });
    head.append(button);
  });
  search.addEventListener("input", refresh);
  refresh();
  return make("div", null, search, shown,
    make("div", { class: "scroll" }, make("table", null, make("thead", null, make("tr", null, ...heads)), body)));
}

