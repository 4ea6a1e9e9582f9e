// The page at `/` in a real browser, by keyboard alone: node check.mjs --binary prism-judge [--pictures DIR]
//
// Starts the server, judges replies and a dialogue, compares what is shown with what the routes answer, and looks for
// what a screen reader needs. Needs Chromium (CHROMIUM=path) and playwright-core (npm ci).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values: flags } = parseArgs({ options: { binary: { type: "string" }, pictures: { type: "string" } } });
assert(flags.binary, "--binary PATH is missing");
const MINUTES = 60_000;

/** Starts the server; resolves with the address of its HTTP port when it is ready. */
async function serve() {
  const ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
  const server = spawn(flags.binary, ["serve", ...ports, "--log-format", "json"], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  const listening = new Promise((resolve, reject) => {
    const read = (data) => {
      log += data;
      const http = /http on (127\.0\.0\.1:\d+)/.exec(log);
      if (http && log.includes("the model is loaded")) resolve(http[1]);
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", (code) => reject(new Error(`the server ended with ${code}:\n${log}`)));
  });
  const timer = setTimeout(() => server.kill("SIGKILL"), 5 * MINUTES);
  const address = await listening;
  clearTimeout(timer);
  return { server, origin: `http://${address}` };
}

/** Everything with a role that takes part in the page has a name. */
async function everythingHasAName(page) {
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("input, select, textarea, button, [role=tabpanel], table, svg[role=img]")]
      .filter((element) => element.getClientRects().length > 0)
      .filter((element) => !(element.labels?.length || element.textContent.trim() || element.getAttribute("aria-label") || element.getAttribute("aria-labelledby")))
      .map((element) => element.outerHTML.slice(0, 100)),
  );
  assert.deepEqual(nameless, []);
}

/** Presses Tab until the element has the focus. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
  }
  assert.fail(`no Tab reaches ${selector}`);
}

async function post(origin, path, body) {
  const response = await fetch(`${origin}/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  return response.json();
}

async function replies(page, origin) {
  await tabTo(page, "#submit");
  await page.keyboard.press("Enter");
  await page.waitForSelector("article table", { timeout: MINUTES });
  assert.equal(await page.locator("article").count(), 3);
  await page.locator("#code").waitFor();
  const body = JSON.parse(await page.locator("#code").textContent());
  const answer = await post(origin, "v1/score_group", body);
  const shown = await page.locator("article h3 span").allTextContents();
  const scores = answer.results.map((result) => result.verdict.s_prism).sort((a, b) => b - a);
  assert.deepEqual(shown, scores.map((s) => `S_PRISM ${s.toFixed(3)}`));
  const best = answer.results.find((result) => result.verdict.s_prism === scores[0]).verdict.dimensions;
  const first = await page.locator("article:first-of-type tbody td:not(.bar)").allTextContents();
  const numbers = ["task_framing", "interpersonal_stance", "linguistic_style"].flatMap((dimension) =>
    ["aligned", "indeterminate", "contradictory"].map((label) => best[dimension][label].toFixed(3)),
  );
  assert.deepEqual(first, numbers);
  assert.equal(await page.locator("article:first-of-type tr.weakest").count(), 1);
  await everythingHasAName(page);
  for (const [tab, expected] of [["#tab-curl", "curl http://"], ["#tab-python", "judge = Client("], ["#tab-answer", '"s_prism"']]) {
    await page.locator(tab).click();
    assert((await page.locator("#code").textContent()).includes(expected), tab);
  }
}

async function dialogue(page, origin) {
  await page.locator("#tab-replies").focus();
  await page.keyboard.press("ArrowRight");
  assert(await page.locator("#turns").isVisible());
  assert(!(await page.locator("#context").isVisible()));
  await tabTo(page, "#submit");
  await page.keyboard.press("Enter");
  await page.waitForSelector("svg polyline", { timeout: MINUTES });
  assert.equal(await page.locator("svg polyline").count(), 4);
  await page.locator("#tab-json").click();
  const answer = await post(origin, "v1/score_dialogue", JSON.parse(await page.locator("#code").textContent()));
  const shown = await page.locator("#verdicts table tbody td:nth-child(2)").allTextContents();
  assert.deepEqual(shown, answer.results.map((result) => result.verdict.s_prism.toFixed(3)));
  await everythingHasAName(page);
}

async function errors(page) {
  await page.locator("#tab-replies").click();
  await page.locator("#candidates textarea").first().fill("");
  await page.locator("#submit").click();
  await page.getByText("Not judged").waitFor({ timeout: MINUTES });
  await page.locator("#description").fill("");
  await page.locator("#name").fill("");
  await page.locator("#submit").click();
  await page.locator("#error:not([hidden])").waitFor({ timeout: MINUTES });
  assert.match(await page.locator("#error").textContent(), /persona/);
}

const { server, origin } = await serve();
try {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const problems = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("requestfailed", (request) => problems.push(`${request.url()} failed`));
  const picture = async (name) => {
    if (!flags.pictures) return;
    mkdirSync(flags.pictures, { recursive: true });
    await page.screenshot({ path: `${flags.pictures}/${name}.png`, fullPage: true });
  };
  await page.goto(`${origin}/`);
  await page.getByText(", version ").waitFor();
  await replies(page, origin);
  await picture("replies");
  await dialogue(page, origin);
  await picture("dialogue");
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(wide <= 390, `the page is ${wide} pixels wide on a telephone`);
  await picture("telephone");
  assert.deepEqual(problems, []);
  // From here on the browser reports answers that are errors, as it should.
  await errors(page);
  await picture("error");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture("dark");
  await browser.close();
  console.log("the page holds: replies, dialogue, errors, by keyboard, on a telephone");
} finally {
  server.kill("SIGTERM");
}
