// Colours for code, in the languages that projects are made of.

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import scss from "highlight.js/lib/languages/scss";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES = {
  bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, lua, makefile, markdown,
  php, python, ruby, rust, scss, sql, swift, typescript, xml, yaml,
};
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
hljs.registerAliases(["mts", "cts"], { languageName: "typescript" });
hljs.registerAliases(["zsh", "shell", "console"], { languageName: "bash" });
hljs.registerAliases(["json5", "jsonc", "jsonl"], { languageName: "json" });

/** Above that, waiting for the colours takes longer than they are worth. */
const LIMIT = 20_000;
/** Made by machines, and highlight.js takes the square of its length. */
const LONG_LINE = /[^\n]{1000}/;

/** Fills the element with the code. */
export function highlight(target: HTMLElement, code: string, language: string): void {
  if (code.length > LIMIT || LONG_LINE.test(code) || !hljs.getLanguage(language)) {
    target.textContent = code;
    return;
  }
  try {
    // The one place where a string becomes markup: all of it is escaped, but for
    // the spans that highlight.js puts around.
    target.innerHTML = hljs.highlight(code, { language, ignoreIllegals: true }).value;
  } catch {
    target.textContent = code;
  }
}

/** By the file's name; empty if it is none that we know. */
export function languageOf(path: string): string {
  const name = path.split(/[\\/]/).at(-1)?.toLowerCase() ?? "";
  if (name === "dockerfile" || name === "makefile") return name;
  const extension = name.includes(".") ? (name.split(".").at(-1) ?? "") : "";
  return hljs.getLanguage(extension) ? extension : "";
}
