// Renders every case with the given modules. Runs in Node with the original's packages, and inside
// pi with ours: see README.md.
import { editorCases } from "./cases/editor.mjs";
import { functionCases } from "./cases/functions.mjs";
import { markdownCases } from "./cases/markdown.mjs";
import { messageCases } from "./cases/messages.mjs";
import { screenCases } from "./cases/screen.mjs";
import { selectorCases } from "./cases/selectors.mjs";
import { simpleCases } from "./cases/simple.mjs";

const WIDTHS = [30, 60, 100];

/** Results by name of the case: lines for each width, or any other value. */
export async function run(modules, progress = () => {}) {
  const { tui, agent } = modules;
  agent.initTheme("dark");
  tui.setCapabilities({ images: null, trueColor: true, hyperlinks: false });
  const groups = { simpleCases, markdownCases, editorCases, screenCases, messageCases, selectorCases };
  const results = {};
  let done = 0;
  for (const make of Object.values(groups)) {
    for (const [name, create] of Object.entries(make(modules))) {
      for (const width of WIDTHS) results[`${name} at ${width}`] = await attempt(() => rendered(create, width));
      done += 1;
      if (done % 50 === 0) progress();
    }
  }
  for (const [name, value] of Object.entries(functionCases(modules))) {
    results[name] = await attempt(value);
    progress();
  }
  return results;
}

async function rendered(create, width) {
  const made = await create(width);
  if (Array.isArray(made) || typeof made?.render !== "function") return made;
  const lines = made.render(width);
  made.dispose?.();
  return lines;
}

async function attempt(action) {
  // Pauses, because the program stops code that runs too long without a break.
  await new Promise((resolve) => setTimeout(resolve, 0));
  try {
    return JSON.parse(JSON.stringify((await action()) ?? null));
  } catch (error) {
    return { threw: error instanceof Error ? error.message : String(error) };
  }
}
