// The page in a real Chromium: every view at two widths, light and dark, with axe-core (WCAG 2.2 AA), by keyboard, and
// without a request to another host. Run by `.ci/run`:
//
//   node page.mjs PROGRAM [FOLDER FOR SCREENSHOTS]
//
// `playwright-core` and `axe-core` are found from the working directory, Chromium by CHROMIUM or its usual places.
import { createRequire } from "node:module";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import assert from "node:assert/strict";
import http from "node:http";
import { inspect, measure, remember } from "./figures.mjs";

const require = createRequire(path.join(process.cwd(), "tests.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [program, pictures] = process.argv.slice(2);
const folder = mkdtempSync(path.join(tmpdir(), "holotype-page-"));
const database = path.join(folder, "demo.holo");
execFileSync(program, ["demo", "--keep", database], { stdio: "ignore" });
const run = (...args) => execFileSync(program, args, { encoding: "utf8" });

const server = spawn(program, ["inspect", database], { stdio: ["ignore", "pipe", "ignore"] });
const url = await new Promise((resolve, reject) => {
  let told = "";
  server.stdout.on("data", (part) => { told += part; if (told.includes("\n")) resolve(told.trim()); });
  server.on("exit", () => reject(new Error("the inspector ended")));
});
const origin = new URL(url).origin;
const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = places.find((place) => place && existsSync(place));
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
let checks = 0;
const check = (value, what) => { assert.ok(value, what); checks += 1; };

const VIEWS = [
  ["overview", "#/", "Overview"], ["items", "#/items", "Items"], ["why", "#/why/fare-mon", "fare-mon"],
  ["why-source", "#/why/t6", "t6"], ["recall", "#/recall?q=what%20does%20the%20flight%20cost%3F&b=score%20profile%20archive", "Recall"],
  ["time", "#/time?from=5&to=7", "Time"], ["health", "#/health", "Health"], ["live", "#/live", "Live"],
];

// Opens the page and fails on console errors, refused policies and requests to other hosts.
async function open(width, scheme, address) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, bypassCSP: false });
  const page = await context.newPage();
  page.on("console", (message) => { if (message.type() === "error") throw new Error(`console: ${message.text()}`); });
  page.on("pageerror", (error) => { throw error; });
  page.on("request", (request) => {
    const other = !["data:", "blob:"].includes(new URL(request.url()).protocol) && !request.url().startsWith(address.startsWith("file:") ? "file:" : origin);
    if (other) throw new Error(`a request to ${request.url()}`);
  });
  await page.goto(address);
  await page.locator("h1").first().waitFor();
  return page;
}

async function audit(page, name) {
  const found = await page.evaluate(`(() => { const module = undefined, exports = undefined, define = undefined; ${axe}; return axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }); })()`);
  const told = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
  assert.deepEqual(told, [], name);
  checks += 1;
}

