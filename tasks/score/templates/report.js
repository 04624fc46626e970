"use strict";
const samples = REPORT.samples.map((row, at) => {
  const sample = { at };
  REPORT.fields.forEach((name, i) => { sample[name] = row[i]; });
  return sample;
});
const byId = id => document.getElementById(id);
const BATCH = 120;
const HUES = ["#1769c2", "#c2392b", "#2e7d57", "#d9951a", "#7b3fb5", "#0c8577", "#b5306e", "#7d5a2c", "#5d6470", "#8aa33a", "#3aa3c2", "#c26a10"];
// Only what is whole is 100 %.
const percent = share => `${(share < 1 ? Math.min(100 * share, 99.9) : 100).toFixed(1)} %`;
const pagesOf = count => `${count.toLocaleString("en")} ${count === 1 ? "page" : "pages"}`;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
function thumbnail(sample) {
  if (!sample.thumb) return element("span", { className: "unseen", textContent: sample.fault, title: sample.file });
  return element("img", { src: sample.thumb, loading: "lazy", decoding: "async", alt: sample.file });
}
function verdict(sample) {
  if (sample.fault) return `dropped: ${sample.fault}`;
  return sample.reason ? `dropped: ${REPORT.causes[sample.reason]}` : "kept";
}
function scores(sample) {
  const lines = [verdict(sample)];
  if (!sample.fault) lines.push(`probability ${percent(sample.p)}`);
  if (sample.margin !== null) lines.push(`margin ${sample.margin}`);
  if (!sample.fault) lines.push(`lettering ${percent(sample.text)} of it`);
  if (sample.wanted) lines.push(`${sample.wanted} rather than ${sample.unwanted}`);
  if (sample.rank) lines.push(`selected as no. ${sample.rank}`);
  if (sample.said !== null) lines.push(sample.said ? "labelled: illustration" : "labelled: no illustration");
  return lines;
}
function caption(sample) {
  const [text, source, picture] = CAPTIONS[sample.file] ?? [];
  // The file may hold another picture than the caption is of; thumbnails are named by their hash.
  if (!text || !sample.thumb.includes(picture.slice(1))) return "";
  return `“${text}” (caption: ${source})`;
}
function onPage(sample) {
  return `page ${sample.page}${sample.label ? ` (${sample.label})` : ""}`;
}
function place(sample) {
  return `${REPORT.pdfs[sample.pdf]}, ${onPage(sample)}`;
}

// Contact sheet: filters, order, and cards made as one scrolls.
const FILTERS = {
  all: ["all", () => true],
  kept: ["kept", s => !s.reason],
  uncertain: ["uncertain", s => !s.fault && s.p > .1 && s.p < .9],
  wrong: ["wrong by your labels", s => s.said !== null && s.said !== !["impure", "text", "unreadable"].includes(s.reason)],
  ...Object.fromEntries(Object.entries(REPORT.causes).map(([why, name]) => [why, [name, s => s.reason === why]])),
  labelled: ["labelled", s => s.said !== null],
};
const ORDERS = {
  worst: (a, b) => a.p - b.p || b.text - a.text || a.at - b.at,
  best: (a, b) => b.p - a.p || a.text - b.text || a.at - b.at,
  page: (a, b) => a.at - b.at,
  text: (a, b) => b.text - a.text || a.at - b.at,
  rank: (a, b) => (a.rank || Infinity) - (b.rank || Infinity) || a.at - b.at,
};
let filter = "all", list = [], made = 0, under = null;

