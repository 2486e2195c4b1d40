
/** Pictures, which are as wide as their place. */
const pictures = [];

function drawAll() {
  for (const picture of pictures) {
    const width = picture.place.clientWidth;
    if (width > 0 && width !== picture.width) {
      picture.width = width;
      picture.draw(width);
    }
  }
}

/** The frames of a stack, the innermost first, with their source lines. */
function stack(file, number) {
  const frames = (file.stacks[number] || []).map((at) => data.frames[at]);
  return make("ol", { class: "stack" }, ...frames.map((frame) => make("li", { class: frame.own ? "own" : null },
    name(frame.name), frame.source ? make("span", { class: "source" }, "  ", name(frame.source)) : null)));
}

/** Copies a text, or shows it selected where that is forbidden. */
function copyButton(text) {
  const button = make("button", { type: "button", class: "copy" }, "Copy as Markdown");
  const done = () => { button.textContent = "Copied"; };
  const failed = () => {
    const area = make("textarea", { readonly: "", rows: 12 });
    area.value = text;
    button.replaceWith(area);
    area.select();
    if (document.execCommand("copy")) { area.replaceWith(button); done(); }
  };
  button.addEventListener("click", () => {
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, failed);
    else failed();
  });
  return button;
}

function suspectDetails(file, suspect) {
  const id = "suspect-" + file.index + "-" + suspect.rank;
  const { is_of_handles } = suspect;
  const causes = suspect.causes.map((cause) => make("li", null,
    name(cause.text),
    cause.objects.length ? make("span", { class: "dim" }, " (objects " + cause.objects.join(" ") + (cause.object_count > cause.objects.length ? ", " + cause.objects.length + " of " + cause.object_count : "") + ")") : null,
    ...cause.close_stacks.map((number) => make("details", null, make("summary", null, is_of_handles ? "closed on this stack" : "freed on this stack"), stack(file, number)))));
  return make("section", { class: "suspect", id },
    make("h3", null, suspect.rank + ". ", name(suspect.line[6])),
    make("p", null, suspect.title),
    make("p", null, make("b", null, suspect.verdict), ": " + suspect.evidence),
    ...suspect.notes.map((note) => make("p", null, name(note))),
    causes.length ? make("ul", null, ...causes) : null,
    make("p", null, make("b", null, is_of_handles ? "Opened by" : "Allocated by")),
    suspect.stack === null ? make("p", { class: "dim" }, "no create stack") : stack(file, suspect.stack),
    make("p", null, make("code", null, suspect.command)),
    copyButton(suspect.markdown));
}

/** Stacked areas of open handles, or of allocated memory, over time. */
function timeline(subject, unit, label) {
  const { start, end, series, amounts, times } = subject;
  const place = make("div");
  const sums = [];
  let below = series.length ? series[0].open.map(() => 0) : [];
  for (const one of series) {
    const above = below.map((sum, at) => sum + one.open[at]);
    sums.push([below, above]);
    below = above;
  }
  const most = Math.max(1, ...below);
  const letters = (ticks) => Math.max(...ticks.map(([, text]) => text.length));
  const drawAt = (width) => {
    const [height, left, right, bottom] = [width < 600 ? 220 : 300, 14 + LETTER * letters(amounts), 10, 24];
    const wide = width - left - right;
    const x = (part) => left + wide * part;
    const y = (open) => 8 + (height - bottom - 8) * (1 - open / most);
    const picture = draw("svg", { width, height, role: "img", "aria-label": label });
    for (const [open, text] of amounts) {
      picture.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: y(open), y2: y(open) }),
        draw("text", { x: left - 6, y: y(open) + 4, "text-anchor": "end" }, text));
    }
    // Some of the times, if there is no room for all.
    const room = LETTER * (letters(times) + 2);
    const every = Math.max(1, Math.ceil(room * times.length / wide));
    times.filter((_, at) => at % every === 0).forEach(([time, text]) => {
      const at = x(end > start ? (time - start) / (end - start) : 0);
      const half = LETTER * text.length / 2;
      picture.append(draw("text", { x: Math.max(left + half, Math.min(width - half, at)), y: height - 6, "text-anchor": "middle" }, text));
    });
    series.forEach((one, index) => {
      const [low, high] = sums[index];
      const parts = high.length;
      const upper = [[x(0), y(0)], ...high.map((open, at) => [x((at + 1) / parts), y(open)])];
      const lower = [[x(0), y(0)], ...low.map((open, at) => [x((at + 1) / parts), y(open)])].reverse();
      const points = upper.concat(lower).map((point) => point.map((n) => n.toFixed(1)).join(",")).join(" ");
      picture.append(draw("polygon", { points, fill: COLORS[index % COLORS.length] }, draw("title", null, one.name)));
    });
    place.replaceChildren(picture);
  };
  pictures.push({ place, draw: drawAt });
  const legend = series.map((one, index) => make("li", null,
    draw("svg", { width: 12, height: 12 }, draw("rect", { width: 12, height: 12, fill: COLORS[index % COLORS.length] })),
    one.name + ": " + amount(one.open[one.open.length - 1] || 0, unit) + " at the end, peak " + amount(one.most, unit)));
  return make("div", { class: "timeline" }, place, make("ul", { class: "legend" }, ...legend.reverse()));
}

