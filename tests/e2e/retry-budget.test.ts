// What servers get of requests that fail: one budget holds for everything that is asked again.
import { afterEach, expect, test } from "bun:test";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { startHeadrace } from "../support/headrace.ts";
import { isLook } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

type Fault = (res: ServerResponse) => void;

const refuses = (status: number, headers: Record<string, string> = {}): Fault => {
  return (res) => {
    // A busy server takes a moment to refuse a request.
    setTimeout(() => {
      res.writeHead(status, { "content-type": "application/json", ...headers });
      res.end('{"error":{"message":"no"}}');
    }, 20);
  };
};
const soon = { "retry-after": "1" };
const faults: Readonly<Record<string, Fault>> = {
  429: refuses(429),
  503: refuses(503),
  529: refuses(529),
  "429 with Retry-After": refuses(429, soon),
  "503 with Retry-After": refuses(503, soon),
  "529 with Retry-After": refuses(529, soon),
  500: refuses(500),
  reset: (res) => void res.destroy(),
  "a success without an answer": refuses(200),
  silence: () => {},
};

/** Counts the requests that it fails. */
async function failing(fault: Fault): Promise<{ url: string; asked(): number }> {
  let asked = 0;
  const server = createServer(async (req, res) => {
    let text = "";
    for await (const piece of req) text += piece;
    if (req.method === "GET" || isLook(text)) {
      res.end('{"object":"list","data":[]}');
      return;
    }
    asked++;
    fault(res);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.push({
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked: () => asked };
}

const ways = [
  { name: "one deployment", count: 1, fallback: false },
  { name: "three deployments and a fallback", count: 3, fallback: true },
] as const;
const requests = 60;

test.each(Object.keys(faults).flatMap((fault) => ways.map((way) => [fault, way.name] as const)))(
  "keeps sixty requests to servers that fail by %s within the retry budget, over %s",
  async (fault, name) => {
    const way = ways.find((one) => one.name === name) as (typeof ways)[number];
    const servers = await Promise.all(
      Array.from({ length: way.count + (way.fallback ? 1 : 0) }, () => failing(faults[fault] as Fault)),
    );
    const upstreams = servers.map(
      ({ url }, index) => `  - { name: up${index}, url: "${url}", discover: false, timeout_seconds: 1 }\n`,
    );
    const deployments = servers.map((_, index) => `{ upstream: up${index}, model: m }`);
    const own = deployments.slice(0, way.count).join(", ");
    const models = way.fallback
      ? `  - { id: m, fallbacks: [other], deployments: [${own}] }\n  - { id: other, deployments: [${deployments.at(-1)}] }\n`
      : `  - { id: m, deployments: [${own}] }\n`;
    const server = await startHeadrace({ yaml: `upstreams:\n${upstreams.join("")}models:\n${models}` });
    stack.push(server);
    const statuses = await Promise.all(
      Array.from({ length: requests }, async (_, index) => {
        await Bun.sleep((index * 500) / requests);
        const stream = index % 2 === 0;
        const response = await server.request("/v1/chat/completions", {
          body: { model: "m", messages: [{ role: "user", content: "Hi" }], stream },
        });
        await response.text();
        return response.status;
      }),
    );
    expect(statuses.filter((status) => status < 500)).toEqual([]);
    const asked = servers.reduce((sum, one) => sum + one.asked(), 0);
    expect(asked).toBeLessThanOrEqual(requests + 10 + requests / 5);
  },
);
