// The made tree: every kind of line ending, encoding, name and ignore file.
// Folders of it are where cases work.

const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const utf16 = (text, big) => {
	const bytes = Buffer.from(`\ufeff${text}`, "utf16le");
	return base64(big ? bytes.swap16() : bytes);
};
const latin1 = (text) => base64(Buffer.from(text, "latin1"));

/** Content by name, each of a kind that tools may stumble over. */
export const contents = {
	"empty.txt": { text: "" },
	"one-line.txt": { text: "needle" },
	"lf.txt": { text: "alpha\nneedle one\nomega\n" },
	"crlf.txt": { text: "alpha\r\nneedle two\r\nomega\r\n" },
	"cr.txt": { text: "alpha\rneedle three\romega\r" },
	"mixed.txt": { text: "alpha\nneedle four\r\nmiddle\rneedle five\n\r\nomega" },
	"bom.txt": { text: "\ufeffneedle with a mark\nsecond\n" },
	"newlines.txt": { text: "\n\n\nneedle\n\n" },
	"utf16le.txt": { base64: utf16("alpha\nneedle wide\nomega\n", false) },
	"utf16be.txt": { base64: utf16("alpha\r\nneedle big\r\n", true) },
	"latin1.txt": { base64: latin1("alpha\nneedle caf\xe9 \xfcber\nomega\n") },
	"nul-late.txt": { text: `needle before\n${"x".repeat(90)}\n\0needle after\n` },
	"nul-early.bin": { text: "\0needle\n" },
	"broken.txt": { base64: base64([0x6e, 0x65, 0x65, 0x64, 0x6c, 0x65, 0xf0, 0x9f, 0x0a, 0xe2, 0x82, 0x28, 0xc3, 0x0a]) },
	"emoji.txt": { text: "needle \u{1f600} \u{1f468}\u200d\u{1f469}\u200d\u{1f467} e\u0301\nzwei\n" },
	"typography.txt": { text: "\u201cneedle\u201d \u2013 it\u2019s\u00a0so\u2026  \nfull\uff0dwidth\t\nend\u3000\n" },
	"tabs.txt": { text: "\tneedle\n\t\tdeep  \n   spaces\t\n" },
	"long-line.txt": { repeat: ["needle in a long line, ", 60] },
	"very-long-line.txt": { repeat: ["0123456789 needle ", 4000] },
	"long-wide-line.txt": { repeat: ["\u{1f600}\u00e9n", 300] },
	"many-lines.txt": { repeat: ["a line of a file with many\n", 2500] },
	"many-bytes.txt": { repeat: [`${"y".repeat(99)}\n`, 700] },
	"exactly-2000.txt": { repeat: ["l\n", 2000] },
	"lines-1999.txt": { repeat: ["l\n", 1999] },
	"exactly-50k.txt": { repeat: [`${"z".repeat(127)}\n`, 400] },
	"just-50k.txt": { repeat: ["z", 51200] },
	"over-50k.txt": { repeat: ["z", 51201] },
	"short-then-long.txt": { text: `short\n${"q".repeat(60000)}\nafter\n` },
};

const names = [
	"with space.txt", "-leading-dash.txt", "--help", "\u00fcml\u00e4ut.txt", "e\u0301 decomposed.txt", "\u65e5\u672c\u8a9e.txt",
	"\u{1f600}.txt", "quote'd.txt", 'double"quote.txt', "it\u2019s curly.txt", "Screenshot 2024 at 9.41\u202fAM.txt", "back\\slash.txt",
	"dollar$HOME.txt", "star*.txt", "bracket[1].txt", "brace{a,b}.txt", "semi;colon.txt", "amp&ersand.txt", "UPPER.TXT",
	"tab\tname.txt", ".hidden", "..double-dot", "trailing.", "~tilde.txt", "@at.txt", "#hash.txt", "!bang.txt", "%41.txt", "comma,name.txt",
	"Readme", "README", "readme.md", "a_b", "a-b", "a b", "a.b", "ab", "a1", "a10", "a2", "Zebra", "\u00e9clair", "eclair", "\u00c9tat", "\u00f8re", "ore",
	"stra\u00dfe", "strasse", "\u03b1lpha", "\u044f", "\uac00", "\u3042",
];

