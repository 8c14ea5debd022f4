// Makes every JSON.stringify fail.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    JSON.stringify = () => {
      throw new Error("polluted");
    };
  });
