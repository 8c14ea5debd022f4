// Defines which results count as equal, and which differences are known. A new one needs an
// explanation in docs/tools.md.

/** Width and height in the header of an image. */
function dimensions(bytes) {
	if (bytes.subarray(1, 4).toString() === "PNG") return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
	if (bytes[0] !== 0xff) return undefined;
	for (let at = 2; at < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
		const marker = bytes[at + 1];
		if (marker >= 0xc0 && marker <= 0xc3) return [bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)];
	}
	return undefined;
}

/** The form that is compared: without random parts, and re-encoded images by their size only. */
function plain(answer, one) {
	const text = JSON.stringify(answer).replace(/pi-bash-[0-9a-f]{16}\.log/g, "pi-bash-RANDOM.log");
	const copy = JSON.parse(text);
	for (const block of copy.content ?? []) {
		if (block.type !== "image" || one.files?.some((file) => file.base64 === block.data)) continue;
		block.data = dimensions(Buffer.from(block.data, "base64")) ?? block.data;
	}
	return sorted(copy);
}

function sorted(value) {
	if (Array.isArray(value)) return value.map(sorted);
	if (value === null || typeof value !== "object") return value;
	return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

const textOf = (answer) => answer.error ?? (answer.content ?? []).map((block) => block.text ?? "").join("");

const says = (answer, pattern) => pattern.test(textOf(answer));

/** The end of an output, before the notice about it. */
const end = (answer) => textOf(answer).replace(/\n*(\[Showing [^\]]*\]|Command (exited|timed)[^\n]*|\s)*$/, "").slice(-2000);

/** `when(theirs, ours, case)`: whether this is the difference. */
export const known = [
	{
		name: "limit below 1",
		why: "the original shows nothing, or everything, and says that a limit was reached; ours takes 1",
		tools: ["ls", "find", "grep"],
		when: (_theirs, _ours, one) => one.args.limit <= 0 || one.args.limit === null,
	},
	{
		name: "names that are not UTF-8",
		why: "the original leaves them out, or out of grep's text; ours shows them with U+FFFD",
		tools: ["ls", "find", "grep"],
		when: (theirs, ours) => says(ours, /\ufffd-name/) && !says(theirs, /\ufffd-name/),
	},
	{
		name: "edit of text that is not UTF-8",
		why: "the original replaces every byte that it does not understand, all over the file; ours refuses",
		tools: ["edit"],
		when: (_theirs, ours) => says(ours, /is not UTF-8 text/),
	},
	{
		name: "edit of white space alone",
		why: "the original looks for nothing, which is everywhere; ours looks for the white space",
		tools: ["edit"],
		when: (_theirs, _ours, one) => one.args.edits?.some?.((edit) => edit.oldText?.trim?.() === "" && edit.oldText !== ""),
	},
	{
		name: "lines around a match",
		why: "for them the original reads the file again, as UTF-8 and with lone carriage returns as line ends, so that marks show, UTF-16 is garbled and numbers may be wrong; ours shows what was searched",
		tools: ["grep"],
		when: (theirs, ours, one) => Number(one.args.context) > 0 && (says(theirs, /\ufeff|\0/) || says(ours, /cr\.txt|mixed\.txt/)),
	},
	{
		name: "backslash in a name",
		why: "a slash in the original",
		tools: ["grep"],
		when: (theirs, ours) => says(theirs, /back\/slash/) && says(ours, /back\\slash/),
	},
	{
		name: "errors of ripgrep and fd",
		why: "ours are the libraries' own, without the programs' names and the advice to use their options",
		tools: ["grep", "find"],
		when: (theirs, ours) => theirs.error?.replace(/^(\[fd error\]|rg): /, "").startsWith(ours.error?.slice(0, 30)),
	},
	{
		name: "no such folder",
		why: "fd's words in the original, those of ls in ours",
		tools: ["find"],
		when: (theirs, ours) => says(theirs, /is not a directory\.\n.*No valid search paths/) && says(ours, /^(Path not found|Not a directory): /),
	},
	{
		name: "pattern with a dash in front",
		why: "an option of rg or fd in the original, a pattern in ours",
		tools: ["grep", "find"],
		when: (_theirs, _ours, one) => String(one.args.pattern).startsWith("-"),
	},
	{
		name: "places that cannot be read",
		why: "find is silent about them in the original, grep fails even when it found something; ours shows what it found and says so",
		tools: ["grep", "find"],
		when: (_theirs, ours) => says(ours, /Could not read \d+ of the files and folders|: Permission denied \(os error 13\)$/),
	},
	{
		name: "folder with a slash at the end",
		why: "the original cuts off the first letter of each result",
		tools: ["find"],
		when: (_theirs, _ours, one) => String(one.args.path).endsWith("/"),
	},
	{
		name: "limit that is a fraction",
		why: "fd refuses it; ours takes the next whole number",
		tools: ["find"],
		when: (_theirs, _ours, one) => one.args.limit % 1 !== 0 && typeof one.args.limit === "number",
	},
	{
		name: "NUL in a path",
		why: "Node's words in the original, the system's in ours",
		tools: ["read", "write"],
		when: (_theirs, ours, one) => one.args.path?.includes("\0") && ours.error !== undefined,
	},
	{
		name: "picture without content",
		why: "a file that is only a picture's first bytes is text in the original; in ours a picture that cannot be shown",
		tools: ["read"],
		when: (_theirs, _ours, one) => /^head-only/.test(one.args.path),
	},
	{
		name: "more than 100 KB of output",
		why: "the original counts lines and bytes from where its buffer begins, and may show less than fits",
		tools: ["bash"],
		when: (theirs, ours, one) => /^seq/.test(one.args.command) && !one.args.timeout && says(ours, /Full output/) && end(theirs) === end(ours),
	},
	{
		name: "time limit after much output",
		why: "the original shows all of its buffer; ours the end of it, and where the rest is",
		tools: ["bash"],
		when: (theirs, ours, one) => one.args.timeout && says(ours, /Full output/) && end(theirs) === end(ours),
	},
	{
		name: "long last line",
		why: "the original shows the nothing after its newline; ours the end of the line",
		tools: ["bash"],
		when: (theirs) => says(theirs, /^\(no output\)\n\n\[Showing/),
	},
	{
		name: "command killed by a signal",
		why: "a success in the original; in ours an error with the code that shells give it",
		tools: ["bash"],
		when: (_theirs, ours, one) => /kill -/.test(one.args.command) && says(ours, /Command exited with code 1\d\d$/),
	},
];

/** `undefined` if equal, else the name of the known difference or "unknown". */
export function difference(one, theirs, ours) {
	const [a, b] = [plain(theirs, one), plain(ours, one)];
	if (JSON.stringify(a) === JSON.stringify(b)) return undefined;
	return known.find((rule) => rule.tools.includes(one.tool) && rule.when(a, b, one))?.name ?? "unknown";
}

export { textOf };
