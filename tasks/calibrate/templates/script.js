"use strict";
const pages = [...document.querySelectorAll(".page")];
const large = document.getElementById("large");
const volume = document.getElementById("volume");
const KEYS = { t: "text", m: "mixed", i: "illustration", b: "blank", o: "other", x: "" };
const ILLUSTRATED = ["mixed", "illustration"];
// Marks made upon other labels are stale: those labels came from them, or were written by hand.
const STORE = `intaglio ${location.pathname} ${document.body.dataset.said}`;
let tag = "all";
let under = null;

// Marks that were not downloaded yet outlive a reload where the browser allows it.
function load() {
  try { return JSON.parse(localStorage.getItem(STORE)) || {}; } catch { return {}; }
}
function save() {
  try { localStorage.setItem(STORE, JSON.stringify(marks)); } catch { /* not allowed: marks last until the reload */ }
}
const marks = load();
const name = page => page.dataset.pdf + "\n" + page.dataset.index;
const label = page => marks[name(page)] ?? page.dataset.label;

function show(page) {
  const said = label(page);
  const mark = page.querySelector(".mark");
  mark.textContent = said;
  mark.dataset.side = ILLUSTRATED.includes(said) ? "keep" : said === "other" ? "" : "drop";
}
function count() {
  const labelled = pages.filter(label).length;
  document.getElementById("marked").textContent = `${labelled} of ${pages.length} labelled`;
}
function filter() {
  let left = 0;
  for (const page of pages) {
    const through = (tag === "all" || page.dataset.tags.split(" ").includes(tag))
      && (!volume.value || page.dataset.pdf === volume.value);
    page.hidden = !through;
    left += through;
  }
  document.getElementById("nothing").hidden = left > 0;
}
function mark(page, key) {
  const guess = page.dataset.guess;
  let said = KEYS[key];
  if (key === "k") said = ILLUSTRATED.includes(guess) ? guess : "mixed";
  if (key === "d") said = ILLUSTRATED.includes(guess) ? "text" : guess;
  if (said === undefined) return false;
  marks[name(page)] = said;
  save();
  show(page);
  count();
  return true;
}
function open(page) {
  under = page;
  const paper = page.querySelector(".paper").cloneNode(true);
  paper.querySelector("img").src = page.dataset.large;
  large.querySelector(".stage").replaceChildren(paper);
  const words = [...page.querySelectorAll("figcaption p")].map(p => p.textContent);
  large.querySelector(".caption").textContent = [...words, label(page)].filter(Boolean).join("  ·  ");
  if (!large.open) large.showModal();
}
function step(by) {
  const shown = pages.filter(page => !page.hidden);
  const next = shown[shown.indexOf(under) + by];
  if (next) open(next);
}
function quoted(text) {
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}
function table() {
  const order = [...pages].sort((a, b) =>
    a.dataset.pdf < b.dataset.pdf ? -1 : a.dataset.pdf > b.dataset.pdf ? 1 : a.dataset.index - b.dataset.index);
  const rows = order.map(page =>
    [page.dataset.pdf, page.dataset.index, label(page), page.dataset.guess].map(quoted).join(","));
  return ["pdf,page_index,label,guess", ...rows, ""].join("\n");
}

for (const page of pages) {
  page.addEventListener("mouseenter", () => { under = page; });
  page.addEventListener("focus", () => { under = page; });
  page.querySelector(".frame").addEventListener("click", () => open(page));
  show(page);
}
for (const chip of document.querySelectorAll("[data-tag]")) {
  chip.addEventListener("click", () => {
    tag = chip.dataset.tag;
    for (const other of document.querySelectorAll("[data-tag]")) other.ariaPressed = other === chip;
    filter();
  });
}
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(button.previousElementSibling);
    document.execCommand("copy");
    button.textContent = "copied";
  });
}
for (const button of document.querySelectorAll("[data-volume]")) {
  button.addEventListener("click", () => {
    volume.value = button.dataset.volume;
    filter();
    document.getElementById("bar").scrollIntoView();
  });
}
volume.addEventListener("change", filter);
large.addEventListener("click", () => large.close());
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  if (large.open && event.key === "ArrowRight") step(1);
  else if (large.open && event.key === "ArrowLeft") step(-1);
  else if (event.key === "Enter" && under && !large.open && event.target === under) open(under);
  else if (under && mark(under, event.key)) { if (large.open) open(under); }
  else return;
  event.preventDefault();
});
document.getElementById("download").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  link.download = "labels.csv";
  link.click();
});
count();
