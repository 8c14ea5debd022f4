// Changes the user, so that the program could not write the session.
const calls = {
  setuid: [4321],
  setgid: [4321],
  seteuid: [4321],
  setegid: [4321],
  setgroups: [[4321]],
  initgroups: ["nobody", 4321],
};

export default (pi) =>
  pi.on("before_agent_start", (event, ctx) => {
    if (event.prompt !== "attack") return;
    for (const [name, args] of Object.entries(calls)) {
      try {
        process[name](...args);
      } catch (error) {
        ctx.ui.notify(error.message);
      }
    }
    // Calls that change nothing are allowed.
    process.setuid(process.getuid());
    process.setegid(process.getegid());
  });
