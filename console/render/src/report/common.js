"use strict";
// All text goes through textContent and attributes, never through markup.
const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#785ef0", "#999999"];
/** Rows that a table shows at first; its search finds all. */
const ROWS = 25;
/** Width of a letter in pictures, in pixels. */
const LETTER = 7.3;
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

/** A text that breaks behind the parts of the name of a function, not inside of words. */
function name(text) {
  if (text === "") return text;
  const parts = text.split(/(::|[!<\\\/]|,(?=\p{L})|\.(?=\p{Lu}))/u);
  const whole = document.createDocumentFragment();
  for (let at = 0; at < parts.length; at += 2) {
    whole.append(parts[at] + (parts[at + 1] || ""), make("wbr"));
  }
  return whole;
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

/** A table that a click on a heading sorts and a text above it searches, in the cells and in `words` of a row. It has no columns without text. */
function table(declared, rows, what, words = () => "") {
  const text = (value) => value === null || value === undefined ? "" : String(value);
  const value = (column, row) => column.value ? column.value(row) : row[column.key];
  const shownText = (column, row) => column.show ? column.show(row) : text(value(column, row));
  const columns = declared.filter((column) => rows.some((row) => shownText(column, row) !== ""));
  const body = make("tbody");
  const shown = make("span", { class: "dim" });
  const all = make("button", { type: "button", class: "more" });
  const label = "search " + count(rows.length, what);
  const search = make("input", { type: "search", placeholder: label, "aria-label": label });
  const kind = (column) => column.class || (column.number ? "number" : column.key);
  const heads = columns.map((column) => make("th", { class: kind(column), scope: "col" }));
  let order = { column: -1, down: false };
  let limit = ROWS;
  const lines = new Map();

  function line(row) {
    if (!lines.has(row)) {
      const cells = columns.map((column) => shownText(column, row));
      lines.set(row, cells.concat(words(row)).join(" ").toLowerCase());
    }
    return lines.get(row);
  }

  function refresh() {
    const typed = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = rows.filter((row) => typed.every((word) => line(row).includes(word)));
    if (order.column >= 0) {
      const column = columns[order.column];
      const by = (row) => value(column, row);
      const compare = (a, b) => column.number ? (by(a) ?? -1) - (by(b) ?? -1) : text(by(a)).localeCompare(text(by(b)));
      left = left.slice().sort((a, b) => order.down ? compare(b, a) : compare(a, b));
    }
    body.replaceChildren(...left.slice(0, limit).map((row) => make("tr", null, ...columns.map((column) => {
      const value = column.number ? shownText(column, row) : name(shownText(column, row));
      const target = column.link ? column.link(row) : null;
      const cell = target ? make("a", { href: target }, value) : value;
      return make("td", { class: kind(column), "data-title": column.title }, cell);
    }))));
    shown.textContent = " " + left.length.toLocaleString("en") + " of " + count(rows.length, what) + (left.length > limit ? ", the first " + limit + " shown" : "");
    all.textContent = "Show all " + left.length.toLocaleString("en");
    all.hidden = left.length <= limit;
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
  all.addEventListener("click", () => { limit = Infinity; refresh(); });
  refresh();
  return make("div", { class: "table" }, make("p", null, search, shown),
    make("div", { class: "scroll" }, make("table", null, make("thead", null, make("tr", null, ...heads)), body)), all);
}

/** Opens what an address names: `make` adds it to the page if it is not there yet. */
function follow(reveal) {
  const go = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const found = document.getElementById(id) || reveal(id);
    if (found) found.scrollIntoView();
  };
  addEventListener("hashchange", go);
  if (location.hash) go();
}

/** Details that are there from the start for the first rows, and for the others once they are asked for. */
function details(rows, first, build) {
  const list = make("div", { class: "details" });
  const shown = new Map();
  const show = (row) => {
    if (shown.has(row.rank)) return shown.get(row.rank);
    const next = Array.from(shown.keys()).filter((rank) => rank > row.rank).sort((a, b) => a - b)[0];
    const element = build(row);
    list.insertBefore(element, next === undefined ? null : shown.get(next));
    shown.set(row.rank, element);
    return element;
  };
  rows.filter((row) => first.has(row.rank)).forEach(show);
  const more = rows.length - shown.size;
  const rest = more ? make("p", { class: "dim" }, count(more, "more suspect") + "; search the table of suspects and click one to show it here") : null;
  return { list: make("div", null, list, rest), show };
}
