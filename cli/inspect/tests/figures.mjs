// How fast the page is on a large memory, while a writer runs:
//
//   node figures.mjs PROGRAM [ITEMS]        100,000 items without it
//
// It prints one line of JSON for each figure. `page.mjs` runs the same on few items, and looks at what it shows, not at
// the times. `playwright-core` is found from the working directory.
import { createRequire } from "node:module";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import assert from "node:assert/strict";
import { writeHistory } from "./history.mjs";

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const rounded = (value) => Math.round(value * 10) / 10;

// A database with a history of so many items.
export function remember(program, folder, count) {
  const [lines, database] = [path.join(folder, `${count}.jsonl`), path.join(folder, `${count}.holo`)];
  writeHistory(lines, count);
  execFileSync(program, ["create", database], { stdio: "ignore" });
  execFileSync(program, ["import", database, lines, "--durability", "none"], { stdio: "ignore" });
  return database;
}

// The inspector of a database, and its address.
export async function inspect(program, database, args = []) {
  const server = spawn(program, ["inspect", database, ...args], { stdio: ["ignore", "pipe", "ignore"] });
  const url = await new Promise((resolve, reject) => {
    let told = "";
    server.stdout.on("data", (part) => { told += part; if (told.includes("\n")) resolve(told.trim()); });
    server.on("exit", () => reject(new Error("the inspector ended")));
  });
  return { server, url, origin: new URL(url).origin };
}

// One commit after the other, until it is stopped.
function write(program, database) {
  let stopped = false;
  let commits = 0;
  const next = () => {
    if (stopped) return;
    const statement = `record turn 'written meanwhile ${commits}' in episode 'meanwhile'`;
    const child = spawn(program, ["query", database, statement], { stdio: "ignore" });
    child.on("exit", (code) => { commits += code === 0 ? 1 : 0; next(); });
  };
  next();
  return { stop: () => { stopped = true; return commits; } };
}

// Sizes of the page: all that the server sends for it.
async function measureSize(origin, report) {
  const page = await (await fetch(`${origin}/`)).text();
  const paths = [...page.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g)].map((found) => found[1]);
  const files = await Promise.all(paths.map(async (one) => (await fetch(`${origin}/${one}`)).text()));
  const all = [page, ...files].join("");
  report("page", { files: paths.length + 1, kilobytes: rounded(all.length / 1024), compressed: rounded(gzipSync(all).length / 1024) });
}

// First paint, tasks while scrolling, and the server's answers, while a writer runs.
export async function measure({ chromium, executablePath }, program, folder, count, report) {
  const database = remember(program, folder, count);
  const { server, url, origin } = await inspect(program, database);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    await measureSize(origin, report);
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
    const writer = write(program, database);
    await page.goto(url);
    await page.locator(".figure").first().waitFor();
    const shown = [];
    for (const view of ["#/", "#/items"]) {
      for (let nth = 0; nth < 5; nth += 1) {
        await page.goto("about:blank");
        await page.goto(`${origin}/${view}`);
        await page.locator(view === "#/" ? ".figure" : ".list a").first().waitFor();
        shown.push({ view, ...await page.evaluate(() => ({
          paint: performance.getEntriesByName("first-contentful-paint")[0].startTime, rows: performance.now() })) });
      }
      const of = shown.filter((one) => one.view === view);
      report("paint", { view, first_ms: rounded(median(of.map((one) => one.paint))), rows_ms: rounded(median(of.map((one) => one.rows))) });
    }
    await scroll(page, count, report);
    await ask(page, count, report);
    report("writer", { commits: writer.stop() });
  } finally {
    await browser.close();
    server.kill();
  }
  await measureFile({ chromium, executablePath }, program, folder, Math.min(count, 20_000), report);
}

