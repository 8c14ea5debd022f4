// Answers cases with the original's tools: `node reference.mjs PACKAGE SUITE ANSWERS`.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { make } from "./tree.mjs";

const [packageDir, suitePath, answersPath] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(packageDir, path)).href);
const tools = await load("dist/core/tools/index.js");
const { validateToolArguments } = await load("../pi-ai/dist/utils/validation.js");

const suite = JSON.parse(readFileSync(suitePath, "utf8"));
const answers = [];
make(suite.root, suite.files);
for (const [index, one] of suite.cases.entries()) {
	const here = one.cwd?.startsWith("/") ? one.cwd : join(suite.root, one.cwd ?? `case-${index}`);
	if (!one.cwd) make(here, [{ path: ".", dir: true }, ...(one.files ?? [])]);
	// ripgrep takes globs relative to where pi was started.
	process.chdir(here);
	const args = JSON.parse(JSON.stringify(one.args).replaceAll("$ROOT", suite.root));
	const answer = await run(one.tool, here, args);
	for (const path of one.after ?? []) {
		answer.after ??= {};
		try {
			answer.after[path] = readFileSync(join(here, path)).toString("base64");
		} catch {
			answer.after[path] = null;
		}
	}
	answers.push(JSON.parse(JSON.stringify(answer).replaceAll(suite.root, "$ROOT")));
}
writeFileSync(answersPath, JSON.stringify(answers));

async function run(name, cwd, args) {
	const tool = tools.createAllTools(cwd)[name];
	try {
		const prepared = tool.prepareArguments ? tool.prepareArguments(args) : args;
		const valid = validateToolArguments(tool, { type: "toolCall", id: "x", name, arguments: prepared });
		const { content, details } = await tool.execute("x", valid);
		return { content, details };
	} catch (error) {
		return { error: error.message };
	}
}
