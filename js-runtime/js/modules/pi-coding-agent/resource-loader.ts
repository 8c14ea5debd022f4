// Skills, context files and prompts as the program finds them, for creators of sessions that need
// others.
import { createEventBus, hostSync } from "pi:host.ts";
import type { EventBus } from "pi:host.ts";
import { currentFolder, fs, path } from "pi:node.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { type Extensions, extensionsOf, forget, loadExtensions } from "pi:pi-coding-agent/extensions/loader.ts";
import { SettingsManager } from "pi:pi-coding-agent/settings-manager.ts";
import { checkSkills, withSource } from "pi:pi-coding-agent/extensions/source-info.ts";
import { type LoadedTheme, themeOf } from "pi:pi-coding-agent/theme/available.ts";

export interface Skill {
  name: string;
  description: string;
  filePath: string;
  baseDir: string;
  sourceInfo?: object;
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
type Prompts = { prompts: { name: string; filePath?: string; sourceInfo?: object }[]; diagnostics: Diagnostic[] };
type Themes = { themes: { name?: string }[]; diagnostics: Diagnostic[] };
type AgentsFiles = { agentsFiles: ContextFile[] };
type Source = { path: string };

export interface ResourceLoader {
  getExtensions?(): unknown;
  getSkills?(): Skills;
  getPrompts?(): Prompts;
  getThemes?(): Themes;
  getAgentsFiles?(): AgentsFiles;
  getSystemPrompt?(): string | undefined;
  getSystemPromptSource?(): Source | undefined;
  getAppendSystemPrompt?(): string[];
  getAppendSystemPromptSources?(): Source[];
}

/** Texts of the system prompt, from the files that count. */
interface PromptTexts {
  system?: string;
  systemFile?: string;
  append?: string;
  appendFile?: string;
}

interface LoaderPaths {
  cwd?: string;
  agentDir?: string;
}

function withFolders<T extends LoaderPaths>(options: T): T & { cwd: string; agentDir: string } {
  return { ...options, cwd: options.cwd ?? currentFolder(), agentDir: options.agentDir ?? getAgentDir() };
}

export function loadSkills(
  options: LoaderPaths & { skillPaths?: string[]; includeDefaults?: boolean } = {},
): Skills {
  return hostSync("resources.skills", withFolders(options));
}

export function loadSkillsFromDir({ dir, source }: { dir: string; source?: string }): Skills {
  // As in the original, only paths that the user names have to exist.
  if (!fs().existsSync(dir)) return { skills: [], diagnostics: [] };
  const { skills, diagnostics } = loadSkills({ skillPaths: [dir], includeDefaults: false });
  const named = source === undefined
    ? skills
    : skills.map((skill) => ({ ...skill, sourceInfo: { ...skill.sourceInfo as object, source } }));
  return { skills: named, diagnostics };
}

/** The skills' block of the system prompt; empty if it lists none. */
export function formatSkillsForPrompt(skills: Skill[]): string {
  const block = hostSync<string | undefined>("resources.skillsBlock", { skills });
  return block ? `\n\n${block}` : "";
}

export function loadProjectContextFiles(options: LoaderPaths = {}): ContextFile[] {
  return hostSync("resources.contextFiles", withFolders(options));
}

export interface ParsedSkillBlock {
  name: string;
  location: string;
  content: string;
  userMessage: string | undefined;
}

const SKILL_BLOCK =
  /^<skill name="(?<name>[^"]+)" location="(?<location>[^"]+)">\n(?<content>[^]*?)\n<\/skill>(?:\n\n(?<rest>[^]+))?$/;

/** Parses a message that calls a skill. */
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

interface LoaderOptions extends LoaderPaths {
  additionalSkillPaths?: string[];
  additionalPromptTemplatePaths?: string[];
  additionalThemePaths?: string[];
  /** Settings that name skills, prompts and themes; by default those of the files. */
  settingsManager?: unknown;
  /** Loads only `additionalExtensionPaths` and `extensionFactories`. */
  noExtensions?: boolean;
  noSkills?: boolean;
  noPromptTemplates?: boolean;
  noThemes?: boolean;
  noContextFiles?: boolean;
  /** A text, or the name of a file that contains it. */
  systemPrompt?: string;
  appendSystemPrompt?: string | string[];
  extensionFactories?: unknown[];
  /** The `pi.events` of these extensions. */
  eventBus?: EventBus;
  additionalExtensionPaths?: string[];
  extensionsOverride?(base: Extensions): Extensions;
  skillsOverride?(base: Skills): Skills;
  promptsOverride?(base: Prompts): Prompts;
  themesOverride?(base: Themes): Themes;
  agentsFilesOverride?(base: AgentsFiles): AgentsFiles;
  systemPromptOverride?(base: string | undefined): string | undefined;
  appendSystemPromptOverride?(base: string[]): string[];
}

function textOrFile(text: string | undefined): string | undefined {
  return text && fs().existsSync(text) ? fs().readFileSync(text, "utf8").replace(/^\ufeff/, "") : text;
}

/** Entries that are names of existing files. */
const filesAmong = (texts: string[]): Source[] =>
  texts.filter((text) => text && fs().existsSync(text)).map((text) => ({ path: path().resolve(text) }));

/** Paths of resources that an extension adds. */
type Added = { path: string }[];

/** Adds the items whose names are new. */
function addNew<T extends { name?: string }>(known: T[], more: T[]): void {
  const names = new Set(known.map(({ name }) => name));
  known.push(...more.filter(({ name }) => !names.has(name)));
}

let load: (loader: DefaultResourceLoader) => void;
let events: (loader: DefaultResourceLoader) => EventBus | undefined;

/** The event bus of extensions that are functions. */
export const eventsOf = (loader: unknown): EventBus =>
  (loader instanceof DefaultResourceLoader ? events(loader) : undefined) ?? createEventBus();

let loadAlone: (loader: DefaultResourceLoader) => Promise<void>;

/**
 * Creates a loader that has found its extensions and finds the other resources when `look` is
 * called, in the order of the program.
 */
export async function loaderOfExtensions(
  options: LoaderOptions,
): Promise<{ loader: DefaultResourceLoader; findResources(): DefaultResourceLoader }> {
  const loader = new DefaultResourceLoader(options);
  await loadAlone(loader);
  return {
    loader,
    findResources() {
      load(loader);
      return loader;
    },
  };
}

export interface ReloadOptions {
  resolveProjectTrust?(request: { extensionsResult: Extensions }): Promise<boolean>;
}

export class DefaultResourceLoader implements ResourceLoader {
  private _options: LoaderOptions & { cwd: string; agentDir: string };
  private skills: Skills = { skills: [], diagnostics: [] };
  private prompts: Prompts = { prompts: [], diagnostics: [] };
  private themes: Themes = { themes: [], diagnostics: [] };
  private _files: AgentsFiles = { agentsFiles: [] };
  private _system: string | undefined;
  private _systemSource: Source | undefined;
  private _append: string[] = [];
  private _appendSources: Source[] = [];
  private _extensions: Extensions;
  private _trusted = true;

  constructor(options: LoaderOptions = {}) {
    this._options = withFolders(options);
    this._extensions = extensionsOf(options.extensionFactories ?? []);
  }

  static {
    load = (loader) => loader._load();
    events = ({ _options }) => _options.eventBus;
    loadAlone = (loader) => loader._loadExtensions();
  }

  /**
   * `resolveProjectTrust`, of newer versions, decides whether the project is trusted; until then
   * nothing of the project is read.
   */
  async reload({ resolveProjectTrust }: ReloadOptions = {}): Promise<void> {
    if (resolveProjectTrust) {
      this._trust(false);
      const extensionsResult = extensionsOf(this._options.extensionFactories ?? []);
      this._trust(await resolveProjectTrust({ extensionsResult }) === true);
    }
    const { settingsManager } = this._options;
    if (settingsManager instanceof SettingsManager) await settingsManager.reload();
    this._load();
    await this._loadExtensions();
  }

  private async _loadExtensions(): Promise<void> {
    const { additionalExtensionPaths = [], noExtensions, extensionFactories = [], extensionsOverride } = this._options;
    const places = { ...this._place, paths: additionalExtensionPaths, includeDefaults: !noExtensions };
    const before = this._extensions;
    this._extensions = await loadExtensions(places, extensionFactories, extensionsOverride);
    forget(before);
  }

  /** Without a manager the program reads the settings and needs to know whether the project is trusted. */
  private _trust(projectTrusted: boolean): void {
    const { cwd, agentDir, settingsManager } = this._options;
    if (settingsManager instanceof SettingsManager) return settingsManager.setProjectTrusted(projectTrusted);
    this._trusted = SettingsManager.create(cwd, agentDir, { projectTrusted }).isProjectTrusted();
  }

  private get _place(): { cwd: string; agentDir: string; settings?: unknown; projectTrusted: boolean } {
    const { cwd, agentDir, settingsManager } = this._options;
    const settings = SettingsManager.inEffect(settingsManager);
    return { cwd, agentDir, settings, projectTrusted: this._trusted && SettingsManager.trusts(settingsManager) };
  }

  private _find<T>(kind: "skills" | "prompts" | "themes", paths: string[] | undefined, includeDefaults: boolean): T {
    return hostSync<T>(`resources.${kind}`, { ...this._place, paths, includeDefaults });
  }

  private _findThemes(paths: string[] | undefined, includeDefaults: boolean): Themes {
    const found = this._find<{ themes: LoadedTheme[]; diagnostics: Diagnostic[] }>("themes", paths, includeDefaults);
    return { themes: found.themes.map(themeOf), diagnostics: found.diagnostics };
  }

  private _load(): void {
    const options = this._options;
    const { cwd, agentDir } = options;
    const skills = this._find<Skills>("skills", options.additionalSkillPaths, !options.noSkills);
    const overridden = options.skillsOverride?.(skills) ?? skills;
    checkSkills(overridden.skills, "DefaultResourceLoader: skillsOverride");
    this.skills = { ...overridden, skills: overridden.skills.map((skill) => withSource(skill, options)) };
    const prompts = this._find<Prompts>("prompts", options.additionalPromptTemplatePaths, !options.noPromptTemplates);
    const templates = options.promptsOverride?.(prompts) ?? prompts;
    this.prompts = { ...templates, prompts: templates.prompts.map((prompt) => withSource(prompt, options)) };
    const themes = this._findThemes(options.additionalThemePaths, !options.noThemes);
    this.themes = options.themesOverride?.(themes) ?? themes;
    const files = { agentsFiles: options.noContextFiles ? [] : loadProjectContextFiles({ cwd, agentDir }) };
    this._files = options.agentsFilesOverride?.(files) ?? files;
    const texts = hostSync<PromptTexts>("resources.promptTexts", this._place);
    const system = textOrFile(options.systemPrompt) ?? texts.system;
    this._system = options.systemPromptOverride ? options.systemPromptOverride(system) : system;
    const toAppend = [options.appendSystemPrompt ?? texts.append ?? []].flat();
    const append = toAppend.map((text) => textOrFile(text) as string);
    const named = (text: string | string[] | undefined, file: string | undefined) =>
      filesAmong([text ?? file ?? []].flat());
    [this._systemSource] = named(options.systemPrompt, texts.systemFile);
    this._appendSources = named(options.appendSystemPrompt, texts.appendFile);
    this._append = options.appendSystemPromptOverride?.(append) ?? append;
  }

  getExtensions(): Extensions {
    return this._extensions;
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
    return this._files;
  }

  getSystemPrompt(): string | undefined {
    return this._system;
  }

  /** The source file of the system prompt, if it has one. */
  getSystemPromptSource(): Source | undefined {
    return this._systemSource;
  }

  getAppendSystemPrompt(): string[] {
    return this._append;
  }

  getAppendSystemPromptSources(): Source[] {
    return this._appendSources;
  }

  /** Additions come after the resources that were found; those with a name that is taken are left out. */
  extendResources(
    { skillPaths = [], promptPaths = [], themePaths = [] }: { skillPaths?: Added; promptPaths?: Added; themePaths?: Added },
  ): void {
    const paths = (added: Added) => added.map(({ path }) => path);
    if (skillPaths.length > 0) {
      const { skills, diagnostics } = this._find<Skills>("skills", paths(skillPaths), false);
      addNew(this.skills.skills, skills);
      this.skills.diagnostics.push(...diagnostics);
    }
    if (promptPaths.length > 0) {
      const { prompts, diagnostics } = this._find<Prompts>("prompts", paths(promptPaths), false);
      addNew(this.prompts.prompts, prompts);
      this.prompts.diagnostics.push(...diagnostics);
    }
    if (themePaths.length > 0) {
      const { themes, diagnostics } = this._findThemes(paths(themePaths), false);
      addNew(this.themes.themes, themes);
      this.themes.diagnostics.push(...diagnostics);
    }
  }
}
