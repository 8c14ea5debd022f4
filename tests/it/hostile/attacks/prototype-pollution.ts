// Changes prototypes that all extensions use.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Object.prototype.get = () => "polluted";
    Object.prototype.extension = 99;
    Object.prototype.block = true;
    Array.prototype[Symbol.iterator] = function* () {
      yield "polluted";
    };
    Array.prototype.map = () => ["polluted"];
    Array.prototype.push = () => 0;
    Map.prototype.get = Map.prototype.set = () => "polluted";
    Set.prototype.has = () => true;
    Promise.race = () => new Promise(() => {});
    JSON.parse = () => ({ polluted: true });
    JSON.stringify = () => '{"polluted":true}';
    throw new Error("polluted");
  });
