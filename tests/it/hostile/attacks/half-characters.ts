// No attack either: `slice` cuts characters in two, and many extensions use it.
const half = "\u{1f600}".slice(0, 1);

export default (pi) =>
  pi.on("before_agent_start", (event, ctx) => {
    if (event.prompt !== "attack") return;
    ctx.ui.notify(`half ${half} \\ud800`);
    pi.appendEntry("half", { [half]: half });
    pi.setSessionName(half);
    return { systemPrompt: event.systemPrompt + half };
  });