function card(sample) {
  const scored = element("div", { className: "scores" }, ...scores(sample).map(line => element("div", { textContent: line })),
    element("div", { className: "said", textContent: caption(sample) }));
  const made = element("figure", { className: "card", tabIndex: 0 },
    element("div", { className: "frame" }, thumbnail(sample)),
    element("figcaption", {},
      element("p", { className: "verdict" }, element("b", { textContent: sample.fault ? "" : percent(sample.p) }), sample.reason ? ` ${REPORT.causes[sample.reason]}` : ""),
      element("p", { className: "where", title: place(sample) },
        element("span", { textContent: REPORT.pdfs[sample.pdf] }), element("span", { textContent: onPage(sample) }))),
    scored);
  made.dataset.at = sample.at;
  if (sample.reason) made.dataset.reason = sample.reason;
  made.classList.toggle("wrong", FILTERS.wrong[1](sample));
  made.addEventListener("click", () => open(sample));
  made.addEventListener("keydown", event => { if (event.key === "Enter") open(sample); });
  return made;
}
function grow() {
  byId("pages").append(...list.slice(made, made + BATCH).map(card));
  made = Math.min(list.length, made + BATCH);
}
function show() {
  const volume = byId("volume").value, cluster = byId("cluster").value;
  list = samples.filter(s => FILTERS[filter][1](s)
    && (volume === "" || s.volume === +volume) && (cluster === "" || s.cluster === +cluster));
  list.sort(ORDERS[byId("order").value]);
  byId("pages").replaceChildren();
  made = 0;
  grow();
  byId("nothing").hidden = list.length > 0;
  byId("shown").textContent = `${list.length.toLocaleString("en")} of ${samples.length.toLocaleString("en")}`;
}
for (const [name, [title, test]] of Object.entries(FILTERS)) {
  const count = samples.filter(test).length;
  if (!count && name !== "all") continue;
  const chip = element("button", { textContent: `${title} ` }, element("small", { textContent: count.toLocaleString("en") }));
  chip.dataset.filter = name;
  chip.ariaPressed = name === filter;
  chip.addEventListener("click", () => {
    filter = name;
    for (const other of byId("chips").children) other.ariaPressed = other === chip;
    show();
  });
  byId("chips").append(chip);
}
REPORT.volumes.forEach((name, i) => byId("volume").append(element("option", { value: i, textContent: name })));
[...new Set(samples.map(s => s.cluster))].filter(c => c >= 0).sort((a, b) => a - b).forEach(
  c => byId("cluster").append(element("option", { value: c, textContent: c + 1 })));
for (const id of ["volume", "cluster", "order"]) byId(id).addEventListener("change", show);
new IntersectionObserver(seen => { if (seen[0].isIntersecting && made < list.length) grow(); }, { rootMargin: "800px" })
  .observe(byId("more"));

// One sample, with the page it was cut from.
function paper(picture, ratio, box) {
  const sheet = element("div", { className: "paper" }, element("img", { src: picture, alt: "" }));
  sheet.style.setProperty("--ratio", ratio);
  if (box) {
    const frame = element("i", { className: "box" });
    ["left", "top", "width", "height"].forEach((side, i) => { frame.style[side] = `${box[i]}%`; });
    sheet.append(frame);
  }
  return sheet;
}
function reveal(stage, sample, said, caption) {
  const large = byId("large");
  large.querySelector(".stage").replaceChildren(stage);
  large.querySelector(".sample").replaceChildren(...sample);
  large.querySelector(".said").textContent = said;
  large.querySelector(".caption").textContent = caption;
  if (!large.open) large.showModal();
}
function open(sample) {
  under = sample;
  const file = sample.reason ? sample.file.replace(/^images/, "dropped") : sample.file;
  const picture = thumbnail(sample);
  // The sample itself, where the dataset lies beside the report.
  const whole = new Image();
  whole.onload = () => { picture.src = whole.src; };
  if (!sample.fault) whole.src = "../" + file.split("/").map(encodeURIComponent).join("/");
  const stage = sample.picture ? paper(sample.picture, sample.pageRatio, sample.box)
    : element("p", { className: "unseen", textContent: `Cut from ${place(sample)}; the page could not be drawn for this report.` });
  reveal(stage, [picture], caption(sample), [place(sample), file, ...scores(sample)].join("  ·  "));
}
function step(by) {
  const next = list[list.indexOf(under) + by];
  if (next) open(next);
}
byId("large").addEventListener("click", () => byId("large").close());
document.addEventListener("keydown", event => {
  if (!byId("large").open || !under) return;
  if (event.key === "ArrowRight") step(1);
  else if (event.key === "ArrowLeft") step(-1);
});

