
/** The frames of a stack, the innermost first, with their source lines. */
function stack(file, number) {
  const frames = (file.stacks[number] || []).map((at) => data.frames[at]);
  return make("ol", { class: "stack" }, ...frames.map((frame) => make("li", { class: frame.own ? "own" : null },
    frame.name, frame.source ? make("span", { class: "source" }, "  " + frame.source) : null)));
}

function suspectDetails(file, suspect) {
  const id = "suspect-" + file.index + "-" + suspect.rank;
  const causes = suspect.causes.map((cause) => make("li", null,
    cause.text,
    cause.objects.length ? make("span", { class: "dim" }, " (objects " + cause.objects.join(" ") + (cause.object_count > cause.objects.length ? ", " + cause.objects.length + " of " + cause.object_count : "") + ")") : null,
    ...cause.close_stacks.map((number) => make("details", null, make("summary", null, suspect.bytes === null ? "closed on this stack" : "freed on this stack"), stack(file, number)))));
  return make("section", { class: "suspect", id },
    make("h3", null, suspect.rank + ". " + suspect.process + " " + suspect.type),
    make("p", null, suspect.amount),
    make("p", null, make("b", null, suspect.verdict), ": " + suspect.evidence),
    make("ul", null, ...causes),
    make("p", null, make("b", null, suspect.bytes === null ? "Opened by" : "Allocated by")),
    suspect.stack === null ? make("p", { class: "dim" }, "no create stack") : stack(file, suspect.stack),
    make("p", null, make("code", null, suspect.command)));
}

/** Stacked areas of open handles, or of allocated memory, over time. */
function timeline(data, unit, label) {
  const { start, end, series } = data;
  const [width, height, left, bottom] = [1200, 300, unit === "bytes" ? 84 : 60, 24];
  const sums = [];
  let below = series.length ? series[0].open.map(() => 0) : [];
  for (const one of series) {
    const above = below.map((sum, at) => sum + one.open[at]);
    sums.push([below, above]);
    below = above;
  }
  const most = Math.max(1, ...below);
  const x = (at, parts) => left + (width - left - 10) * at / parts;
  const y = (open) => 8 + (height - bottom - 8) * (1 - open / most);
  const picture = draw("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": label });
  for (let tick = 0; tick <= 4; tick++) {
    const open = Math.round(most * tick / 4);
    picture.append(draw("line", { class: "axis", x1: left, x2: width - 10, y1: y(open), y2: y(open) }),
      draw("text", { x: left - 6, y: y(open) + 4, "text-anchor": "end" }, amount(open, unit)));
    const seconds = start + (end - start) * tick / 4;
    picture.append(draw("text", { x: x(tick, 4), y: height - 6, "text-anchor": tick === 4 ? "end" : "middle" }, seconds.toPrecision(3) + " s"));
  }
  series.forEach((one, index) => {
    const [low, high] = sums[index];
    const parts = high.length;
    const upper = [[x(0, parts), y(0)], ...high.map((open, at) => [x(at + 1, parts), y(open)])];
    const lower = [[x(0, parts), y(0)], ...low.map((open, at) => [x(at + 1, parts), y(open)])].reverse();
    const points = upper.concat(lower).map((point) => point.map((n) => n.toFixed(1)).join(",")).join(" ");
    picture.append(draw("polygon", { points, fill: COLORS[index % COLORS.length] }, draw("title", null, one.name)));
  });
  const legend = series.map((one, index) => make("li", null,
    draw("svg", { width: 12, height: 12 }, draw("rect", { width: 12, height: 12, fill: COLORS[index % COLORS.length] })),
    one.name + ": " + amount(one.open[one.open.length - 1] || 0, unit) + " at the end, peak " + amount(one.most, unit)));
  return make("div", { class: "timeline" }, picture, make("ul", { class: "legend" }, ...legend.reverse()));
}

/** A flame graph; a click zooms into a frame. */
function flame(stacks, unit, label) {
  const root = { name: "all", count: 0, children: new Map(), own: false };
  for (const { frames, count } of stacks) {
    let node = root;
    node.count += count;
    for (const at of frames) {
      if (!node.children.has(at)) {
        node.children.set(at, { name: data.frames[at].name, own: data.frames[at].own, count: 0, children: new Map(), parent: node });
      }
      node = node.children.get(at);
      node.count += count;
    }
  }
  const [width, row] = [1200, 18];
  const place = make("div", { class: "flame" });
  const depth = (node) => 1 + Array.from(node.children.values(), depth).reduce((a, b) => Math.max(a, b), 0);

  function show(focus) {
    const path = [];
    for (let node = focus.parent; node; node = node.parent) path.unshift(node);
    const height = (path.length + depth(focus)) * row;
    const picture = draw("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": label });
    const add = (node, left, wide, level) => {
      if (wide < 1) return;
      const top = height - (level + 1) * row;
      const box = draw("rect", { x: left.toFixed(1), y: top, width: wide.toFixed(1), height: row - 1, class: node.own ? "own" : null },
        draw("title", null, node.name + " (" + measured(node.count, unit) + ", " + (100 * node.count / root.count).toFixed(1) + " %)"));
      box.addEventListener("click", () => show(node));
      const letters = Math.floor(wide / 7.3) - 1;
      const name = node.name.length <= letters ? node.name : node.name.slice(0, Math.max(0, letters - 1)) + "…";
      picture.append(box);
      if (letters > 2) picture.append(draw("text", { x: (left + 4).toFixed(1), y: top + 13 }, name));
    };
    const grow = (node, left, level) => {
      add(node, left, width * node.count / focus.count, level);
      for (const child of node.children.values()) {
        grow(child, left, level + 1);
        left += width * child.count / focus.count;
      }
    };
    path.forEach((node, level) => add(node, 0, width, level));
    grow(focus, 0, path.length);
    place.replaceChildren(picture);
  }

  if (root.count === 0) return make("p", { class: "dim" }, unit === "handles" ? "nothing leaks" : "everything was freed");
  show(root);
  return place;
}

