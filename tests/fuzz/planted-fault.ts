// A target with a fault behind three bytes, each of which is looked at once those before it were right: to see that it is found.
import type { Target } from "./targets.ts";

export const plantedFault: Target = {
  name: "planted-fault",
  files: ["tests/fuzz/planted-fault.ts"],
  seeds: ["..."],
  read(pieces) {
    const [a, b, c] = Buffer.concat(pieces).toString("latin1");
    if (a === "h") {
      if (b === "E") {
        if (c === "\x90") throw new TypeError("planted");
        return 2;
      }
      return 1;
    }
    return 0;
  },
};
