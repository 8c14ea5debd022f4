// The part of the comparison that tests/it repeats without the original: small,
// the same on every machine, equal in both programs.
import { difference } from "./compare.mjs";

const PER_TOOL = 50;
const TREE = /^(kinds|names|repo|plain|links|link-to-links|only-hidden|nothing|odd)(\/|$)/;

export function slice(suite, theirs, ours) {
	const files = suite.files.filter((file) => TREE.test(file.path));
	const fits = suite.cases.map((one, index) => {
		const text = JSON.stringify([one, theirs[index]]);
		const local = one.cwd === undefined || (TREE.test(one.cwd) && !one.cwd.startsWith("/"));
		// Files of other authors are not copied into this repository. Permissions do not apply to a
		// superuser, and a shell's own messages differ between its versions.
		const here = local && one.of !== "others" && !/locked|"mode"|many|wide\/|bash: |BASH_VERSION|pi-bash|case-\d|etc\/|sleep|kill|"path":"[\/~]/.test(text);
		return here && text.length < 2500 && !difference(one, theirs[index], ours[index]);
	});
	const chosen = new Set();
	for (const tool of new Set(suite.cases.map((one) => one.tool))) {
		const indices = suite.cases.flatMap((one, index) => (one.tool === tool && fits[index] ? [index] : []));
		const step = Math.max(1, indices.length / PER_TOOL);
		for (let at = 0; at < indices.length; at += step) chosen.add(indices[Math.floor(at)]);
	}
	const order = [...chosen].sort((a, b) => a - b);
	const lines = (list) => `[\n${list.map((item) => JSON.stringify(item)).join(",\n")}\n]`;
	return `{"files": ${lines(files)},\n"cases": ${lines(order.map((index) => suite.cases[index]))},\n"answers": ${lines(order.map((index) => theirs[index]))}}\n`;
}