/** The totals of a kind of allocations, in a line. */
function kindLine(kind) {
  const sized = (number, bytes) => number.toLocaleString("en") + (kind.unit === "bytes" ? " (" + amount(bytes, "bytes") + ")" : "");
  return kind.kind + ": " + sized(kind.allocated, kind.allocated_bytes) + " allocated, " +
    sized(kind.outstanding, kind.outstanding_bytes) + " leaked, " +
    sized(kind.at_exit, kind.at_exit_bytes) + " freed only by process exit";
}

/** Pictures of handles, or of a kind of allocations. */
function pictures(subject, over, left, wide) {
  return [
    ...(subject.timeline ? [make("h2", null, over), timeline(subject.timeline, subject.unit, over)] : []),
    make("h2", null, left), wide ? make("p", { class: "dim" }, wide) : null, flame(subject.flame, subject.unit, left)];
}

/** The pictures of a kind of allocations. */
function kindPictures(kind) {
  const over = (kind.unit === "bytes" ? "Allocated bytes" : "Allocations") + " over time: " + kind.kind;
  return pictures(kind, over, "Flame graph of what was not freed: " + kind.kind,
    "width: " + (kind.unit === "bytes" ? "bytes" : "number of allocations"));
}

/** All groups of handles, or of allocations. */
function groups(file, name, title, label) {
  const left = file[name + "_left_out"];
  const columns = data.tables[name].map((column) =>
    column.bytes ? { ...column, show: (row) => amount(row[column.key], "bytes") } : column);
  return [make("h2", null, title), table(columns, file[name], label),
    left ? make("p", { class: "dim" }, count(left, "more group")) : null];
}

function section(file) {
  const link = (row) => "#suspect-" + file.index + "-" + row.rank;
  const suspects = table([
    { key: "rank", title: "Rank", number: true, link },
    { key: "process", title: "Process" }, { key: "type", title: "Type" },
    { key: "leaked", title: "Leaked", number: true }, { key: "at_exit", title: "At exit", number: true },
    { key: "opened", title: "Opened", number: true },
    ...(file.allocations ? [{ key: "bytes", title: "Bytes", number: true, show: (row) => row.bytes === null ? "" : amount(row.bytes, "bytes") }] : []),
    { key: "verdict", title: "Growth" },
    { key: "rate", title: "Per minute", number: true, show: (row) => row.rate === null ? "" : Number(row.rate.toPrecision(3)).toLocaleString("en") },
    { key: "words", title: "Cause" }, { key: "function", title: "Function", link },
  ], file.suspects.map((suspect) => ({ ...suspect, words: suspect.causes.length ? suspect.causes[0].text : "" })), "suspects");
  const { totals } = file;
  const none = make("p", null, file.has_events ? "Nothing leaks." : "It is unknown whether anything leaks.");
  return make("article", { id: "file-" + file.index },
    make("h1", null, file.name),
    make("p", { class: "dim" }, file.path + (file.start ? ", started " + file.start : "") + (file.seconds === null ? "" : ", " + file.seconds.toPrecision(4) + " s")),
    ...(file.has_handles ? [make("p", null, count(totals.opened, "handle") + " opened, " + totals.closed.toLocaleString("en") + " closed (" +
      totals.at_exit.toLocaleString("en") + " only by process exit), " + totals.leaked.toLocaleString("en") + " leaked" + (totals.leaked_views ? ", " + count(totals.leaked_views, "leaked view") : ""))] : []),
    ...file.kinds.map((kind) => make("p", null, kindLine(kind))),
    ...file.caveats.map((text) => make("p", { class: "caveat" }, text)),
    make("h2", null, "Suspects"), ...(file.suspects.length ? [suspects] : [none]),
    file.suspects_left_out ? make("p", { class: "dim" }, count(file.suspects_left_out, "more suspect")) : null,
    ...(file.has_handles ? pictures(file, "Open handles over time", "Flame graph of leaked handles") : []),
    ...file.kinds.flatMap(kindPictures),
    ...(file.suspects.length ? [make("h2", null, "Suspects in detail"), ...file.suspects.map((suspect) => suspectDetails(file, suspect))] : []),
    ...(file.has_handles ? groups(file, "groups", "All groups of handles", "groups") : []),
    ...(file.kinds.length ? groups(file, "allocated", "All groups of allocations", "allocations") : []));
}

document.title = "handlescope: " + data.files.map((file) => file.name).join(", ");
const asked = data.asked === null ? [] : [make("p", { class: "dim" }, "Limited to: " + data.asked)];
document.getElementById("report").append(...asked, ...data.files.map(section), make("p", { class: "dim" }, data.exporter));
