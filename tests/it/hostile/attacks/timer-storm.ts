// Doubles the number of timers in every tick.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    const storm = () => {
      setTimeout(storm, 0);
      setTimeout(storm, 0);
      setImmediate(() => process.nextTick(() => {}));
    };
    if (event.prompt === "attack") storm();
  });