// Strips: duplicate groups, dropped samples and dropped pages by reason.
const STRIP = 60;
function figure(holder, caption, act) {
  const made = element("figure", {}, element("div", { className: "holder" }, holder), element("figcaption", { textContent: caption }));
  made.addEventListener("click", act);
  return made;
}
REPORT.groups.slice(0, 500).forEach(group => {
  const strip = element("div", { className: "strip group" });
  group.map(at => samples[at]).forEach((sample, i) => {
    const one = figure(thumbnail(sample), `${i ? "copy" : "best"}: ${place(sample)}`, () => open(sample));
    one.classList.toggle("best", i === 0);
    strip.append(one);
  });
  byId("groups").append(strip);
});
byId("groups").hidden = !REPORT.groups.length;
for (const [why, name] of Object.entries(REPORT.causes)) {
  const some = samples.filter(s => s.reason === why).sort(ORDERS.worst);
  if (!some.length) continue;
  byId("reasons").hidden = false;
  byId("reasons").append(
    element("h3", { textContent: `${name} ` }, element("small", { textContent: some.length.toLocaleString("en") })),
    element("div", { className: "strip" }, ...some.slice(0, STRIP).map(s => figure(thumbnail(s), place(s), () => open(s)))));
}
for (const { reason, count, pages } of REPORT.droppedPages) {
  byId("droppedPages").hidden = false;
  byId("droppedPages").append(
    element("h3", { textContent: `${reason} ` }, element("small", { textContent: pagesOf(count) })),
    element("div", { className: "strip" }, ...pages.map(page => {
      const name = `${page.pdf}, page ${page.page}`;
      if (!page.picture) return figure(element("span", { className: "unseen", textContent: "not drawn" }), name, () => {});
      const image = element("img", { src: page.picture, loading: "lazy", decoding: "async", alt: name });
      return figure(image, name, () => {
        under = null;
        reveal(paper(page.picture, image.naturalWidth / image.naturalHeight, null), [], "", `${name}  ·  dropped: ${reason}`);
      });
    })));
}