for (const width of [390, 1280]) {
  for (const scheme of ["light", "dark"]) {
    const page = await open(width, scheme, url);
    for (const [name, hash, title] of VIEWS) {
      await page.evaluate((to) => { location.hash = to; }, hash);
      await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
      await page.locator("[aria-busy]").first().waitFor({ state: "detached" });
      check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} at ${width}: wider than the screen`);
      await audit(page, `${name} at ${width}, ${scheme}`);
      if (pictures && (width === 1280 || name === "why")) {
        await page.screenshot({ path: path.join(pictures, `${name}-${width}-${scheme}.png`), fullPage: ["overview", "why"].includes(name) });
      }
    }
    await page.context().close();
  }
}

// By mouse: from a question to the bytes that its answer rests on, and to what fails with them.
{
  const page = await open(1280, "light", url);
  await page.getByRole("link", { name: "Recall" }).click();
  await page.getByLabel("Question").fill("what does the flight cost?");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.locator(".answer").first().waitFor();
  check((await page.locator(".answer").first().textContent()).includes("268 EUR"), "the newest fare leads");
  check((await page.locator(".line").first().textContent()).includes("earlier"), "an earlier fare is a line");
  await page.getByLabel("Key of an item").fill("t12");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("t12 is not in the answer: status failed").waitFor();
  await page.getByRole("link", { name: "Items" }).click();
  await page.getByLabel("Search").fill("costs 189");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("1 item", { exact: true }).waitFor();
  await page.locator(".list a").first().click();
  await page.getByRole("heading", { level: 1, name: "fare-mon" }).waitFor();
  check((await page.locator("mark").allTextContents()).join("|").includes("189 EUR"), "the quote is marked in its source");
  await page.locator(".tree a", { hasText: "flights" }).first().click();
  await page.getByRole("heading", { level: 1, name: "flights" }).waitFor();
  await page.context().close();
}

// By keyboard alone: skip the navigation, reach a view, an item and its evidence.
{
  const page = await open(1280, "light", url);
  await page.keyboard.press("Tab");
  check(await page.evaluate(() => document.activeElement.textContent.includes("Skip")), "the first stop skips the navigation");
  for (let nth = 0; nth < 3; nth += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Recall" }).waitFor();
  await page.waitForFunction(() => document.activeElement.id === "title");
  await page.keyboard.press("Tab");
  check(await page.evaluate(() => document.activeElement.id === "question"), "the view goes on behind its title");
  await page.context().close();
}

// Health on request, the funnel of a recall, and a receipt that is found again.
{
  const page = await open(1280, "light", url);
  await page.getByRole("link", { name: "Health" }).click();
  await page.getByRole("button", { name: "Hash every quote again" }).click();
  await page.getByText(/^(\d+) of \1 quotes hold\.$/).waitFor();
  await page.getByRole("button", { name: "Estimate the recall" }).click();
  await page.getByRole("region", { name: "recall of the index" }).waitFor();
  await page.getByRole("button", { name: "Measure what was" }).click();
  await page.getByRole("cell", { name: "faithfulness", exact: true }).first().waitFor();
  await audit(page, "health with its checks");
  run("query", database, "recall 'what does the flight cost?' with receipt");
  await page.evaluate(() => { location.hash = "#/recall?q=flight"; });
  await page.locator(".funnel").first().waitFor();
  check((await page.locator(".funnel").first().textContent()).includes("ranked of"), "the funnel counts candidates");
  await page.getByRole("button", { name: "Replay rc-1" }).click();
  await page.getByText("byte for byte").waitFor();
  await audit(page, "recall with receipts");
  check(await page.getByRole("button", { name: "Keep the answer" }).count() === 0, "a page that reads keeps no receipt");
  await page.context().close();
}

// Where it is allowed, the page marks a call as wrong and says what falls with it.
{
  const copy = path.join(folder, "marked.holo");
  execFileSync(program, ["demo", "--keep", copy], { stdio: "ignore" });
  const { server: other, url: there } = await inspect(program, copy, ["--allow-write"]);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.goto(there);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.evaluate(() => { location.hash = "#/why/t6"; });
  await page.getByLabel("The reason").fill("the page of last year");
  await audit(page, "an item that can be marked");
  await page.getByRole("button", { name: "Write" }).click();
  await page.getByText("1 fact is now unsupported: fare-mon").waitFor();
  await page.getByText("the page of last year").first().waitFor();
  check(run("why", copy, "fare-mon").includes("unsupported"), "the mark is in the memory");
  await context.close();
  other.kill();
}

// Changes appear while the page is open.
{
  const page = await open(1280, "light", `${origin}/#token=${new URL(url).hash.split("=")[1]}`);
  await page.evaluate(() => { location.hash = "#/live"; });
  await page.getByText("Waiting for a commit.").waitFor();
  run("query", database, "record turn 'a word while the page is open' in episode 'trip-42' with key = 'while-open'");
  await page.getByText("while-open").first().waitFor({ timeout: 10_000 });
  await page.context().close();
}

// Two questions on a history of 5,000 turns, by mouse alone.
{
  const past = remember(program, folder, 8_350);
  const { server: other, url: there } = await inspect(program, past);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const shot = async (name) => { if (pictures) await page.screenshot({ path: path.join(pictures, `${name}.png`) }); };
  const title = (name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  let start = performance.now();
  await page.goto(there);
  // Why did the agent think the fare was 268? The facts of the trip, the fact, its bytes in the call.
  await page.getByRole("link", { name: "Items" }).click();
  await page.locator(".facets label", { hasText: "episode" }).locator("option", { hasText: "trip-lisbon" }).waitFor({ state: "attached" });
  await page.getByLabel("episode").selectOption("trip-lisbon");
  await page.getByText("14 items", { exact: true }).waitFor();
  await page.getByLabel("kind").selectOption("fact");
  await page.getByText("3 items", { exact: true }).waitFor();
  await page.locator(".list a", { hasText: "costs 268 EUR" }).waitFor();
  await shot("fare-items");
  await page.locator(".list a", { hasText: "costs 268 EUR" }).click();
  await title("belief-fare");
  check((await page.locator("mark").allTextContents()).join("|").includes("cost 268 EUR per adult"), "the fare is in the call");
  await shot("fare-why");
  await page.locator(".tree a", { hasText: "call-fare" }).click();
  await title("call-fare");
  console.log(`the fare: ${Math.round(performance.now() - start)} ms`);
  // What rests on the call for the hotel, and what falls with it.
  start = performance.now();
  await page.getByRole("link", { name: "Items" }).click();
  await page.locator(".facets label", { hasText: "episode" }).locator("option", { hasText: "trip-lisbon" }).waitFor({ state: "attached" });
  await page.getByLabel("episode").selectOption("trip-lisbon");
  await page.getByText("14 items", { exact: true }).waitFor();
  await page.locator(".list a", { hasText: "Hotel Baixa: a double room" }).click();
  await title("call-hotel");
  await page.getByText("2 items would fall with it.").waitFor();
  await shot("hotel-call");
  const told = execFileSync(program, ["query", past, "mark calls where key = 'call-hotel' as failed because 'prices of 2024'", "--format", "json"], { encoding: "utf8" });
  check(told.includes("1 fact is now unsupported: belief-hotel") && told.includes("1 fact is now weakened: belief-budget"), told);
  await page.getByRole("link", { name: "Time" }).click();
  await page.locator(".answer", { hasText: "belief-hotel" }).first().waitFor();
  check((await page.locator(".answer", { hasText: "belief-hotel" }).first().textContent()).includes("unsupported"), "the belief has lost its support");
  await shot("hotel-diff");
  console.log(`the hotel: ${Math.round(performance.now() - start)} ms`);
  await context.close();
  other.kill();
}

// The measurements, on few items: they run, and show what they measure.
{
  const told = [];
  await measure({ chromium, executablePath }, program, mkdtempSync(path.join(folder, "figures-")), 3_000, (figure, values) => told.push({ figure, ...values }));
  for (const figure of ["page", "paint", "scroll", "api", "export", "file"]) check(told.some((one) => one.figure === figure), figure);
  const page = told.find((one) => one.figure === "page");
  check(page.kilobytes <= 120 && page.compressed <= 45, `the page has ${page.kilobytes} KB, ${page.compressed} compressed`);
}

// Refused: no cookie, a wrong token, another Host, another Origin.
{
  const ask = (headers, where = "/api/overview", method = "GET", body = "") => new Promise((resolve, reject) => {
    const request = http.request(origin + where, { headers, method }, (response) => { response.resume(); resolve(response.statusCode); });
    request.on("error", reject);
    request.end(body);
  });
  check((await ask({})) === 401, "no cookie");
  check((await ask({}, "/session", "POST", "wrong")) === 401, "a wrong token");
  check((await ask({ Host: "evil.example" })) === 421, "another host");
  check((await ask({ Origin: "https://evil.example" })) === 403, "another origin");
}

// One file: it opens without a server, checks its quotes, and shows an altered one.
{
  const file = path.join(folder, "memory.html");
  run("export", database, "--html", file);
  const first = await open(390, "dark", `file://${file}`);
  await first.getByText(/ok (\d+) of \1 quotes hold/).waitFor();
  await first.getByText("The head, signed").click();
  await audit(first, "the overview of a file");
  await first.context().close();
  const page = await open(1280, "light", `file://${file}#/why/fare-mon`);
  await page.getByRole("heading", { level: 1, name: "fare-mon" }).waitFor();
  check((await page.locator(".source .tag").allTextContents()).some((text) => text.includes("ok")), "quotes hold");
  await audit(page, "file");
  const altered = await page.evaluate(() => {
    const source = H.file.byKey.get("t6");
    source.fields.find((field) => field.name === "text").text = "Flight to Lisbon, TJ482 on Mon 9 March: cost 999 EUR per adult";
    return H.file.item("fare-mon").citations.map((cited) => cited.verdict);
  });
  check(altered.includes("mismatch"), `an altered text is found: ${altered}`);
  await page.context().close();
}

await browser.close();
server.kill();
console.log(`${checks} checks of the page hold`);
