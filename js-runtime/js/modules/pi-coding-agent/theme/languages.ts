// Determines the language of a file by its name.

/** Languages, each with its file extensions. */
const LANGUAGES: readonly (readonly string[])[] = [
  ["typescript", "ts", "tsx"],
  ["javascript", "js", "jsx", "mjs", "cjs"],
  ["python", "py"],
  ["ruby", "rb"],
  ["rust", "rs"],
  ["go", "go"],
  ["java", "java"],
  ["kotlin", "kt"],
  ["swift", "swift"],
  ["c", "c", "h"],
  ["cpp", "cpp", "cc", "cxx", "hpp"],
  ["csharp", "cs"],
  ["php", "php"],
  ["bash", "sh", "bash", "zsh"],
  ["fish", "fish"],
  ["powershell", "ps1"],
  ["sql", "sql"],
  ["html", "html", "htm"],
  ["css", "css"],
  ["scss", "scss"],
  ["sass", "sass"],
  ["less", "less"],
  ["json", "json"],
  ["yaml", "yaml", "yml"],
  ["toml", "toml"],
  ["xml", "xml"],
  ["markdown", "md", "markdown"],
  ["dockerfile", "dockerfile"],
  ["makefile", "makefile"],
  ["cmake", "cmake"],
  ["lua", "lua"],
  ["perl", "perl"],
  ["r", "r"],
  ["scala", "scala"],
  ["clojure", "clj"],
  ["elixir", "ex", "exs"],
  ["erlang", "erl"],
  ["haskell", "hs"],
  ["ocaml", "ml"],
  ["vim", "vim"],
  ["graphql", "graphql"],
  ["protobuf", "proto"],
  ["hcl", "tf", "hcl"],
];

const BY_EXTENSION: ReadonlyMap<string, string> = new Map(
  LANGUAGES.flatMap(([language, ...extensions]) =>
    extensions.map((extension): [string, string] => [extension, language])
  ),
);

export function getLanguageFromPath(filePath: string): string | undefined {
  return BY_EXTENSION.get(filePath.split(".").at(-1)?.toLowerCase() ?? "");
}
