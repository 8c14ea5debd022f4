export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    let details = {};
    for (let i = 0; i < 2000; i++) details = { details };
    return { message: { customType: "deep", content: "deep", display: false, details } };
  });
