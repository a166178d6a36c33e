import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";

const program = join(import.meta.dir, "..", "support", "model-server.ts");

/** A command of headrace.yaml, with further keys below it. */
function command(name: string, { args = "", keys = "" } = {}): string {
  return `
    - name: ${name}
      command: ${process.execPath} ${program} --port \${PORT} --model ${name} ${args}
      models: [${name}]
      memory: { ram: 4GB }
      parallel: 2
${keys.replaceAll(/^/gm, "      ")}`;
}

async function ask(server: TestServer, model: string, more: Record<string, unknown> = {}) {
  const body = { model, messages: [{ role: "user", content: "hi" }], ...more };
  const response = await server.request("/v1/chat/completions", { body });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

function stateOf(server: TestServer, name: string) {
  return server.commands.find(name)?.figures().state;
}

describe("a command of headrace.yaml", () => {
  test("answers the first request once it is started, streams, and is stopped when another needs its memory", async () => {
    const yaml = `engine:\n  memory: { ram: 6GB }\n  commands:${command("one", { args: "--load-ms 200" })}${command("two")}`;
    await using server = await startHeadrace({ yaml });
    const listed = (await (await server.request("/v1/models")).json()) as { data: { id: string }[] };
    expect(listed.data.map(({ id }) => id)).toEqual(["one", "two"]);
    const answers = await Promise.all([1, 2, 3, 4].map(() => ask(server, "one")));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers[0]?.text).toContain('"content":"one ');
    const streamed = await ask(server, "two", { stream: true });
    expect(streamed.text).toContain('"content":"two"');
    expect([stateOf(server, "one"), stateOf(server, "two")]).toEqual(["off", "loaded"]);
  });

  test("that cannot be started is answered with 503 and when to try again, and another deployment stands in", async () => {
    const yaml = `engine:\n  commands:${command("bad", { args: "--fail 1" })}${command("good")}
models:
  - id: either
    deployments: [{ upstream: bad, model: bad }, { upstream: good, model: good }]`;
    await using server = await startHeadrace({ yaml });
    const refused = await ask(server, "bad");
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("15");
    expect(refused.text).toContain("The model server `bad` could not be started.");
    expect(refused.text).not.toContain("no such layer");
    expect((await ask(server, "either")).status).toBe(200);
  });

  test("keeps requests waiting no longer than the queue does", async () => {
    const yaml = `limits: { queue_seconds: 1 }\nengine:\n  commands:${command("slow", { args: "--load-ms 60000" })}`;
    await using server = await startHeadrace({ yaml });
    const startedMs = performance.now();
    const late = await ask(server, "slow");
    expect(late.status).toBe(503);
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(stateOf(server, "slow")).toBe("loading");
  });

  test("is loaded with the server where it is to be preloaded", async () => {
    const yaml = `engine:\n  commands:${command("early", { keys: "preload: true" })}`;
    await using server = await startHeadrace({ yaml });
    await until(() => stateOf(server, "early") === "loaded", "it is loaded");
  });
});
