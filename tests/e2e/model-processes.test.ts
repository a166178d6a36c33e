import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { joinNode, startGateway } from "../support/nodes.ts";
import { makeOperatorKey } from "../support/operator-key.ts";

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

describe("a model command of headrace.yaml", () => {
  test("starts a model command for the first request, streams, and stops it when another needs its memory", async () => {
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

  test("answers 503 with Retry-After, or uses another deployment, if a model command cannot start", async () => {
    const yaml = `engine:\n  commands:${command("bad", { args: "--fail 1" })}${command("good")}
models:
  - id: either
    deployments: [{ upstream: bad, model: bad }, { upstream: good, model: good }]`;
    await using server = await startHeadrace({ yaml });
    const refused = await ask(server, "bad");
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("15");
    expect(refused.text).toContain("The server of this model could not be started.");
    expect(refused.text).not.toContain("no such layer");
    expect((await ask(server, "either")).status).toBe(200);
  });

  test("restarts a killed model command for the next requests, which wait for the restart", async () => {
    await using server = await startHeadrace({ yaml: `engine:\n  commands:${command("one")}` });
    const first = JSON.parse((await ask(server, "one")).text) as { choices: { message: { content: string } }[] };
    const [, pid] = first.choices[0]?.message.content.split(" ") ?? [];
    process.kill(Number(pid), "SIGKILL");
    const next = await Promise.all([1, 2, 3].map(() => ask(server, "one")));
    expect(next.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(server.commands.find("one")?.figures()).toMatchObject({ starts: 2, failures: 1 });
  });

  test("restarts a hanging model command after a timed-out request, and keeps a slow one", async () => {
    const keys = "timeout_seconds: 1";
    const slow = command("slow", { args: "--answer-ms 3000", keys });
    const yaml = `engine:\n  commands:${command("one", { keys })}${slow}`;
    await using server = await startHeadrace({ yaml });
    expect((await ask(server, "one")).status).toBe(200);
    await fetch(`${server.commands.find("one")?.onDemand.serving?.url}/die?by=SIGSTOP`, {
      signal: AbortSignal.timeout(100),
    }).catch(() => {});
    expect([(await ask(server, "one")).status, (await ask(server, "slow")).status]).toEqual([504, 504]);
    await until(() => server.commands.find("one")?.figures().failures === 1, "its end is seen", 40_000);
    expect(server.commands.find("one")?.figures().failure).toStartWith("it hangs");
    expect(server.logged("model_failed")).toMatchObject([
      { upstream: "one", detail: expect.stringContaining("it hangs") },
    ]);
    expect((await ask(server, "one")).status).toBe(200);
    expect(server.commands.find("slow")?.figures()).toMatchObject({ state: "loaded", starts: 1, failures: 0 });
  });

  test("keeps requests for a loading model command waiting no longer than the queue's limit", async () => {
    const yaml = `limits: { queue_seconds: 1 }\nengine:\n  commands:${command("slow", { args: "--load-ms 60000" })}`;
    await using server = await startHeadrace({ yaml });
    const startedMs = performance.now();
    const late = await ask(server, "slow");
    expect(late.status).toBe(503);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(3_000));
    expect(stateOf(server, "slow")).toBe("loading");
  });

  test("loads a preloaded model command with the server", async () => {
    const yaml = `engine:\n  commands:${command("early", { keys: "preload: true" })}`;
    await using server = await startHeadrace({ yaml });
    await until(() => stateOf(server, "early") === "loaded", "it is loaded");
  });

  test("lets an operator load, see, pin, stop and read a model command over API, command line and metrics", async () => {
    const yaml = `engine:\n  memory: { ram: 6GB }\n  commands:${command("one")}${command("two")}`;
    await using server = await startHeadrace({ yaml });
    const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: await makeOperatorKey(server.dataDir) };
    const run = (...args: string[]) => runCommand(["models", ...args], { env: { ...env, LANG: "C.UTF-8" } });
    expect((await run("load", "one")).stdout).toMatch(/^one: (waiting|loading)\n$/);
    await until(() => stateOf(server, "one") === "loaded", "it is loaded");
    expect((await run("pin", "one")).stdout).toBe("one: loaded, pinned\n");
    const listed = await run("ps");
    expect(listed.stdout).toMatch(/^one +loaded, pinned +\S.* +ram 4\.00 GB +0 +0 +one$/m);
    expect(listed.stdout).toMatch(/^two +off /m);
    expect(listed.stderr).toContain("Set aside: ram 4.00 GB of 6.00 GB.");
    expect((await run("log", "one")).stdout).toContain("loading one, with 0 bytes and HF_TOKEN=none");
    const refused = await ask(server, "two");
    expect([refused.status, refused.text]).toEqual([503, expect.stringContaining("needs more memory than there is")]);
    const two = JSON.parse((await run("ps", "--json")).stdout).data[1];
    expect(two).toMatchObject({
      ...{ name: "two", state: "failed", starts: 0 },
      failure: "It needs 4.00 GB of RAM, and the budget has 6.00 GB, of which pinned models hold 4.00 GB.",
    });
    const metrics = await (
      await server.request("/metrics", { headers: { authorization: `Bearer ${env.HEADRACE_API_KEY}` } })
    ).text();
    expect(metrics).toContain('headrace_model_state{upstream="one",state="loaded"} 1');
    expect(metrics).toContain('headrace_model_memory_used_bytes{pool="ram"} 4000000000');
    const whole = await run("ps");
    expect(whole.stdout).toMatch(/^two +failed +\S/m);
    expect(whole.stderr).toContain("two failed: It needs 4.00 GB of RAM, and the budget has 6.00 GB");
    expect((await run("load", "two")).stdout).toStartWith("two: failed: It needs 4.00 GB of RAM");
    const both = { loaded: false, pinned: true };
    const contradiction = await server.request("/v1/admin/model-processes/two", {
      ...{ method: "PATCH", body: both, headers: { authorization: `Bearer ${env.HEADRACE_API_KEY}` } },
    });
    expect([contradiction.status, (await contradiction.json()).error.param]).toEqual([400, "pinned"]);
    await run("unpin", "one");
    await run("stop", "one");
    await until(() => stateOf(server, "one") === "off", "it is stopped");
    const missing = await run("load", "three");
    expect(missing.stderr).toContain("There is no model process");
    const made = await server.request("/v1/keys", { body: { name: "another" } });
    const { key } = (await made.json()) as { key: string };
    const headers = { authorization: `Bearer ${key}` };
    expect((await server.request("/v1/admin/model-processes", { headers })).status).toBe(403);
  });

  test("serves a node's model command through the gateway, which shows its state", async () => {
    await using gateway = await startGateway();
    const yaml = `engine:\n  memory: { ram: 6GB }\n  commands:${command("far", { args: "--load-ms 200" })}`;
    await using node = await joinNode(gateway, { yaml, models: ["far"] });
    const seen = async () => {
      const [row] = (await gateway.admin("GET", "/nodes")).body.data;
      return row.announced_models[0]?.process;
    };
    expect(await seen()).toBe("off");
    const messages = [{ role: "user", content: "hi" }];
    const answers = [1, 2, 3].map(() => gateway.request("/v1/chat/completions", { body: { model: "far", messages } }));
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
    await until(async () => (await seen()) === "loaded", "the gateway sees that it is loaded");
    const status = (await (await gateway.request("/v1/model-status")).json()) as { data: { deployments: unknown[] }[] };
    expect(status.data[0]?.deployments).toMatchObject([{ kind: "node", process: "loaded" }]);
    expect(node.commands.find("far")?.figures().starts).toBe(1);
  });
});
