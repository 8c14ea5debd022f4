// Compaction without a model: it takes no time and costs nothing. The summary has the user's
// messages, word for word, the operations on files, and the beginning of the last response; entries
// that pi would keep are kept.
//
// A handler that returns nothing leaves the compaction to pi. `/compact <instructions>` does so
// here: a user who gives instructions wants a model to follow them.
import { convertToLlm, serializeConversation } from "@mariozechner/pi-coding-agent";
import type { ExtensionAPI, SessionBeforeCompactEvent } from "@mariozechner/pi-coding-agent";

type Messages = SessionBeforeCompactEvent["preparation"]["messagesToSummarize"];

const shorten = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)} ...` : text);

function requests(messages: Messages): string[] {
  return messages.filter(({ role }) => role === "user").map((message) =>
    // Converts every kind of content to text in one way.
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
