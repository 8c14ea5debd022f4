// The source of skills and prompts that an extension generates.
import { path } from "pi:node.ts";

interface GeneratedResource {
  name?: string;
  filePath?: string;
  sourceInfo?: object;
}

/** Fills in missing members by the path where the file is or would be. */
export function withSource<T extends GeneratedResource>(made: T, { cwd, agentDir }: { cwd: string; agentDir: string }): T {
  const given = made.sourceInfo as { scope?: string; origin?: string; source?: string; path?: string } | undefined;
  const { filePath } = made;
  if (typeof filePath !== "string" || (given?.scope && given.origin && given.source && given.path)) return made;
  const { dirname, isAbsolute, join, relative, resolve } = path();
  const file = resolve(filePath);
  const isBelow = (folder: string) => {
    const way = relative(folder, file);
    return way !== "" && way !== ".." && !way.startsWith("../") && !way.startsWith("..\\") && !isAbsolute(way);
  };
  const kinds = ["skills", "prompts", "themes", "extensions"];
  const roots = [
    ...kinds.map((kind) => ({ scope: "user", baseDir: join(agentDir, kind) })),
    ...kinds.map((kind) => ({ scope: "project", baseDir: join(cwd, ".pi", kind) })),
  ];
  const { scope, baseDir } = roots.find((root) => isBelow(root.baseDir)) ??
    { scope: "temporary", baseDir: dirname(file) };
  const sourceInfo = { path: filePath, source: "local", scope, origin: "top-level", baseDir, ...given };
  return { ...made, sourceInfo };
}

/** Names the invalid skill, where the program would only name the missing member. */
export function checkSkills(skills: unknown, from: string): void {
  if (!Array.isArray(skills)) throw new TypeError(`${from}: skills must be an array`);
  for (const [index, skill] of skills.entries()) {
    for (const member of ["name", "description", "filePath"]) {
      if (typeof skill?.[member] === "string") continue;
      const which = typeof skill?.name === "string" ? `the skill "${skill.name}"` : `skills[${index}]`;
      throw new TypeError(`${from}: ${which} has no ${member}`);
    }
  }
}
