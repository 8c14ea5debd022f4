// Deletes `Reflect.apply` instead of replacing it.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    delete Reflect.apply;
  });
