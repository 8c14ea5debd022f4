// The questions. The same every time, as long as the real trees are the same.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { contents, made } from "./made.mjs";

let state = 0;
function seed() {
	state = 20241121;
}
function random(below) {
	state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
	return Math.floor((state / 2 ** 32) * below);
}
const pick = (list) => list[random(list.length)];

/** Text files of real packages, smallest folders first. */
export function realFiles(folders, wanted) {
	seed();
	const files = [];
	const walk = (folder, depth) => {
		for (const entry of readdirSync(folder, { withFileTypes: true })) {
			const path = join(folder, entry.name);
			if (entry.isDirectory() && depth < 6) walk(path, depth + 1);
			else if (entry.isFile() && statSync(path).size < 2_000_000) files.push(path);
		}
	};
	for (const folder of folders) walk(folder, 0);
	return Array.from({ length: wanted }, () => pick(files));
}

export function read(real, pictures) {
	seed();
	const cases = [];
	const add = (cwd, args, files) => cases.push({ tool: "read", cwd, args, files });
	for (const path of real.slice(0, 130)) {
		const args = { path };
		if (random(2)) args.offset = random(60);
		if (random(3) === 0) args.limit = random(50);
		add("kinds", args);
	}
	const parts = [{}, { offset: 2 }, { limit: 1 }, { offset: 3, limit: 2 }, { offset: 2001 }];
	for (const path of Object.keys(contents)) for (const part of parts) add("kinds", { path, ...part });
	const odd = [
		{ offset: 0 }, { offset: 1, limit: 0 }, { offset: 4 }, { offset: 5 }, { offset: 1e9 }, { limit: 1e9 }, { offset: 2, limit: 1e9 }, { offset: "2" }, { offset: "x" },
		{ limit: "1" }, { offset: true }, { limit: {} }, { extra: 1 }, { offset: 1.0 },
	];
	for (const part of odd) add("kinds", { path: "lf.txt", ...part });
	for (const { path } of made.filter((entry) => entry.path.startsWith("names/"))) add("names", { path: path.slice(6) });
	for (const path of ["@lf.txt", "./lf.txt", "../kinds/lf.txt", "$ROOT/kinds/lf.txt", "$ROOT/kinds/../kinds/lf.txt", "lf.txt/", "missing.txt", "", ".", "lf.txt/x", "\u00a0", "@@at.txt", "kinds\0", "x".repeat(300)]) add("kinds", { path });
	for (const path of ["with\u00a0space.txt", "\u00e9 decomposed.txt", "it's curly.txt", "Screenshot 2024 at 9.41 AM.txt", "quote\u2019d.txt", "../links/to-file", "../links/broken", "../links/self", "../links/to-folder", "../locked/secret.txt", "../locked/folder/x.txt", "../locked/read-only.txt"]) add("names", { path });
	add("kinds", {});
	add("kinds", { path: 7 });
	add("kinds", { path: null });
	for (const [name, bytes] of pictures) cases.push({ tool: "read", args: { path: name }, files: [{ path: name, base64: bytes.toString("base64") }] });
	return cases;
}

export function write(real) {
	seed();
	const cases = [];
	const ofOthers = real.slice(0, 25).map((path) => readFileSync(path, "utf8")).filter((text) => text.length < 40000);
	const texts = [
		"", "\n", "a", "a\r\nb\r\n", "\ufeffmarked", "caf\u00e9 \u{1f600}\n", "nul\0byte", "x".repeat(70000), "line\n".repeat(3000), "\u65e5\u672c\u8a9e", "a\u0301",
		...ofOthers,
	];
	const paths = ["new.txt", "old.txt", "deep/er/still/new.txt", "with space.txt", "-dash.txt", "\u00fcml\u00e4ut.txt", "@at.txt", "./dot.txt", "$ROOT/absolute.txt", "sub/../up.txt"];
	const files = [{ path: "old.txt", text: "old content\n" }, { path: "folder/x", text: "x" }, { path: "to-old", link: "old.txt" }, { path: "broken", link: "made-through-link.txt" }];
	const locked = [{ path: "locked.txt", text: "x", mode: 0o444 }, { path: "locked", dir: true, mode: 0o555 }];
	const add = (args, of) => {
		const after = typeof args.path === "string" && !args.path.startsWith("$") ? [posix.normalize(args.path.replace(/^@/, ""))] : [];
		cases.push({ tool: "write", of, args, files: String(args.path).startsWith("locked") ? locked : files, after: [...after, "old.txt", "made-through-link.txt"] });
	};
	for (const content of texts) for (const path of paths) if (content.length < 5000 || path === "new.txt") add({ path, content }, ofOthers.includes(content) ? "others" : undefined);
	for (const path of ["folder", ".", "", "old.txt/x", "old.txt/x/y", "to-old", "broken", "locked.txt", "locked/new.txt", "locked/deep/new.txt", "x".repeat(300), "nul\0", "folder/", "~nobody/x"]) add({ path, content: "y\n" });
	for (const args of [{}, { path: "a" }, { content: "a" }, { path: "a", content: 7 }, { path: 7, content: "a" }, { path: "a", content: null }, { path: "a", content: {} }, { path: "a", content: "b", more: 1 }]) add(args);
	return cases;
}