// Scrolls through the whole list in steps of a screen, then to its ends.
async function scroll(page, count, report) {
  await page.evaluate(() => {
    globalThis.tasks = [];
    new PerformanceObserver((list) => globalThis.tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
  });
  const seen = await page.evaluate(async () => {
    const list = document.querySelector(".list");
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    let frames = 0;
    for (let nth = 0; nth < 300; nth += 1) {
      list.scrollTop += list.clientHeight;
      await frame();
      frames += 1;
    }
    for (let part = 0; part <= 40; part += 1) {
      list.scrollTop = (list.scrollHeight * part) / 40;
      await frame();
      await frame();
      frames += 2;
    }
    return frames;
  });
  const last = page.locator(`.list li[aria-posinset="${await page.locator(".list li").last().getAttribute("aria-setsize")}"] a`);
  await last.waitFor();
  assert.match(await last.textContent(), /turn-\d{1,3}\b/, "the oldest items end the list");
  const tasks = await page.evaluate(() => globalThis.tasks);
  report("scroll", { frames: seen, long_tasks: tasks.length, longest_ms: rounded(Math.max(0, ...tasks)) });
}

// The server's answers, as the page asks for them.
async function ask(page, count, report) {
  const paths = {
    items: (nth) => `/api/items?skip=${100 * (1 + (nth * 7) % Math.max(1, Math.floor(count / 100) - 1))}&limit=100`,
    "items, first part": () => "/api/items?limit=100",
    "items, searched": () => "/api/items?q=Lisbon&limit=100",
    "items of an episode": (nth) => `/api/items?episode=trip-${nth % 40}&limit=100`,
    item: (nth) => `/api/why/fact-${10 * ((nth * 97) % Math.floor((count - 14) / 10)) + 3}`,
    overview: () => "/api/overview",
    diff: () => "/api/diff",
    events: () => "/api/events",
    health: () => "/api/health",
  };
  const all = [];
  for (const [name, of] of Object.entries(paths)) {
    const asked = Array.from({ length: 21 }, (_, nth) => of(nth));
    const times = await page.evaluate(async (asked) => {
      const times = [];
      for (const one of asked) {
        const start = performance.now();
        const response = await fetch(one, { credentials: "same-origin" });
        await response.json();
        if (!response.ok) throw new Error(`${one}: ${response.status}`);
        times.push(performance.now() - start);
      }
      return times;
    }, asked);
    all.push(...times);
    report("api", { path: name, p50_ms: rounded(median(times)), most_ms: rounded(Math.max(...times)) });
  }
  report("api", { path: "all", p50_ms: rounded(median(all)), most_ms: rounded(Math.max(...all)) });
}

// One file: written by the program, opened by the browser.
async function measureFile({ chromium, executablePath }, program, folder, count, report) {
  const database = remember(program, path.join(mkdtempSync(path.join(folder, "file-"))), count);
  const file = path.join(folder, "memory.html");
  const start = performance.now();
  execFileSync(program, ["export", database, "--html", file], { stdio: "ignore" });
  report("export", { items: count, seconds: rounded((performance.now() - start) / 1000), kilobytes: rounded(statSync(file).size / 1024) });
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage();
    const times = [];
    for (let nth = 0; nth < 3; nth += 1) {
      await page.goto("about:blank");
      await page.goto(`file://${file}`);
      await page.locator(".figure").first().waitFor();
      times.push(await page.evaluate(() => performance.now()));
    }
    report("file", { items: count, open_ms: rounded(median(times)) });
    await page.goto(`file://${file}#/why/belief-fare`);
    await page.getByRole("heading", { level: 1, name: "belief-fare" }).waitFor();
    assert.ok((await page.locator("mark").first().textContent()).includes("268 EUR"), "the file has its evidence");
  } finally { await browser.close(); }
}

// Run as a program.
if (process.argv[1] && fileURLToPath(import.meta.url) === path.resolve(process.argv[1])) {
  const { chromium } = createRequire(path.join(process.cwd(), "figures.js"))("playwright-core");
  const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const executablePath = places.find((place) => place && existsSync(place));
  const folder = mkdtempSync(path.join(tmpdir(), "holotype-figures-"));
  const [program, count] = process.argv.slice(2);
  const report = (figure, values) => console.log(JSON.stringify({ figure, ...values }));
  await measure({ chromium, executablePath }, program, folder, Number(count || 100_000), report);
  rmSync(folder, { recursive: true });
}
