
/** A bar for each day: what a suspect leaked. */
function dayBars(suspect) {
  const days = data.days;
  const [width, height, bottom] = [640, 90, 18];
  const most = Math.max(1, ...suspect.by_day);
  const wide = width / days.length;
  const picture = draw("svg", { viewBox: "0 0 " + width + " " + height, role: "img", class: "days", "aria-label": "leaked by day" });
  suspect.by_day.forEach((leaked, at) => {
    const tall = (height - bottom) * leaked / most;
    picture.append(draw("rect", { x: (at * wide).toFixed(1), y: (height - bottom - tall).toFixed(1), width: Math.max(1, wide - 1).toFixed(1), height: tall.toFixed(1), fill: COLORS[0] },
      draw("title", null, days[at] + ": " + leaked.toLocaleString("en") + " leaked")));
  });
  picture.append(draw("line", { class: "axis", x1: 0, x2: width, y1: height - bottom, y2: height - bottom }),
    draw("text", { x: 0, y: height - 4 }, days[0]));
  if (days.length > 1) picture.append(draw("text", { x: width, y: height - 4, "text-anchor": "end" }, days[days.length - 1]));
  return picture;
}

/** Machines by days: the darker, the more handles leaked per trace. */
function heatMap() {
  const { rows, left_out } = data.heat;
  const days = data.days;
  const [left, tall, top] = [150, 18, 22];
  const wide = Math.max(4, Math.min(40, 1000 / days.length));
  const most = Math.max(1, ...rows.flatMap((row) => row.cells.map((cell) => cell || 0)));
  const [width, height] = [left + wide * days.length, top + tall * rows.length];
  const picture = draw("svg", { viewBox: "0 0 " + width.toFixed(0) + " " + height, width: width.toFixed(0), role: "img", class: "heat", "aria-label": "leaked handles by machine and day" });
  picture.append(draw("text", { x: left, y: 14 }, days[0]));
  if (days.length > 1 && wide * days.length > 180) picture.append(draw("text", { x: width, y: 14, "text-anchor": "end" }, days[days.length - 1]));
  rows.forEach((row, at) => {
    const y = top + at * tall;
    const name = row.machine.length > 19 ? row.machine.slice(0, 18) + "…" : row.machine;
    picture.append(draw("text", { x: left - 6, y: y + 13, "text-anchor": "end" }, name, draw("title", null, row.machine)));
    row.cells.forEach((cell, day) => {
      const x = (left + day * wide).toFixed(1);
      const title = row.machine + ", " + days[day] + ": " + (cell === null ? "no trace" : Number(cell.toFixed(1)).toLocaleString("en") + " leaked per trace");
      const opacity = cell === null ? 0 : (0.08 + 0.92 * Math.sqrt(cell / most)).toFixed(3);
      picture.append(draw("rect", { x, y, width: (wide - 1).toFixed(1), height: tall - 1, class: cell === null ? "none" : "cell", "fill-opacity": cell === null ? null : opacity }, draw("title", null, title)));
    });
  });
  return make("div", { class: "scroll" }, picture,
    make("p", { class: "dim" }, "leaked handles per trace; the darkest cell has " + Number(most.toFixed(1)).toLocaleString("en") + (left_out ? "; " + count(left_out, "more machine") + " leak less" : "")));
}

function rate(number) {
  return number === null ? "" : Number(number.toPrecision(3)).toLocaleString("en");
}

function suspectDetails(suspect) {
  const growth = suspect.rate === null ? "" : rate(suspect.rate) + " per minute on the median machine, at most " + rate(suspect.most) + "; ";
  const page = suspect.page ? make("a", { href: suspect.page }, "report of this trace") : null;
  return make("section", { class: "suspect", id: "suspect-" + suspect.rank },
    make("h3", null, suspect.rank + ". ", name(suspect.function)),
    make("p", null, suspect.process + " " + suspect.type + " on " + suspect.machines + " of " + count(suspect.of_machines, "machine") + ": " + suspect.amount + " in " + suspect.traces + " of " + count(suspect.of_traces, "trace")),
    make("p", null, make("b", null, "Growth"), ": " + growth + suspect.verdicts),
    make("p", null, make("b", null, "Seen"), " " + suspect.builds),
    suspect.causes ? make("p", null, make("b", null, "Causes"), ": " + suspect.causes) : null,
    suspect.ignored ? make("p", null, suspect.ignored) : null,
    make("p", null, make("b", null, "Leaked by day")), dayBars(suspect),
    make("p", null, make("b", null, "Opened by")),
    suspect.frames.length ? make("ol", { class: "stack" }, ...suspect.frames.map((frame) => make("li", { class: frame.own ? "own" : null }, name(frame.name)))) : make("p", { class: "dim" }, "no create stack"),
    make("p", null, make("b", null, "Worst"), " on " + suspect.worst_machine + ", " + suspect.worst_day + ": " + suspect.evidence + " ", page),
    ...suspect.commands.map((command) => make("p", null, make("code", null, command))));
}

function fleet() {
  const link = (row) => "#suspect-" + row.rank;
  const columns = [
    { key: "rank", title: "Rank", number: true, link },
    { key: "machines", title: "Machines", number: true, show: (row) => row.machines + " of " + row.of_machines },
    { key: "process", title: "Process" }, { key: "type", title: "Type" },
    { key: "leaked", title: "Leaked", number: true, show: (row) => row.leaked.toLocaleString("en") },
    { key: "rate", title: "Per minute", number: true, show: (row) => rate(row.rate) },
    { key: "most", title: "At most", number: true, show: (row) => rate(row.most) },
    { key: "first_build", title: "First build" }, { key: "first_day", title: "First seen" },
    { key: "last_day", title: "Last seen" },
    { key: "fixed", title: "Fixed in", show: (row) => row.fixed === null ? "" : row.fixed },
    { key: "function", title: "Function", link },
  ];
  const { suspects } = data;
  const article = document.getElementById("fleet");
  const place = article.querySelector(".suspects");
  if (place) place.replaceChildren(table(columns, suspects, "suspect", (row) => row.frames.map((frame) => frame.name).join(" ")));
  const { list, show } = details(suspects, new Set(suspects.slice(0, 12).map((row) => row.rank)), suspectDetails);
  article.append(make("h2", null, "Machines by days"), heatMap(),
    ...(suspects.length ? [make("h2", null, "Suspects in detail"), list] : []));
  document.querySelector(".static").remove();
  follow((id) => {
    const suspect = suspects.find((row) => "suspect-" + row.rank === id);
    return suspect ? show(suspect) : null;
  });
}

fleet();
