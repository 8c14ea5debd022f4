// The YAML between `---` lines at the head of skills, prompts and agents.
import { yaml as yamlModule } from "pi:host.ts";

function split(content: string): { yaml: string; body: string } {
  const text = content.replace(/\r\n?/g, "\n");
  const end = text.startsWith("---") ? text.indexOf("\n---", 3) : -1;
  if (end < 0) return { yaml: "", body: text };
  return { yaml: text.slice(4, end), body: text.slice(end + 4).trim() };
}

export function parseFrontmatter<T extends Record<string, unknown> = Record<string, unknown>>(
  content: string,
): { frontmatter: T; body: string } {
  const { yaml, body } = split(content);
  return { frontmatter: ((yaml && yamlModule().parse(yaml)) || {}) as T, body };
}

export function stripFrontmatter(content: string): string {
  return split(content).body;
}
