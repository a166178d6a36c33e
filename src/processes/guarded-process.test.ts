// A stopped command leaves nothing behind, not even ended processes.
import { expect, test } from "bun:test";
import { join } from "node:path";

const keeper = join(import.meta.dir, "..", "..", "tests", "support", "orphan-keeper.ts");

test.skipIf(process.platform !== "linux")(
  "leaves no ended process of a stopped command in the system's table",
  async () => {
    const child = Bun.spawn([process.execPath, keeper], { stdout: "pipe" });
    expect(await new Response(child.stdout).text()).toBe("0\n");
    expect(await child.exited).toBe(0);
  },
);
