// Drives a real browser for tests of pages; every error in a page fails the test.

import { chromium } from "playwright-core";

/** The timeout in milliseconds, for slow machines under load. */
const PAGE_TIMEOUT = 300_000;
/** The exit code that tells the caller that the browser, not the page, is the problem. */
export const NO_BROWSER = 77;

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

async function launch(executablePath) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await chromium.launch({ executablePath, args: FLAGS, headless: true, timeout: PAGE_TIMEOUT });
    } catch (error) {
      if (attempt < 3) continue;
      console.error(`${executablePath} does not start: ${error.message}`);
      process.exit(NO_BROWSER);
    }
  }
}

/** Runs the steps, by name, one after another. */
export async function drive(executablePath, steps) {
  let browser = await launch(executablePath);
  let failed = 0;
  for (const [name, step] of Object.entries(steps)) {
    for (let attempt = 1; ; attempt++) {
      const failure = await run(browser, step);
      if (failure === null) {
        console.log(`ok: ${name}`);
        break;
      }
      // Without enough memory the browser may crash; that is tolerated once.
      if (attempt === 1 && /crashed|has been closed/.test(failure)) {
        console.error(`once more: ${name}\n${failure}`);
        await browser.close().catch(() => {});
        browser = await launch(executablePath);
        continue;
      }
      failed++;
      console.error(`FAILED: ${name}\n${failure}`);
      break;
    }
  }
  await browser.close();
  process.exitCode = failed > 0 ? 1 : 0;
}

/** Returns the problem, or `null`. */
async function run(browser, step) {
  const problems = [];
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
    context.setDefaultTimeout(PAGE_TIMEOUT);
    await context.setOffline(true);
    const page = await context.newPage();
    watch(page, problems);
    await step(page);
    await context.close();
  } catch (error) {
    problems.push(error.stack);
  }
  return problems.length > 0 ? problems.join("\n") : null;
}

/** Collects errors, dialogs, requests, and violations of the content security policy. */
function watch(page, problems) {
  page.on("pageerror", (error) => problems.push(`the page threw: ${error.stack}`));
  page.on("dialog", (dialog) => {
    problems.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("popup", (popup) => problems.push(`a popup: ${popup.url()}`));
  page.on("request", (request) => {
    if (!/^(file|data):/.test(request.url())) problems.push(`a request: ${request.url()}`);
  });
  page.on("console", (message) => {
    if (/content security policy/i.test(message.text())) problems.push(message.text());
  });
}
