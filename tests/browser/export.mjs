// The page of an exported session, as a reader uses it.
//
//   node export.mjs <browser> <folder with story.html, live.html, hostile.html, long.html>

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { drive } from "./browser.mjs";

const [, , browser, folder] = process.argv;

async function open(page, name, hash = "") {
  await page.goto(`${pathToFileURL(`${folder}/${name}.html`)}${hash}`);
  await page.waitForSelector("body.ready");
}

const shown = (page, text) => page.locator("#thread article", { hasText: text }).first().waitFor();
const texts = async (page, selector) => (await page.locator(selector).allInnerTexts()).map((text) => text.trimEnd());
const isOpen = (locator) => locator.evaluate((details) => details.open);
/** Resolves when the element has stopped moving within the window. */
const inSight = (page, selector) =>
  page.waitForFunction((selector) => {
    const box = document.querySelector(selector)?.getBoundingClientRect();
    return box && box.bottom > 0 && box.top < innerHeight;
  }, selector);

await drive(browser, {
  async "says what the session is"(page) {
    await open(page, "story");
    assert.equal(await page.title(), "Cold stations");
    const facts = await page.locator("#overview").innerText();
    for (const fact of ["Cold stations", "/home/ann/weather", "scripted/scribe", "$0.0600", "4 from the user"]) {
      assert.ok(facts.includes(fact), `${fact} is not in: ${facts}`);
    }
  },

  async "says what the model was told, if it was open"(page) {
    await open(page, "live");
    await page.getByText("System prompt", { exact: true }).click();
    await page.getByText("You are told this.").waitFor();
    await page.getByText("1 tool", { exact: true }).click();
    await page.locator(".told b", { hasText: "bash" }).waitFor();
    await shown(page, "The answer to all");
  },

  async "renders what was said"(page) {
    await open(page, "story");
    await page.locator(".markdown h4", { hasText: "The cause" }).waitFor();
    assert.equal(await page.locator(".markdown td").first().innerText(), "Oymyakon");
    await page.locator("pre[data-language=rust] .hljs-keyword", { hasText: "fn" }).waitFor();
    assert.equal(await page.locator(".markdown li.task input").first().isChecked(), true);
    await page.waitForFunction(() => document.querySelector(".role-user .picture")?.naturalWidth === 1);
    await page.locator(".label", { hasText: "decision" }).first().waitFor();
    await page.locator("summary", { hasText: "skill forecasts" }).click();
    await page.getByText("Look at the sky.").waitFor();
    for (const text of ["With care, please", "Compaction of 152,000 tokens", "You ran", "exit code 1", "plan-mode", "The request failed: overloaded"]) {
      await shown(page, text);
    }
  },

  async "opens and closes tool calls and thinking"(page) {
    await open(page, "story");
    const [read, edit] = [page.locator(".tool", { hasText: "src/units.rs:1-40" }), page.locator(".tool", { hasText: "edit" })];
    assert.deepEqual([await isOpen(read), await isOpen(edit.first())], [false, true]);
    assert.deepEqual(await texts(page, ".diff .added"), ["+ 4 new line"]);
    assert.deepEqual(await texts(page, ".diff .removed"), ["- 4 old line"]);
    await read.locator("summary").click();
    await read.getByText("line 3 of the file").waitFor();
    const thinking = page.locator(".thinking").first();
    assert.equal(await isOpen(thinking), false);
    await page.keyboard.press("t");
    assert.equal(await isOpen(thinking), true);
    await page.locator("#toggle-tools").click();
    assert.equal(await page.locator(".tool[data-kind][open]").count(), 0);
  },

  async "shows the beginning of what is long, and more when asked"(page) {
    await open(page, "story");
    const build = page.locator(".tool", { hasText: "cargo build" });
    assert.match(await build.innerText(), /row 299 of/);
    assert.doesNotMatch(await build.innerText(), /row 7 of/);
    await build.locator(".more").click();
    assert.match(await build.innerText(), /row 7 of/);
  },

  async "goes to another branch and back"(page) {
    await open(page, "story");
    await shown(page, "Fix the code");
    await page.locator(".siblings button").first().click();
    await shown(page, "Fix the test");
    assert.equal(await page.locator("article", { hasText: "Fix the code" }).count(), 0);
    await page.locator("#tree .row", { hasText: "Fix the code" }).click();
    await shown(page, "Fix the code");
    await page.goBack();
    await shown(page, "Fix the test");
  },

  async "searches all branches"(page) {
    await open(page, "story");
    await page.keyboard.press("/");
    await page.keyboard.type("TEST was repaired");
    await page.getByText("1 match", { exact: true }).waitFor();
    assert.equal(await page.locator("#tree .row").count(), 1);
    await page.keyboard.press("Enter");
    await shown(page, "The test was repaired");
    await page.getByText("1 of 1", { exact: true }).waitFor();
    assert.ok((await page.evaluate(() => CSS.highlights.get("found").size)) > 0);
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    // The match is in a part that is cut off.
    await page.keyboard.type("unused variable");
    await page.keyboard.press("Enter");
    await page.locator("pre", { hasText: "unused variable" }).waitFor();
  },

  async "has an address for each entry"(page) {
    await open(page, "story", "#e-test");
    await inSight(page, "article.target");
    assert.match(await page.locator("article.target").innerText(), /Fix the test/);
    // The result of a tool is shown with its call.
    await page.evaluate(() => (location.hash = "#e-read"));
    await inSight(page, ".tool.target");
    assert.equal(await isOpen(page.locator(".tool.target")), true);
    const link = page.locator("article", { hasText: "Why is it warm" }).locator("a.anchor");
    assert.equal(await link.getAttribute("href"), "#e-why");
  },

  async "is light or dark, as the system has it or the reader wants"(page) {
    await open(page, "story");
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    const dark = await background();
    assert.notEqual(light, dark);
    await page.locator("#theme").click();
    assert.equal(await background(), light);
    await page.locator("#theme").click();
    assert.equal(await background(), dark);
    await page.emulateMedia({ colorScheme: "light" });
    assert.equal(await background(), dark);
  },

  async "fits on a telephone"(page) {
    await page.setViewportSize({ width: 390, height: 800 });
    await open(page, "story");
    assert.equal(await page.locator("#sidebar").isVisible(), false);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
    await page.locator("#open-sidebar").click();
    await page.locator("#tree .row", { hasText: "Fix the test" }).click();
    await shown(page, "Fix the test");
    assert.equal(await page.locator("#sidebar").isVisible(), false);
  },

  async "is neither broken nor scripted by what it shows"(page) {
    await open(page, "hostile");
    const entries = await page.evaluate(() => {
      const lines = document.getElementById("session").textContent.trim().split("\n").slice(2);
      return lines.map((line) => JSON.parse(line).id);
    });
    assert.ok(entries.length > 20, `${entries.length} entries`);
    for (const id of entries) {
      await page.evaluate((id) => (location.hash = `#${encodeURIComponent(id)}`), id);
      // With two entries of one id, the later one is shown.
      await inSight(page, `.target[data-entry="${entries.lastIndexOf(id)}"]`);
    }
    // Shows a whole branch, unfolds it, and expands cut-off texts twice.
    await page.evaluate(() => (location.hash = "#e-first"));
    await inSight(page, '.target[data-entry="1"]');
    for (let times = 0; times < 2; times++) {
      await page.evaluate(() => {
        for (const details of document.querySelectorAll("details")) details.open = true;
        for (const more of document.querySelectorAll(".more")) more.click();
      });
      await page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => setTimeout(painted))));
    }
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("script").count(), 2);
    assert.equal(await page.locator("svg, iframe, object, embed, form, base, link").count(), 0);
    const addresses = await page.locator("[href], [src]").evaluateAll((all) => all.map((one) => one.href ?? one.src));
    for (const address of addresses) assert.match(address, /^(https:|mailto:|file:|data:image\/png;base64,)/);
    await page.locator("article", { hasText: "the last word" }).waitFor();
  },

  async "gives the session file back"(page) {
    for (const name of ["story", "hostile"]) {
      await open(page, name);
      const download = page.waitForEvent("download");
      await page.locator("#save").click();
      const saved = await download;
      assert.equal(saved.suggestedFilename(), "2026-04-20T09-00-00-000Z_0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001.jsonl");
      const values = async (path) => {
        const lines = (await readFile(path, "utf8")).split("\n").filter((line) => line.startsWith("{"));
        return lines.map((line) => (line.includes('"deep"') ? line : JSON.parse(line)));
      };
      assert.deepEqual(await values(await saved.path()), await values(`${folder}/${name}.jsonl`));
    }
  },

  async "stays quick with ten thousand entries"(page) {
    await open(page, "long");
    await page.getByText("10,000 entries", { exact: true }).waitFor();
    await page.locator("#search").fill("needle");
    await page.getByText("1 match", { exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await inSight(page, "article.target");
    assert.match(await page.locator("article.target").innerText(), /needle/);
    await page.locator("#search").fill("");
    await page.getByText("10,000 entries", { exact: true }).waitFor();
    assert.ok((await page.locator("#tree .row").count()) < 200);
  },
});
