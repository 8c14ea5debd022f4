// Makes the files that cases need from a description that JSON can hold, so
// that tests/it/tools/parity.rs can make the same ones.
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Names may be bytes that are not UTF-8: with `latin1` each character is one byte. */
function place(root, entry) {
	if (!entry.latin1) return `${root}/${entry.path}`;
	return Buffer.concat([Buffer.from(`${root}/`), Buffer.from(entry.path, "latin1")]);
}

export function contentOf(entry) {
	if (entry.base64 !== undefined) return Buffer.from(entry.base64, "base64");
	const [text, count] = entry.repeat ?? [entry.text ?? "", 1];
	return Buffer.from(text.repeat(count));
}

export function make(root, entries) {
	for (const entry of entries) {
		const path = place(root, entry);
		if (entry.dir) mkdirSync(path, { recursive: true });
		else {
			if (!entry.latin1) mkdirSync(dirname(path), { recursive: true });
			if (entry.link !== undefined) symlinkSync(entry.link, path);
			else writeFileSync(path, contentOf(entry));
		}
	}
	// Modes are set last, because nothing could be written into a read-only folder.
	for (const entry of entries) if (entry.mode !== undefined) chmodSync(place(root, entry), entry.mode);
}

/** Also removes files without read permission. */
export function remove(path) {
	if (!existsSync(path)) return;
	const open = (folder) => {
		chmodSync(folder, 0o755);
		for (const name of readdirSync(folder, { encoding: "buffer" })) {
			const child = Buffer.concat([Buffer.from(`${folder}/`), name]);
			if (lstatSync(child).isDirectory()) open(child.toString("latin1") === child.toString() ? child.toString() : child);
		}
	};
	if (lstatSync(path).isDirectory()) open(path);
	rmSync(path, { recursive: true, force: true });
}
