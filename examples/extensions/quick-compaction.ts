// Compaction that asks no model: it takes no time and costs nothing. The summary has
// what the user wanted, word for word, what was done to which files, and how the last
// answer began; what pi would keep as it is, is kept.
//
// Returning nothing would leave the compaction to pi. `/compact <instructions>` does
// so here: whoever says what matters wants a model to read it.
import { convertToLlm, serializeConversation } from "@mariozechner/pi-coding-agent";
import type { ExtensionAPI, SessionBeforeCompactEvent } from "@mariozechner/pi-coding-agent";

type Messages = SessionBeforeCompactEvent["preparation"]["messagesToSummarize"];

const shorten = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)} ...` : text);

function requests(messages: Messages): string[] {
  return messages.filter(({ role }) => role === "user").map((message) =>
    // One way to a text for every kind of content.
    serializeConversation(convertToLlm([message])).replace(/^\[User\]: /, "")
  );
}

const section = (title: string, lines: string[]) =>
  lines.length > 0 ? [`## ${title}`, ...lines.map((line) => `- ${shorten(line, 500)}`), ""] : [];

export default function (pi: ExtensionAPI) {
  pi.on("session_before_compact", ({ preparation, customInstructions }) => {
    if (customInstructions) return;
    const { messagesToSummarize, turnPrefixMessages, previousSummary, fileOps, firstKeptEntryId, tokensBefore } =
      preparation;
    const messages = [...messagesToSummarize, ...turnPrefixMessages];
    const changed = [...new Set([...fileOps.written, ...fileOps.edited])].sort();
    const read = [...fileOps.read].filter((file) => !changed.includes(file)).sort();
    const last = messages.findLast(({ role }) => role === "assistant");
    const lines = [
      ...(previousSummary ? [previousSummary, ""] : []),
      ...section("What the user asked for", requests(messages)),
      ...section("Files that were changed", changed),
      ...section("Files that were read", read),
      ...(last ? section("The last answer", [serializeConversation(convertToLlm([last])).replace(/^\[Assistant\]: /, "")]) : []),
    ];
    return {
      compaction: {
        summary: lines.join("\n").trim(),
        firstKeptEntryId,
        tokensBefore,
        details: { readFiles: read, modifiedFiles: changed },
      },
    };
  });
}
