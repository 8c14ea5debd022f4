// Rejects a thousand promises a second without handlers.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    const timer = setInterval(() => {
      for (let i = 0; i < 10; i++) Promise.reject(new Error("again"));
    }, 1);
    setTimeout(() => clearInterval(timer), 1000);
  });