/** Some lines of a text, somewhere in it. */
function piece(text) {
	const lines = text.split("\n");
	const start = random(lines.length);
	return lines.slice(start, start + 1 + random(4)).join("\n");
}

export function edit(real) {
	seed();
	const cases = [];
	const add = (file, edits, more) => cases.push({ tool: "edit", args: { path: "f.txt", edits, ...more }, files: [{ path: "f.txt", ...file }], after: ["f.txt"] });
	const change = (text) => pick([(t) => `${t}!`, (t) => t.toUpperCase(), () => "", (t) => `${t}\nmore\n${t}`, () => "something else\n", (t) => t.replace(/\w+/, "word"), (t) => t.replaceAll("\n", "\r\n")])(text);
	const loose = (text) => pick([(t) => t.replace(/[ \t]+$/gm, ""), (t) => t.replace(/$/gm, "  "), (t) => t.replace(/"/g, "\u201c"), (t) => t.replace(/-/g, "\u2013"), (t) => t.replace(/ /g, "\u00a0"), (t) => t.replace(/'/g, "\u2019")])(text);
	for (const path of real.slice(0, 170)) {
		const bytes = readFileSync(path);
		const text = bytes.toString("utf8");
		if (bytes.length > 200_000 || !bytes.equals(Buffer.from(text))) continue;
		const file = { text };
		const count = 1 + (random(3) ? 0 : 1 + random(3));
		const edits = Array.from({ length: count }, () => {
			const found = piece(text.replaceAll("\r\n", "\n"));
			return { oldText: random(4) ? found : loose(found), newText: change(found) };
		});
		add(file, edits);
		cases.at(-1).of = "others";
	}
	const text = "one\ntwo \u201cquoted\u201d  \nthree \u2013 dash\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n";
	const replacements = [
		[["one", "1"]], [["twelve\n", ""]], [["two \"quoted\"", "2"]], [["three - dash", "3"]], [["one\ntwo", "x"]], [["missing", "x"]], [["e", "x"]], [["", "x"]], [["one", "one"]],
		[["one", "1"], ["twelve", "12"]], [["twelve", "12"], ["one", "1"]], [["one\ntwo", "a"], ["two", "b"]], [["one", "1"], ["missing", "x"]], [["four", "4"], ["", "x"]], [["one", "1"], ["three - dash", "3"]],
		[["four\nfive\nsix", "4\n5\n6"]], [["four\r\nfive", "4\r\n5"]], [["one", "1\r\n1.5"]], [["one\n", "\n\n\none\n\n\n"]], [["  \n", "\n"]], [["four\n", "four\nfour and a half\n"]], [["five\nsix\n", ""]],
	];
	const forms = [text, text.replaceAll("\n", "\r\n"), `\ufeff${text}`, text.trimEnd(), text.replaceAll("\n", "\r"), text.replace("\n", "\r\n")];
	for (const form of forms) for (const edits of replacements) add({ text: form }, edits.map(([oldText, newText]) => ({ oldText, newText })));
	for (const [name, content] of Object.entries(contents)) {
		if (content.repeat?.[1] > 1000) continue;
		add(content, [{ oldText: "needle", newText: "pin" }]);
		add(content, [{ oldText: "omega\n", newText: "the end" }]);
		void name;
	}
	const wrong = [
		{ edits: [] }, { edits: "x" }, { edits: null }, { edits: [{ oldText: "one" }] }, { edits: [{ oldText: "one", newText: 1 }] }, { edits: [{ oldText: "one", newText: "1", more: 1 }] },
		{ edits: undefined, oldText: "one", newText: "1" }, { edits: [{ oldText: "four", newText: "4" }], oldText: "one", newText: "1" }, { more: 1, edits: [{ oldText: "one", newText: "1" }] }, { edits: { oldText: "one", newText: "1" } },
		{ edits: JSON.stringify([{ oldText: "one", newText: "1" }]) }, { path: "missing.txt", edits: [{ oldText: "a", newText: "b" }] }, { path: ".", edits: [{ oldText: "a", newText: "b" }] }, { path: "@f.txt", edits: [{ oldText: "one", newText: "b" }] },
	];
	for (const more of wrong) add({ text }, [], more);
	for (const mode of [0, 0o444, 0o222]) add({ text, mode }, [{ oldText: "one", newText: "1" }]);
	return cases;
}

export function bash() {
	seed();
	const cases = [];
	const add = (args, files) => cases.push({ tool: "bash", args, files });
	const prints = [
		"true", "echo hello", "printf ''", "printf 'no newline'", "printf '\\n'", "printf '\\n\\n'", "echo out; echo err >&2", "echo err >&2", "printf 'a\\r\\nb\\r\\n'", "printf 'tab\\there\\n'", "printf '\\033[31mred\\033[0m\\n'",
		"printf 'caf\\303\\251\\n'", "printf 'bad \\377 byte\\n'", "printf '\\342\\202'", "printf 'nul\\0byte\\n'", "printf '\\357\\273\\277mark\\n'", "seq 10", "seq 2000", "seq 1999", "seq 2001", "seq 5000", "seq 2000 | head -c -1",
		"yes | head -c 51200", "yes | head -c 51201", "yes 0123456789012345678901234567890123456789 | head -n 1500", "head -c 60000 /dev/zero | tr '\\0' x", "head -c 51200 /dev/zero | tr '\\0' x", "head -c 51201 /dev/zero | tr '\\0' x",
		"head -c 60000 /dev/zero | tr '\\0' x; echo; echo last", "echo first; head -c 60000 /dev/zero | tr '\\0' x", "head -c 60000 /dev/zero | tr '\\0' x; echo", "for i in $(seq 30000); do printf '\\303\\251'; done", "pwd", "cat f.txt", "cat missing.txt", "ls", "echo \"$0\"", "echo $-", "echo $BASH_VERSION | cut -c1", "cat",
		"exec 2>/dev/null; echo quiet", "echo a; sleep 0.05; echo b >&2; sleep 0.05; echo c", "unknown-command-of-nobody", "echo 'unbalanced", "if", "echo a && false", "set -e; false; echo no", "cd /nowhere", "echo ${UNSET-default}", "echo \u00fcml\u00e4ut \u{1f600}", "printf '%s\\n' {1..5}", "cat <<EOF\nhere\nEOF", "# only a comment", "", " ", "exit",
	];
	const ends = ["", "; exit 0", "; exit 1", "; exit 42", "; exit 255", "; (exit 3)"];
	for (const print of prints) for (const end of print.startsWith("seq") || print.startsWith("head") || print.startsWith("for") ? ["", "; exit 7"] : pick([ends, ends.slice(0, 4), ends.slice(2)])) if (!/unbalanced|^if$|EOF|comment|^ ?$/.test(print) || end === "") add({ command: print + end }, [{ path: "f.txt", text: "content\n" }]);
	for (const signal of ["TERM", "KILL", "SEGV", "INT", "HUP", "PIPE"]) add({ command: `echo before; kill -${signal} $$; sleep 1; echo after` });
	add({ command: "sleep 30", timeout: 0.2 });
	add({ command: "echo before; sleep 30", timeout: 0.3 });
	add({ command: "seq 5000; sleep 30", timeout: 1 });
	add({ command: "echo fast", timeout: 10 });
	add({ command: "echo none", timeout: 0 });
	add({ command: "echo negative", timeout: -1 });
	add({ command: "echo text", timeout: "5" });
	add({ command: "sleep 60 & echo started" });
	add({ command: "(sleep 60 >/dev/null 2>&1 &) ; echo detached" });
	add({ command: "trap 'echo trapped' EXIT; echo body" });
	for (const args of [{}, { command: 7 }, { command: null }, { command: ["ls"] }, { command: "echo more", extra: 1 }, { command: "echo x", timeout: "soon" }, { command: "echo x", timeout: null }]) add(args);
	for (let n = 0; n < 40; n++) add({ command: `seq ${random(6000)} | sed 's/$/ ${"p".repeat(random(60))}/'${random(3) ? "" : `; exit ${random(200)}`}` });
	cases.push({ tool: "bash", cwd: "kinds", args: { command: "cat crlf.txt utf16le.txt latin1.txt broken.txt" } });
	return cases;
}

export function grep(folders) {
	seed();
	const cases = [];
	const add = (cwd, args) => cases.push({ tool: "grep", cwd, args });
	const tops = ["kinds", "names", "repo", "plain", "links", "only-hidden", "repo/sub/nested", "repo/inner", "nothing"];
	const options = [
		{}, { context: 1 }, { context: 3 }, { limit: 3 }, { limit: 1, context: 2 }, { ignoreCase: true }, { literal: true }, { glob: "*.txt" }, { glob: "!*.txt" }, { glob: "**/*.ts" }, { glob: "*.log" }, { glob: "src/**" }, { glob: "/src/*.ts" }, { glob: "sub/*" }, { glob: "{*.md,*.js}" },
	];
	for (const cwd of tops) for (const more of options) add(cwd, { pattern: "needle", ...more });
	const patterns = [
		"NEEDLE", "^needle", "needle$", "n..dle", "needle|omega", "(alpha|second)", "\\bneedle\\b", "\\d+", "[[:upper:]]", "\\p{L}+\u00e9", "caf.", "^$", "", ".", "x{50}", "needle.*needle", "\\t", "\u{1f600}", "^\\s+\\S", "(?i)NEEDLE", "(?s)a.b", "\\r", "\\x00", "a\nb", "(", "[", "*", "a{1000000}", "(?=x)", "\\1", "needle\\", "$", "\\", "+",
	];
	for (const pattern of patterns) for (const more of [{}, { literal: true }, { ignoreCase: true, limit: 5 }]) add("kinds", { pattern, ...more });
	for (const path of ["lf.txt", "crlf.txt", "cr.txt", "mixed.txt", "bom.txt", "utf16le.txt", "nul-late.txt", "nul-early.bin", "very-long-line.txt", "long-wide-line.txt", "empty.txt", "broken.txt", "latin1.txt"]) for (const context of [0, 1, 5]) add("kinds", { pattern: "needle|n", path, context });
	for (const path of ["", ".", "..", "../kinds", "$ROOT/kinds", "$ROOT/kinds/", "missing", "../links/to-folder", "../links/to-file", "../links/broken", "../link-to-links", "@lf.txt", "../odd", "../repo/.git", "../repo/build", "../repo/a.log"]) add("kinds", { pattern: "needle", path });
	for (const path of ["locked", "all-locked", "locked/secret.txt", "locked/folder"]) add(".", { pattern: "needle", path });
	for (const args of [{}, { pattern: 7 }, { pattern: null }, { pattern: "needle", limit: 0 }, { pattern: "needle", limit: -3 }, { pattern: "needle", limit: 2.5 }, { pattern: "needle", limit: "2" }, { pattern: "needle", context: -1 }, { pattern: "needle", context: "1" }, { pattern: "needle", context: 1.5 }, { pattern: "needle", ignoreCase: "true" }, { pattern: "needle", literal: "yes" }, { pattern: "needle", glob: "" }, { pattern: "needle", glob: "[" }, { pattern: "needle", glob: "{a" }, { pattern: "needle", path: null }, { pattern: "-needle" }, { pattern: "--help" }, { pattern: "needle", limit: 29999 }]) add("kinds", args);
	for (const limit of [undefined, 100, 1199, 1200, 1201, 5000]) add("many", { pattern: "needle", limit });
	for (const folder of folders) {
		for (const pattern of ["function", "import", "TODO", "return\\s+\\w+;", "\"name\"", "license", "unsafe", "https?://", "\\bfn\\b", "zzz-nowhere"]) add(folder, { pattern, ignoreCase: random(3) === 0, context: random(3) ? undefined : random(4), limit: random(2) ? undefined : 1 + random(300), glob: random(4) ? undefined : pick(["*.js", "*.md", "*.rs", "*.d.ts", "!*.map", "*.json"]) });
	}
	return cases;
}

export function find(folders) {
	seed();
	const cases = [];
	const add = (cwd, args) => cases.push({ tool: "find", cwd, args });
	const patterns = ["*", "**", "*.txt", "*.TXT", "*.{ts,js}", "**/*.ts", "src/**/*.ts", "src/*", "sub/**", "*.log", "main*", "MAIN*", "?ain.ts", "[ab]*", "[!a-z]*", "[!b]*", ".*", "*/nested", "nested", "nested/*", "**/nested/**", "build", "node_modules", "*.nothing", "readme*", "README*", "/etc/hos*", "$ROOT/repo/src/*"];
	for (const cwd of ["repo", "plain", "names", "kinds", "links", "only-hidden", "repo/inner"]) for (const pattern of patterns) add(cwd, { pattern });
	for (const pattern of ["", "[", "{a", "a}", "**a", "a**", "\\*", "\\", "[]", "[^a]*", "***", "a/b/../c", "./*.txt", "*/", "//", "\u00fc*", "\u{1f600}*", "*\n*", "with space*", "*'*", "*[[]1*", "--help", "-*"]) add("names", { pattern });
	for (const path of ["", ".", "..", "../repo", "$ROOT/repo", "$ROOT/repo/", "missing", "../kinds/lf.txt", "../links", "../links/to-folder", "../link-to-links", "@../repo", "../odd", "../locked", "../locked/folder", "../nothing", "../repo/.git", "../repo/build"]) add("kinds", { pattern: "*", path });
	for (const limit of [1, 2, 10, 0, -1, 2.5, "3", 29999, null, undefined, 1199, 1200, 1201]) add("many", { pattern: "*", limit });
	add("wide", { pattern: "*" });
	for (const args of [{}, { pattern: 7 }, { pattern: null }, { pattern: ["*"] }]) add("kinds", args);
	for (const folder of folders) for (const pattern of ["*.js", "*.rs", "**/*.md", "package.json", "src/**/*", "*index*", "LICENSE*", "*.d.ts", "test*", "*"]) add(folder, { pattern, limit: random(3) ? undefined : 1 + random(200) });
	return cases;
}

export function ls(folders) {
	seed();
	const cases = [];
	const add = (cwd, args) => cases.push({ tool: "ls", cwd, args });
	for (const cwd of [".", "kinds", "names", "repo", "repo/.git", "repo/sub", "plain", "links", "only-hidden", "nothing", "odd", "many", "wide", "locked"]) for (const limit of [undefined, 1, 2, 5, 50]) add(cwd, { limit });
	for (const path of ["", ".", "..", "../repo", "$ROOT/repo", "$ROOT/repo/", "missing", "lf.txt", "../links/to-folder", "../links/broken", "../links/self", "../link-to-links", "@../names", "../names/folder with space", "../names/folder\u00a0with space", "~", "lf.txt/x", "../locked/folder", "../locked/no-write", "x".repeat(300)]) add("kinds", { path });
	for (const args of [{ limit: 0 }, { limit: -1 }, { limit: 2.5 }, { limit: "3" }, { limit: "x" }, { limit: null }, { path: 7 }, { path: null }, { more: 1 }, { path: {} }, { limit: 1200 }, { limit: 1199 }]) add("many", args);
	// Names of all kinds, a folder for each: the cases compare their order.
	const signs = "abcdeABCDE01290_-.,;!()[]{}@#$%^&+=~ '\u00e9\u00e8\u00ea\u00eb\u00e4\u00e5\u00f6\u00f8\u00fc\u00df\u00f1\u00e7\u0153\u00e6\u03b1\u03b2\u0436\u044f\u65e5\u672c\u3042\u30a2\uac00\u{1f600}\u2013\u2026\u00b2\u00bd";
	const all = [...signs];
	for (let n = 0; n < 60; n++) {
		const names = new Set(Array.from({ length: 25 }, () => Array.from({ length: 1 + random(4) }, () => pick(n % 2 ? all : all.slice(0, 38))).join("")));
		for (const bad of [".", "..", "~"]) names.delete(bad);
		cases.push({ tool: "ls", args: {}, files: [...names].map((path) => ({ path, text: "" })) });
	}
	for (const folder of folders) {
		add(folder, {});
		for (const entry of readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).slice(0, 3)) add(folder, { path: entry.name });
	}
	return cases;
}