// Drawings.
const SVG = "http://www.w3.org/2000/svg";
function draw(svg, tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  svg.append(made);
  return made;
}
function histogram() {
  const svg = byId("histogram"), END = 7.5, BINS = 40, WIDTH = 416, LEFT = 22, TOP = 24, FLOOR = 150;
  const logit = p => Math.log(Math.max(p, 1e-9) / Math.max(1 - p, 1e-9));
  const x = p => LEFT + (Math.min(END, Math.max(-END, logit(p))) + END) / (2 * END) * WIDTH;
  const bins = Array.from({ length: BINS }, () => ({ kept: 0, dropped: 0, plain: 0 }));
  for (const s of samples) {
    if (s.fault) continue;
    const bin = bins[Math.min(BINS - 1, Math.floor((x(s.p) - LEFT) / WIDTH * BINS))];
    bin[s.said === false ? "plain" : s.reason ? "dropped" : "kept"] += 1;
  }
  const total = bin => bin.kept + bin.dropped + bin.plain;
  const most = Math.max(1, ...bins.map(total));
  // Heights by square root: one odd sample must show beside thousands of plain ones.
  const height = count => Math.sqrt(count / most) * (FLOOR - TOP);
  bins.forEach((bin, i) => {
    let below = 0;
    for (const group of ["kept", "dropped", "plain"]) {
      if (!bin[group]) continue;
      const top = height(below + bin[group]), foot = height(below);
      const bar = draw(svg, "rect", { class: group, x: LEFT + i * WIDTH / BINS + .5, width: WIDTH / BINS - 1, y: FLOOR - top, height: top - foot });
      draw(bar, "title", {}, `${bin[group]} ${group}`);
      below += bin[group];
    }
  });
  draw(svg, "line", { class: "axis", x1: LEFT, x2: LEFT + WIDTH, y1: FLOOR, y2: FLOOR });
  for (const p of [.001, .01, .1, .5, .9, .99, .999]) {
    draw(svg, "line", { class: "axis", x1: x(p), x2: x(p), y1: FLOOR, y2: FLOOR + 4 });
    draw(svg, "text", { x: x(p), y: FLOOR + 16 }, `${100 * p} %`);
  }
  const at = x(REPORT.threshold);
  draw(svg, "line", { class: "now", x1: at, x2: at, y1: TOP - 6, y2: FLOOR });
  draw(svg, "text", { class: "now before", x: at - 4, y: TOP - 8 }, `threshold ${percent(REPORT.threshold)}`);
}
function curve() {
  const svg = byId("curve");
  if (!svg) return;
  const points = JSON.parse(svg.dataset.curve), knee = +svg.dataset.knee, last = points.at(-1)[0];
  const x = n => 30 + n / last * 410, y = share => 150 - share * 126;
  for (const share of [0, .5, 1]) {
    draw(svg, "line", { class: "axis", x1: 30, x2: 440, y1: y(share), y2: y(share) });
    draw(svg, "text", { x: 14, y: y(share) + 3 }, `${100 * share} %`);
  }
  draw(svg, "polyline", { points: points.map(([n, share]) => `${x(n)},${y(share)}`).join(" "), fill: "none", stroke: "#2e7d57", "stroke-width": 2 });
  if (knee) {
    draw(svg, "line", { class: "better", x1: x(knee), x2: x(knee), y1: 24, y2: 150 });
    draw(svg, "text", { class: "better", x: x(knee) + 4, y: 146 }, `bend at ${knee}`);
  }
  draw(svg, "text", { x: x(last), y: 166 }, last);
}
const canvas = byId("map"), MARGIN = 12;
const spot = s => [MARGIN + s.x * (canvas.width - 2 * MARGIN), MARGIN + s.y * (canvas.height - 2 * MARGIN)];
const mapped = samples.filter(s => !s.fault);
// What the map may be coloured by: the colour of a sample, and the legend's names.
const hue = n => HUES[n % HUES.length];
const KEPT = "#2e7d57", DROPPED = "#c2392b";
const LEGENDS = {
  volume: () => REPORT.volumes.map((name, i) => [hue(i), name]),
  cluster: () => [...new Set(mapped.map(s => s.cluster))].sort((a, b) => a - b).map(c => [hue(c), `cluster ${c + 1}`]),
  kept: () => [[KEPT, "kept"], [DROPPED, "dropped"]],
};
function legend(by) {
  const entries = LEGENDS[by]();
  byId("hues").replaceChildren(...entries.map(([colour, name]) => {
    const swatch = element("i");
    swatch.style.background = colour;
    return element("span", {}, swatch, name);
  }));
  const notes = by === "kept" ? [] : ["Pale: dropped."];
  if (entries.length > HUES.length) notes.push(`There are ${HUES.length} colours, which begin again; point at a sample for its own.`);
  byId("pale").textContent = notes.join(" ");
}
function map() {
  const ink = canvas.getContext("2d"), by = byId("colour").value;
  legend(by);
  ink.clearRect(0, 0, canvas.width, canvas.height);
  const radius = Math.max(1.6, Math.min(5, 90 / Math.sqrt(mapped.length)));
  for (const s of mapped) {
    ink.globalAlpha = s.reason && by !== "kept" ? .35 : .9;
    ink.fillStyle = by === "kept" ? (s.reason ? DROPPED : KEPT) : hue(s[by]);
    ink.beginPath();
    ink.arc(...spot(s), radius, 0, 7);
    ink.fill();
  }
}
function nearest(event) {
  const frame = canvas.getBoundingClientRect();
  const x = (event.clientX - frame.left) * canvas.width / frame.width, y = (event.clientY - frame.top) * canvas.height / frame.height;
  let best = null, distance = 400;
  for (const s of mapped) {
    const [a, b] = spot(s), d = (a - x) ** 2 + (b - y) ** 2;
    if (d < distance) { best = s; distance = d; }
  }
  return best;
}
canvas.addEventListener("mousemove", event => {
  const s = nearest(event);
  byId("spot").textContent = s ? `${REPORT.volumes[s.volume]}, page ${s.page}, cluster ${s.cluster + 1}` : "";
});
canvas.addEventListener("click", event => { const s = nearest(event); if (s) open(s); });
byId("colour").addEventListener("change", map);
show();
histogram();
curve();
map();
