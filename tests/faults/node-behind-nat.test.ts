// A node that reaches out and cannot be reached: it serves a gateway, its link is cut in the middle of an answer, and comes back.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import OpenAI from "openai";
import { until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { makeNattedNetwork, type NattedNetwork, noNetworkReason } from "../support/natted-network.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { makeWorkspace, type Program, type StartedServer, startProgram, startServer } from "../support/program.ts";

const reason = noNetworkReason();
const modelPort = 18080;
const fixture = join(import.meta.dir, "..", "fixtures", "slow-model-server.ts");
const backWithinMs = withinMs(5_000);

describe.skipIf(reason !== undefined)(`behind a router that translates addresses${reason ? `: ${reason}` : ""}`, () => {
  const stack: (Disposable | AsyncDisposable)[] = [];
  const gatewayPlace = makeWorkspace();
  const nodePlace = makeWorkspace();
  let network: NattedNetwork;
  let gateway: StartedServer;
  let node: Program;
  let client: OpenAI;

  beforeAll(async () => {
    network = makeNattedNetwork();
    stack.push(gatewayPlace, nodePlace, network);
    const port = await freePort();
    const url = `http://${network.outsideAddress}:${port}`;
    const flags = ["--mode", "production", "--host", network.outsideAddress, "--public-url", url];
    gateway = await startServer(gatewayPlace, [...flags, "--port", String(port)]);
    stack.push(gateway);
    const models = Bun.spawn([...network.inside, process.execPath, fixture, String(modelPort)], { stdout: "ignore" });
    stack.push({ [Symbol.dispose]: () => models.kill() });
    const yaml = `upstreams:\n  - name: slow\n    url: http://127.0.0.1:${modelPort}/v1\n`;
    writeFileSync(join(nodePlace.directory, "headrace.yaml"), yaml);

    const operator = await makeOperatorKey(gatewayPlace.dataDir);
    const answer = await fetch(`${url}/v1/admin/node-tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
      body: JSON.stringify({ approved_models: ["slow-model"], environments: ["live"] }),
    });
    const { token } = (await answer.json()) as { token: string };
    const own = ["--port", "0", "--data-dir", nodePlace.dataDir, "--no-discover-local", "--no-demo"];
    const command = ["node", "join", url, "--token", token, "--name", "behind", ...own];
    node = startProgram(nodePlace, command, {}, network.inside);
    stack.push(node);
    client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.key, maxRetries: 0 });
    await until(() => isServed(client), "the node's model is served", 30_000);
  }, 60_000);

  afterAll(async () => {
    for (const part of stack.reverse()) {
      if (Symbol.asyncDispose in part) await part[Symbol.asyncDispose]();
      else part[Symbol.dispose]();
    }
  }, 60_000);

  test("answers and meters a streamed request through a node behind NAT", async () => {
    const before = usage().length;
    const { text, error } = await ask(20);
    expect(error).toBeUndefined();
    expect(text.split(" ")).toHaveLength(20);
    await until(() => usage().length > before, "it is in the ledger");
    expect(usage().at(-1)).toEqual({
      outcome: "completed",
      upstream: "behind",
      prompt_tokens: 5,
      completion_tokens: 20,
    });
  });

  test("reports a cut node connection as an error event, books the delivered part, and reconnects within 5 s", async () => {
    const before = usage().length;
    const answer = ask(2_000, (pieces) => {
      if (pieces === 20) network.cut();
    });
    const { text, error } = await answer;
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(String(error)).toMatch(/node|connection/i);
    const delivered = text.split(" ").length;
    expect(delivered).toBeGreaterThanOrEqual(19);
    await until(() => usage().length > before, "it is in the ledger");
    const record = usage().at(-1);
    expect(record).toMatchObject({ outcome: "failed", upstream: "behind" });
    expect(record?.completion_tokens).toBeGreaterThanOrEqual(delivered - 1);
    expect(record?.completion_tokens).toBeLessThan(2_000);

    network.mend();
    const mendedMs = performance.now();
    await until(() => answersNow(client), "the node answers again", 20_000);
    const backMs = performance.now() - mendedMs;
    console.log(`back after ${Math.round(backMs)} ms`);
    expect(backMs).toBeLessThan(backWithinMs);
  }, 60_000);

  /** Streams an answer of so many pieces, telling how many have come. */
  async function ask(count: number, onPiece: (pieces: number) => void = () => {}) {
    let text = "";
    let pieces = 0;
    try {
      const stream = await client.chat.completions.create({
        model: "slow-model",
        messages: [{ role: "user", content: "Speak." }],
        max_tokens: count,
        stream: true,
      });
      for await (const { choices } of stream) {
        const piece = choices[0]?.delta.content;
        if (!piece) continue;
        text += piece;
        onPiece(++pieces);
      }
      return { text, error: undefined };
    } catch (error) {
      return { text, error };
    }
  }

  function usage() {
    using db = new Database(join(gatewayPlace.dataDir, "headrace.db"), { readonly: true });
    const rows = db.query(
      "SELECT outcome, upstream, prompt_tokens, completion_tokens FROM usage_records ORDER BY at, request_id",
    );
    return rows.all() as { outcome: string; upstream: string; prompt_tokens: number; completion_tokens: number }[];
  }
});

async function isServed(client: OpenAI): Promise<boolean> {
  const { data } = await client.models.list();
  return data.some(({ id }) => id === "slow-model");
}

async function answersNow(client: OpenAI): Promise<boolean> {
  const messages = [{ role: "user" as const, content: "Speak." }];
  return await client.chat.completions.create({ model: "slow-model", messages, max_tokens: 1 }).then(
    () => true,
    () => false,
  );
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
