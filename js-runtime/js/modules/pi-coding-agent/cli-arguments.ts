// `parseArgs`: parses a command line of pi as the original does. The program parses its own without
// this; extensions use it for command lines that they build.

export interface Args {
  messages: string[];
  fileArgs: string[];
  /** Options that are not pi's own, which may be flags of extensions. */
  unknownFlags: Map<string, boolean | string>;
  diagnostics: { type: "warning" | "error"; message: string }[];
  [option: string]: unknown;
}

/** Options without a value, with the member that they set. */
const FLAG_OPTIONS: Record<string, [member: string, value: boolean]> = {
  "--help": ["help", true],
  "-h": ["help", true],
  "--version": ["version", true],
  "-v": ["version", true],
  "--continue": ["continue", true],
  "-c": ["continue", true],
  "--resume": ["resume", true],
  "-r": ["resume", true],
  "--no-session": ["noSession", true],
  "--no-tools": ["noTools", true],
  "-nt": ["noTools", true],
  "--no-builtin-tools": ["noBuiltinTools", true],
  "-nbt": ["noBuiltinTools", true],
  "--no-extensions": ["noExtensions", true],
  "-ne": ["noExtensions", true],
  "--no-mcp": ["noMcp", true],
  "--no-skills": ["noSkills", true],
  "-ns": ["noSkills", true],
  "--no-prompt-templates": ["noPromptTemplates", true],
  "-np": ["noPromptTemplates", true],
  "--no-themes": ["noThemes", true],
  "--no-context-files": ["noContextFiles", true],
  "-nc": ["noContextFiles", true],
  "--verbose": ["verbose", true],
  "--approve": ["projectTrustOverride", true],
  "-a": ["projectTrustOverride", true],
  "--no-approve": ["projectTrustOverride", false],
  "-na": ["projectTrustOverride", false],
  "--offline": ["offline", true],
};

/** Options with a value. Without one they count as unknown. */
const VALUE_OPTIONS: Record<string, string> = {
  "--provider": "provider",
  "--model": "model",
  "--api-key": "apiKey",
  "--system-prompt": "systemPrompt",
  "--session": "session",
  "--session-id": "sessionId",
  "--fork": "fork",
  "--session-dir": "sessionDir",
  "--export": "export",
};

/** Options that may be repeated. */
const REPEATED: Record<string, string> = {
  "--append-system-prompt": "appendSystemPrompt",
  "--extension": "extensions",
  "-e": "extensions",
  "--skill": "skills",
  "--prompt-template": "promptTemplates",
  "--theme": "themes",
};

/** Options whose value is a list separated by commas. */
const LISTS: Record<string, string> = {
  "--models": "models",
  "--tools": "tools",
  "-t": "tools",
  "--exclude-tools": "excludeTools",
  "-xt": "excludeTools",
};

/** Options for which a missing or invalid value is an error; the last member lists the valid ones. */
const CHOICE_OPTIONS: Record<string, [member: string, kind: string, values: string[]]> = {
  "--mode": ["mode", "mode", ["text", "json", "rpc"]],
  "--tui-mode": ["tuiMode", "TUI mode", ["regular", "fullscreen"]],
};

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

const listed = (value: string) => value.split(",").map((name) => name.trim()).filter((name) => name.length > 0);

/** The error about an invalid list of tools. */
function toolsProblem(tools: string[]): string | undefined {
  const modifiers = tools.filter((tool) => /^[+-]/.test(tool));
  if (modifiers.length === 0) return undefined;
  if (modifiers.length < tools.length) return "tool names cannot be mixed with +name or -name entries";
  const pattern = modifiers.find((entry) => entry.includes("*"));
  return pattern && `+name and -name entries take exact tool names, not patterns: ${pattern}`;
}

/** Joins values to "a, b, or c". */
function alternatives(values: string[]): string {
  const [last, ...others] = [...values].reverse();
  return others.length === 1 ? `${others[0]} or ${last}` : `${others.reverse().join(", ")}, or ${last}`;
}

export function parseArgs(args: string[]): Args {
  const result: Args = { messages: [], fileArgs: [], unknownFlags: new Map(), diagnostics: [] };
  const rest = [...args];
  const diagnose = (type: "warning" | "error", message: string) => result.diagnostics.push({ type, message });
  const positional = (text: string) =>
    text.startsWith("@") ? result.fileArgs.push(text.slice(1)) : result.messages.push(text);
  const shift = () => rest.shift() as string;

  /** Returns `false` for an option that is not in the tables above. */
  const option = (name: string): boolean => {
    const next = rest[0];
    const isMissing = next === undefined || next.startsWith("-");
    if (Object.hasOwn(FLAG_OPTIONS, name)) {
      const [member, value] = FLAG_OPTIONS[name];
      result[member] = value;
    } else if (Object.hasOwn(CHOICE_OPTIONS, name)) {
      const [member, kind, values] = CHOICE_OPTIONS[name];
      if (isMissing) diagnose("error", `${name} requires ${alternatives(values)}`);
      else if (values.includes(next)) result[member] = shift();
      else diagnose("error", `Invalid ${kind} "${shift()}". Valid values: ${values.join(", ")}`);
    } else if (name === "--use-theme") {
      if (isMissing) diagnose("error", "--use-theme requires a theme name");
      else result.useTheme = shift();
    } else if (name === "--name" || name === "-n") {
      if (next === undefined) diagnose("error", "--name requires a value");
      else result.name = shift();
    } else if (name === "--print" || name === "-p") {
      result.print = true;
      const isMessage = next !== undefined && !next.startsWith("@") && (!isMissing || next.startsWith("---"));
      if (isMessage) result.messages.push(shift());
    } else if (name === "--list-models") {
      result.listModels = isMissing || next.startsWith("@") ? true : shift();
    } else if (next === undefined) {
      return false;
    } else if (Object.hasOwn(VALUE_OPTIONS, name)) {
      result[VALUE_OPTIONS[name]] = shift();
    } else if (Object.hasOwn(REPEATED, name)) {
      ((result[REPEATED[name]] ??= []) as string[]).push(shift());
    } else if (Object.hasOwn(LISTS, name)) {
      const list = listed(shift());
      const problem = LISTS[name] === "tools" ? toolsProblem(list) : undefined;
      if (problem) diagnose("error", `${name}: ${problem}`);
      else result[LISTS[name]] = list;
    } else if (name === "--thinking") {
      const level = shift();
      if (LEVELS.includes(level)) result.thinking = level;
      else diagnose("warning", `Invalid thinking level "${level}". Valid values: ${LEVELS.join(", ")}`);
    } else {
      return false;
    }
    return true;
  };

  while (rest.length > 0) {
    const word = shift();
    if (word === "--") {
      rest.splice(0).forEach(positional);
    } else if (option(word)) {
      continue;
    } else if (word.startsWith("--")) {
      const [name, ...value] = word.slice(2).split("=");
      const next = rest[0];
      if (value.length > 0) result.unknownFlags.set(name, value.join("="));
      else if (next === undefined || next.startsWith("-") || next.startsWith("@")) result.unknownFlags.set(name, true);
      else result.unknownFlags.set(name, shift());
    } else if (word.startsWith("-")) {
      diagnose("error", `Unknown option: ${word}`);
    } else {
      positional(word);
    }
  }
  return result;
}
