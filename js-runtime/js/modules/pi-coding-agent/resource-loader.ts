// Skills, context files and prompts as the program finds them, for whoever begins a
// session with others of them.
import { hostSync } from "pi:host.ts";
import { currentFolder, fs } from "pi:node.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";

export interface Skill {
  name: string;
  description: string;
  filePath: string;
  baseDir: string;
  sourceInfo: unknown;
  disableModelInvocation: boolean;
}

interface Diagnostic {
  type: string;
  message: string;
  path?: string;
}

interface ContextFile {
  path: string;
  content: string;
}

type Skills = { skills: Skill[]; diagnostics: Diagnostic[] };
type Prompts = { prompts: unknown[]; diagnostics: Diagnostic[] };
type Themes = { themes: unknown[]; diagnostics: Diagnostic[] };
type AgentsFiles = { agentsFiles: ContextFile[] };

export interface ResourceLoader {
  getExtensions?(): unknown;
  getSkills?(): Skills;
  getPrompts?(): Prompts;
  getThemes?(): Themes;
  getAgentsFiles?(): AgentsFiles;
  getSystemPrompt?(): string | undefined;
  getAppendSystemPrompt?(): string[];
}

interface Place {
  cwd?: string;
  agentDir?: string;
}

function placed<T extends Place>(options: T): T & { cwd: string; agentDir: string } {
  return { ...options, cwd: options.cwd ?? currentFolder(), agentDir: options.agentDir ?? getAgentDir() };
}

export function loadSkills(
  options: Place & { skillPaths?: string[]; includeDefaults?: boolean } = {},
): Skills {
  return hostSync("resources.skills", placed(options));
}

export function loadSkillsFromDir({ dir }: { dir: string; source?: string }): Skills {
  return loadSkills({ skillPaths: [dir], includeDefaults: false });
}

/** The block of the system prompt; nothing if a model is to know of none of them. */
export function formatSkillsForPrompt(skills: Skill[]): string {
  const block = hostSync<string | undefined>("resources.skillsBlock", { skills });
  return block ? `\n\n${block}` : "";
}

export function loadProjectContextFiles(options: Place = {}): ContextFile[] {
  return hostSync("resources.contextFiles", placed(options));
}

export interface ParsedSkillBlock {
  name: string;
  location: string;
  content: string;
  userMessage: string | undefined;
}

const SKILL_BLOCK =
  /^<skill name="(?<name>[^"]+)" location="(?<location>[^"]+)">\n(?<content>[^]*?)\n<\/skill>(?:\n\n(?<rest>[^]+))?$/;

/** A message that calls a skill, taken apart. */
export function parseSkillBlock(text: string): ParsedSkillBlock | null {
  const found = SKILL_BLOCK.exec(text)?.groups;
  if (!found) return null;
  const { name, location, content, rest } = found as Record<string, string>;
  return { name, location, content, userMessage: rest?.trim() || undefined } as ParsedSkillBlock;
}

interface Origin {
  source: string;
  scope?: string;
  origin?: string;
  baseDir?: string;
}

export function createSyntheticSourceInfo(path: string, from: Origin): Origin & { path: string } {
  const { source, scope = "temporary", origin = "top-level", baseDir } = from;
  return { path, source, scope, origin, baseDir };
}

interface LoaderOptions extends Place {
  additionalSkillPaths?: string[];
  additionalPromptTemplatePaths?: string[];
  noSkills?: boolean;
  noPromptTemplates?: boolean;
  noContextFiles?: boolean;
  /** A text, or the name of a file that has it. */
  systemPrompt?: string;
  appendSystemPrompt?: string | string[];
  extensionFactories?: unknown[];
  additionalExtensionPaths?: string[];
  skillsOverride?(base: Skills): Skills;
  promptsOverride?(base: Prompts): Prompts;
  themesOverride?(base: Themes): Themes;
  agentsFilesOverride?(base: AgentsFiles): AgentsFiles;
  systemPromptOverride?(base: string | undefined): string | undefined;
  appendSystemPromptOverride?(base: string[]): string[];
}

function textOrFile(text: string | undefined): string | undefined {
  return text && fs().existsSync(text) ? fs().readFileSync(text, "utf8") : text;
}

/** Extensions are not among what it finds: none are loaded into a session beside another. */
export class DefaultResourceLoader implements ResourceLoader {
  #options: LoaderOptions & { cwd: string; agentDir: string };
  private skills: Skills = { skills: [], diagnostics: [] };
  private prompts: Prompts = { prompts: [], diagnostics: [] };
  private themes: Themes = { themes: [], diagnostics: [] };
  #files: AgentsFiles = { agentsFiles: [] };
  #system: string | undefined;
  #append: string[] = [];

  constructor(options: LoaderOptions = {}) {
    const wanted = [options.extensionFactories, options.additionalExtensionPaths];
    if (wanted.some((list) => list && list.length > 0)) {
      throw new Error(
        "DefaultResourceLoader: extensionFactories and additionalExtensionPaths are not supported by " +
          "this version of pi: no extensions are loaded into a session that an extension runs. Give it customTools",
      );
    }
    this.#options = placed(options);
  }

  async reload(): Promise<void> {
    const options = this.#options;
    const { cwd, agentDir } = options;
    const skills = loadSkills({
      cwd,
      agentDir,
      skillPaths: options.additionalSkillPaths,
      includeDefaults: !options.noSkills,
    });
    this.skills = options.skillsOverride?.(skills) ?? skills;
    const prompts = hostSync<Prompts>("resources.prompts", {
      cwd,
      agentDir,
      paths: options.additionalPromptTemplatePaths,
      includeDefaults: !options.noPromptTemplates,
    });
    this.prompts = options.promptsOverride?.(prompts) ?? prompts;
    this.themes = options.themesOverride?.(this.themes) ?? this.themes;
    const files = { agentsFiles: options.noContextFiles ? [] : loadProjectContextFiles({ cwd, agentDir }) };
    this.#files = options.agentsFilesOverride?.(files) ?? files;
    const texts = hostSync<{ system?: string; append?: string }>("resources.promptTexts", { cwd, agentDir });
    const system = textOrFile(options.systemPrompt) ?? texts.system;
    this.#system = options.systemPromptOverride ? options.systemPromptOverride(system) : system;
    const given = [options.appendSystemPrompt ?? texts.append ?? []].flat();
    const append = given.map((text) => textOrFile(text) as string);
    this.#append = options.appendSystemPromptOverride?.(append) ?? append;
  }

  getExtensions(): { extensions: never[]; errors: never[] } {
    return { extensions: [], errors: [] };
  }

  getSkills(): Skills {
    return this.skills;
  }

  getPrompts(): Prompts {
    return this.prompts;
  }

  getThemes(): Themes {
    return this.themes;
  }

  getAgentsFiles(): AgentsFiles {
    return this.#files;
  }

  getSystemPrompt(): string | undefined {
    return this.#system;
  }

  getAppendSystemPrompt(): string[] {
    return this.#append;
  }

  extendResources({ skillPaths = [] }: { skillPaths?: { path: string }[] }): void {
    const more = loadSkills({
      cwd: this.#options.cwd,
      agentDir: this.#options.agentDir,
      skillPaths: skillPaths.map(({ path }) => path),
      includeDefaults: false,
    });
    const known = new Set(this.skills.skills.map(({ name }) => name));
    this.skills.skills.push(...more.skills.filter(({ name }) => !known.has(name)));
    this.skills.diagnostics.push(...more.diagnostics);
  }
}