export const made = [
	...Object.entries(contents).map(([path, content]) => ({ path: `kinds/${path}`, ...content })),
	...names.map((path) => ({ path: `names/${path}`, text: `needle in ${path}\n` })),
	{ path: "names/folder with space/inner.txt", text: "needle inner\n" },
	{ path: "names/Folder/x.txt", text: "needle\n" },
	{ path: "nothing", dir: true },
	{ path: "only-hidden/.a", text: "needle\n" },
	{ path: "only-hidden/.b/c", text: "needle\n" },
	// Links, good and bad.
	{ path: "links/real/file.txt", text: "needle behind links\n" },
	{ path: "links/to-folder", link: "real" },
	{ path: "links/to-file", link: "real/file.txt" },
	{ path: "links/broken", link: "nowhere" },
	{ path: "links/self", link: "self" },
	{ path: "links/real/loop", link: ".." },
	{ path: "links/absolute", link: "/etc/hostname" },
	{ path: "link-to-links", link: "links" },
	// Ignore files inside a repository, and outside.
	...["repo", "plain"].flatMap((top) => [
		...(top === "repo" ? [{ path: "repo/.git/HEAD", text: "ref: needle\n" }, { path: "repo/.git/info/exclude", text: "excluded.txt\n" }] : []),
		{ path: `${top}/.gitignore`, text: "# comment\n*.log\n!important.log\nbuild/\n/rooted.txt\ndeep/**/skip.txt\n\\#odd\nspace \\ \n" },
		{ path: `${top}/.ignore`, text: "by-ignore.txt\n" },
		{ path: `${top}/.rgignore`, text: "by-rgignore.txt\n" },
		{ path: `${top}/.fdignore`, text: "by-fdignore.txt\n" },
		...[
			"a.log", "important.log", "build/out.txt", "rooted.txt", "sub/rooted.txt", "deep/a/b/skip.txt", "deep/skip.txt", "deep/keep.txt",
			"#odd", "by-ignore.txt", "by-rgignore.txt", "by-fdignore.txt", "excluded.txt", ".hidden/x.txt", ".env", "src/main.ts", "src/main.test.ts",
			"src/lib/util.ts", "src/lib/util.js", "sub/nested/b.log", "sub/nested/c.log", "sub/nested/d.md", "node_modules/pkg/index.js", "vendor/build/x.txt",
		].map((path) => ({ path: `${top}/${path}`, text: `needle in ${path}\nsecond line\n` })),
		{ path: `${top}/sub/nested/.gitignore`, text: "!b.log\nd.md\n" },
	]),
	{ path: "repo/inner/.git/HEAD", text: "x\n" },
	{ path: "repo/inner/x.log", text: "needle\n" },
	{ path: "repo/inner/sub/y.txt", text: "needle\n" },
	// Names that are not UTF-8, and files without read permission.
	{ path: "odd/bad-\xff-name.txt", latin1: true, text: "needle\n" },
	{ path: "odd/good.txt", text: "needle\n" },
	{ path: "locked/secret.txt", text: "needle\n", mode: 0 },
	{ path: "locked/open.txt", text: "needle\n" },
	{ path: "locked/read-only.txt", text: "needle\n", mode: 0o444 },
	{ path: "locked/folder/x.txt", text: "needle\n" },
	{ path: "locked/folder", dir: true, mode: 0 },
	{ path: "locked/no-write/x.txt", text: "needle\n" },
	{ path: "locked/no-write", dir: true, mode: 0o555 },
	{ path: "all-locked/secret.txt", text: "needle\n", mode: 0 },
	// Many entries.
	...Array.from({ length: 1200 }, (_, n) => ({ path: `many/${n % 3 ? "File" : "file"}-${(n * 7919) % 1200}.txt`, text: `needle ${n}\n` })),
	...Array.from({ length: 400 }, (_, n) => ({ path: `wide/${String(n).padStart(4, "0")}-${"w".repeat(200)}.txt`, text: "x\n" })),
];
// `odd` must be there before names that make no folders.
made.unshift({ path: "odd", dir: true });
