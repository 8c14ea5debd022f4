// What the options of pi-ai's functions put into a request. In the scope of `ASK` in
// `providers_wire.rs`, which has `cases`, `claims` and `google`.
const CLAUDE = "claude-sonnet-4-5";
const ADAPTS = "claude-opus-4-6";
const BEDROCK = "us.anthropic.claude-sonnet-4-20250514-v1:0";
const codex = "h." + claims + ".s";

// What every API may be told, by both kinds of functions.
for (const call of ["stream", "streamSimple"]) {
  for (const cacheRetention of ["none", "short", "long"]) {
    const options = { cacheRetention, metadata: { user_id: "u1", other: 1 } };
    const add = (name, provider, id, path = "") => {
      cases[`${name}${cacheRetention}${call}`] = [provider, id, options, "k", path, call];
    };
    add("claude", "anthropic", CLAUDE, "/api.anthropic.com");
    add("gateway", "anthropic", CLAUDE);
    add("openai", "openai", "gpt-5.4", "/api.openai.com/v1");
    add("azure", "azure-openai-responses", "gpt-5.2");
    add("bedrock", "amazon-bedrock", BEDROCK);
  }
}

// Simple functions look at none of these, and the others at those of their API.
const ofAll = {
  interleavedThinking: false, thinkingDisplay: "omitted", thinkingEnabled: true, serviceTier: "flex",
  reasoningSummary: "detailed", textVerbosity: "low", thinking: { enabled: true, budgetTokens: 7 },
  region: "eu-west-1", requestMetadata: { a: "b" }, promptMode: "reasoning", azureDeploymentName: "mine",
  unheard: { of: 1 },
};
const every = [
  ["claude", "anthropic", CLAUDE],
  ["openai", "openai", "gpt-5.4"],
  ["codex", "openai-codex", "gpt-5.4", codex],
  ["azure", "azure-openai-responses", "gpt-5.2"],
  ["google", "google", "gemini-2.5-pro"],
  ["cli", "google-gemini-cli", "gemini-2.5-pro", google],
  ["mistral", "mistral", "magistral-medium-latest"],
  ["bedrock", "amazon-bedrock", BEDROCK],
  ["groq", "groq", "openai/gpt-oss-120b"],
];
for (const [name, provider, id, key = "k"] of every) {
  for (const call of ["stream", "streamSimple"]) {
    const add = (what, options, more) => {
      cases[name + what + call] = [provider, id, options, key, "", call, more];
    };
    add("ofall", ofAll);
    // The results of calls without the tools, and a text that is empty beside a picture:
    // Anthropic refuses it, so that we leave it out there.
    const emptyText = name !== "claude";
    add("notools", {}, { tools: undefined, emptyText });
    add("emptytools", {}, { tools: [], emptyText });
  }
}

const told = (name, provider, id, options, key = "k") => {
  cases["told" + name] = [provider, id, options, key, "", "stream"];
};
told("adapts", "anthropic", ADAPTS, { thinkingEnabled: true });
told("adaptshidden", "anthropic", ADAPTS, {
  thinkingEnabled: true, effort: "max", thinkingDisplay: "omitted", interleavedThinking: false,
});
told("hidden", "anthropic", CLAUDE, { thinkingEnabled: true, thinkingDisplay: "omitted", interleavedThinking: true });
told("thinksnot", "anthropic", "claude-3-5-haiku-20241022", { thinkingEnabled: true, temperature: 1 });
told("summary", "openai", "gpt-5.4", { reasoningSummary: "concise", serviceTier: "flex" });
told("summaryhigh", "openai", "gpt-5.4", {
  reasoningSummary: "detailed", reasoningEffort: "high", serviceTier: "priority",
});
told("nullsummary", "openai", "gpt-5.4", { reasoningSummary: null, reasoningEffort: "low" });
told("summarynot", "openai", "gpt-4.1", { reasoningSummary: "concise" });
told("azuresummary", "azure-openai-responses", "gpt-5.2", {
  reasoningSummary: "detailed", azureApiVersion: "2025-01-01", azureDeploymentName: "mine",
});
told("azureurl", "azure-openai-responses", "gpt-5.2", { azureBaseUrl: "URL/toldazureurl/its/", azureResourceName: "not" });
told("codexall", "openai-codex", "gpt-5.4", {
  reasoningEffort: "low", reasoningSummary: "off", serviceTier: "priority", textVerbosity: "high",
}, codex);
told("codexnone", "openai-codex", "gpt-5.4", { reasoningEffort: "none" }, codex);
told("codexsummary", "openai-codex", "gpt-5.4", { reasoningSummary: "detailed" }, codex);
for (const [name, provider, key] of [["gemini", "google", "k"], ["cli", "google-gemini-cli", google]]) {
  told(name + "budget", provider, "gemini-2.5-pro", { thinking: { enabled: true, budgetTokens: -1 } }, key);
  told(name + "level", provider, "gemini-3-pro-preview", {
    thinking: { enabled: true, level: "LOW", budgetTokens: 300 },
  }, key);
  told(name + "thinks", provider, "gemini-2.5-pro", { thinking: { enabled: true } }, key);
  told(name + "off", provider, "gemini-2.5-flash", { thinking: { enabled: false, budgetTokens: 300 } }, key);
  told(name + "effort", provider, "gemini-2.5-pro", { reasoningEffort: "low" }, key);
}
told("mistralmode", "mistral", "devstral-medium-latest", { promptMode: "reasoning" });
told("mistraleffort", "mistral", "magistral-medium-latest", { reasoningEffort: "none" });
told("bedrockthinks", "amazon-bedrock", BEDROCK, { reasoning: "low" });
told("bedrockhidden", "amazon-bedrock", BEDROCK, {
  reasoning: "low", thinkingDisplay: "omitted", interleavedThinking: false, maxTokens: 9000,
});
told("bedrockgov", "amazon-bedrock", BEDROCK, { reasoning: "high", thinkingDisplay: "omitted", region: "us-gov-west-1" });
told("bedrockbearer", "amazon-bedrock", BEDROCK, { bearerToken: "bt", requestMetadata: { team: "a" } });
told("bedrockprofile", "amazon-bedrock", BEDROCK, { profile: "other" });