/** A flame graph in the order and the colours of `.flame`; a click zooms into a frame. */
function flame(stacks, unit, label) {
  const root = { name: "all", color: data.color, count: 0, children: new Map(), own: false };
  for (const { frames, count } of stacks) {
    let node = root;
    node.count += count;
    for (const at of frames) {
      const frame = data.frames[at];
      // Frames of other lines of a function are the same.
      if (!node.children.has(frame.name)) {
        node.children.set(frame.name, { name: frame.name, color: frame.color, own: frame.own, count: 0, children: new Map(), parent: node });
      }
      node = node.children.get(frame.name);
      node.count += count;
    }
  }
  if (root.count === 0) return make("p", { class: "dim" }, unit === "handles" ? "nothing leaks" : "everything was freed");
  const row = 18;
  const place = make("div", { class: "flame" });
  const depth = (node) => 1 + Array.from(node.children.values(), depth).reduce((a, b) => Math.max(a, b), 0);
  let focus = root;

  function show(width) {
    const path = [];
    for (let node = focus.parent; node; node = node.parent) path.unshift(node);
    const height = (path.length + depth(focus)) * row;
    const picture = draw("svg", { width, height, role: "img", "aria-label": label });
    const add = (node, left, wide, level) => {
      if (wide < 1) return;
      const top = height - (level + 1) * row;
      const box = draw("rect", { x: left.toFixed(1), y: top, width: wide.toFixed(1), height: row - 1, fill: node.color },
        draw("title", null, node.name + " (" + measured(node.count, unit) + ", " + (100 * node.count / root.count).toFixed(1) + " %)"));
      box.addEventListener("click", () => { focus = node; show(width); });
      const letters = Math.floor(wide / LETTER) - 1;
      const text = node.name.length <= letters ? node.name : node.name.slice(0, Math.max(0, letters - 1)) + "…";
      picture.append(box);
      if (letters > 2) picture.append(draw("text", { x: (left + 4).toFixed(1), y: top + 13, class: node.own ? "own" : null }, text));
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

  pictures.push({ place, draw: show });
  return place;
}

/** Pictures of handles, or of a kind of allocations. */
function picturesOf(subject, over, left, wide) {
  return [
    ...(subject.timeline ? [make("h2", null, over), timeline(subject.timeline, subject.unit, over)] : []),
    make("h2", null, left), wide ? make("p", { class: "dim" }, wide) : null, flame(subject.flame, subject.unit, left)];
}

/** The pictures of a kind of allocations. */
function kindPictures(kind) {
  const over = (kind.unit === "bytes" ? "Allocated bytes" : "Allocations") + " over time: " + kind.kind;
  return picturesOf(kind, over, "Flame graph of allocations not freed: " + kind.kind,
    "width: " + (kind.unit === "bytes" ? "bytes" : "number of allocations"));
}

/** All groups of handles, or of allocations. */
function groups(file, rows, title) {
  const left = file[rows + "_left_out"];
  const columns = data.tables[rows].map((column) =>
    column.bytes ? { ...column, show: (row) => amount(row[column.key], "bytes") } : column);
  return [make("h2", null, title), table(columns, file[rows], "group"),
    left ? make("p", { class: "dim" }, count(left, "more group")) : null];
}

/** Replaces the table of the first suspects by that of all, and adds the rest about a trace. */
function complete(file) {
  const article = document.getElementById("file-" + file.index);
  const link = (row) => "#suspect-" + file.index + "-" + row.rank;
  const columns = file.columns.map(({ at, title, by, is_link }) => ({
    title, number: Boolean(by), link: is_link ? link : null, class: title.toLowerCase().replace(" ", "-"),
    show: (row) => row.line[at], value: (row) => by ? row[by] : row.line[at],
  }));
  const words = (row) => [row.function, row.title, ...row.notes, ...row.causes.map((cause) => cause.text),
    ...(file.stacks[row.stack] || []).map((at) => data.frames[at].name)].join(" ");
  const place = article.querySelector(".suspects");
  if (place) place.replaceChildren(table(columns, file.suspects, "suspect", words));
  const { list, show } = details(file.suspects, new Set(file.listed), (suspect) => suspectDetails(file, suspect));
  const parts = [
    ...(file.has_handles ? picturesOf(file, "Open handles over time", "Flame graph of leaked handles") : []),
    ...file.kinds.flatMap(kindPictures),
    ...(file.suspects.length ? [make("h2", null, "Suspects in detail"), list] : []),
    ...(file.has_handles ? groups(file, "groups", "All groups of handles") : []),
    ...(file.kinds.length ? groups(file, "allocated", "All groups of allocations") : [])];
  article.append(...parts.filter(Boolean));
  return show;
}

const shows = data.files.map(complete);
document.querySelector(".static").remove();
drawAll();
addEventListener("resize", drawAll);
follow((id) => {
  const [, index, rank] = /^suspect-(\d+)-(\d+)$/.exec(id) || [];
  const suspect = index && data.files[index] && data.files[index].suspects.find((one) => one.rank === Number(rank));
  return suspect ? shows[index](suspect) : null;
});
