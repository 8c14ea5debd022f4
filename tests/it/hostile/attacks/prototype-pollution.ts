// Changes prototypes that all extensions use.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    (Object.prototype as any).get = () => "polluted";
    (Object.prototype as any).extension = 99;
    (Object.prototype as any).block = true;
    Array.prototype[Symbol.iterator] = function* () {
      yield "polluted";
    };
    Array.prototype.map = (): any[] => ["polluted"];
    Array.prototype.push = () => 0;
    Map.prototype.get = Map.prototype.set = (): any => "polluted";
    Set.prototype.has = () => true;
    Promise.race = () => new Promise(() => {});
    JSON.parse = () => ({ polluted: true });
    JSON.stringify = () => '{"polluted":true}';
    throw new Error("polluted");
  });
