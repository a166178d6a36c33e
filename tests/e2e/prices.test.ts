// What vendors tell of usage becomes what is charged, to the last billionth: on the ledger, in reports, in quotas, whole and streamed.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { operated } from "../support/operated.ts";
import { type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { failing, kinds, paths, usualTime, vendorBody, vendorScript, vendors } from "../support/vendor-usage.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let clock: ManualClock;
beforeAll(async () => {
  clock = manualClock(Date.parse(usualTime) / 1000);
  upstream = await startUpstream(vendorScript);
  const ofKind = (kind: string) => `  - { name: ${kind}, url: "${upstream.url}", discover: false, apis: [${kind}] }\n`;
  const models = Object.entries({ ...vendors, ...failing }).map(
    ([id, { kind, price }]) =>
      `  - { id: ${id}, price: ${price}, deployments: [{ upstream: ${kind}, model: ${id} }] }\n`,
  );
  server = await startHeadrace({ clock, yaml: `upstreams:\n${kinds.map(ofKind).join("")}models:\n${models.join("")}` });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

type Json = Record<string, unknown>;
const nano = (usd: number) => Math.round(usd * 1e9);

async function requestOf(id: string): Promise<Json> {
  await server.governance.ledger.flush();
  return (await (await server.request(`/v1/requests/${id}`)).json()) as Json;
}

/** A key with quotas in USD that nothing of this test spends. */
async function keyWith(more: object): Promise<Record<string, string>> {
  const body = { name: "Agent", scopes: ["chat:write", "usage:read"], ...more };
  const { key } = (await (await server.request("/v1/keys", { body })).json()) as { key: string };
  return { authorization: `Bearer ${key}` };
}

interface Account {
  quota: { spend: { used: number } };
  quotas: { used: number }[];
}

/** Nano-USD that quotas have as used: of the account's month, then those of the key. */
async function usedBy(headers: Record<string, string>): Promise<number[]> {
  const { quota, quotas } = (await (await server.request("/v1/account", { headers })).json()) as Account;
  return [quota.spend.used, ...quotas.map(({ used }) => used)].map(nano);
}

const roomy = [
  { unit: "usd", amount: 100, per: "month" },
  { unit: "usd", amount: 100, per: "5h" },
];

describe.each(Object.entries(vendors))(
  "usage as reported by %s",
  (model, { kind, usage, cost, tokens, at = usualTime }) => {
    const expected = {
      prompt_tokens: tokens.prompt,
      completion_tokens: tokens.completion,
      cached_tokens: tokens.cached ?? 0,
      cache_write_tokens: tokens.written ?? 0,
      reasoning_tokens: tokens.reasoning ?? 0,
      ...{ cost, estimated: false, capped: false },
    };

    test.each(kinds)(
      "charges vendor usage to the last digit, in ledger and quotas, for a request in %s",
      async (asked) => {
        clock.advance(Math.max(0, Date.parse(at) - clock.nowSeconds() * 1000));
        const headers = await keyWith({ quotas: roomy });
        const [before = 0] = await usedBy(headers);
        for (const [earlier, stream] of [false, true].entries()) {
          const answer = await server.request(paths[asked], {
            ...{ headers, body: vendorBody(asked, model, tokens.prompt, stream) },
          });
          const said = await answer.text();
          expect([answer.status, answer.status === 200 ? "" : said]).toEqual([200, ""]);
          const id = answer.headers.get("x-request-id") ?? "";
          expect({ stream, ...(await requestOf(id)) }).toMatchObject({ stream, ...expected });
          const spent = (earlier + 1) * nano(cost);
          expect(await usedBy(headers)).toEqual([before + spent, spent, spent]);
          // What the client is told is the vendor's own where the format is.
          if (asked === kind && !stream) expect((JSON.parse(said) as { usage: object }).usage).toMatchObject(usage);
        }
      },
    );
  },
);

test("reports the sum of all vendors' usage and each of its parts", async () => {
  await server.governance.ledger.flush();
  const report = await server.request("/v1/usage?bucket=month&group_by=model&limit=100");
  const { data } = (await report.json()) as { data: Record<string, number>[] };
  for (const [model, { cost, tokens }] of Object.entries(vendors)) {
    const row = data.find((one) => String(one["model"]) === model);
    // Three formats, whole and streamed.
    expect(row).toMatchObject({
      requests: 6,
      prompt_tokens: 6 * tokens.prompt,
      cached_tokens: 6 * (tokens.cached ?? 0),
      cache_write_tokens: 6 * (tokens.written ?? 0),
      reasoning_tokens: 6 * (tokens.reasoning ?? 0),
      cost: (6 * nano(cost)) / 1e9,
    });
  }
  const csv = await server.request("/v1/usage?bucket=month&group_by=model", { headers: { accept: "text/csv" } });
  const [head = "", ...lines] = (await csv.text()).trim().split("\n");
  expect(head.trim().split(",").slice(-10, -6)).toEqual([
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "unpriced_requests",
  ]);
  expect(lines.find((line) => line.includes("anthropic-fast"))).toContain("0.5418336");
  const place = head.split(",").indexOf("cost");
  const costs = lines.map((line) => nano(Number(line.split(",")[place])));
  const charged = Object.values(vendors).map(({ cost }) => 6 * nano(cost));
  expect(costs.toSorted()).toEqual(charged.toSorted());
});

test("charges a USD quota, and does not refuse a request whose prompt is likely cached", async () => {
  const headers = await keyWith({ monthly_spend: 0.05 });
  const ask = async () => {
    const asked = { ...vendorBody("chat", "openai-chat", 10_000, false), max_tokens: 500 };
    return (await server.request(paths.chat, { body: asked, headers })).status;
  };
  // Each costs 0.0103. At full rates the fourth would need 0.025 where 0.0191 are left.
  expect([await ask(), await ask(), await ask(), await ask(), await ask()]).toEqual([200, 200, 200, 200, 403]);
});

test.each([0, 1])(
  "reports the ledger's value in the refusal of a windowed quota with %i billionths left",
  async (spare) => {
    const { cost } = vendors["vllm"] ?? { cost: 0 };
    const limit = (4 * nano(cost) + spare) / 1e9;
    const headers = await keyWith({ quotas: [{ unit: "usd", amount: limit, per: "week" }] });
    const body = { ...vendorBody("chat", "vllm", 100, false), max_tokens: 10 };
    const ask = () => server.request(paths.chat, { body, headers });
    for (let i = 0; i < 4; i++) expect((await ask()).status).toBe(200);
    const refused = await ask();
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { quota: { unit: "usd", used: (4 * nano(cost)) / 1e9, limit, reserved: 0 } },
    ]);
  },
);

test("shows a vendor's own cost figure to operators alone", async () => {
  const answer = await server.request(paths.chat, { body: vendorBody("chat", "xai-chat", 10_120, false) });
  await answer.text();
  const id = answer.headers.get("x-request-id") ?? "";
  expect((await requestOf(id))["usage_details"]).toEqual({});
  const { operator } = await operated(server);
  const headers = { authorization: `Bearer ${operator}` };
  const shown = await (await server.request(`/v1/requests/${id}`, { headers })).json();
  expect(shown).toMatchObject({ usage_details: { billed: 0.0232856 } });
});

test.each(kinds)(
  "charges a failed stream by the usage reported with its failure, for a request in %s",
  async (asked) => {
    const [[model = "", vendor] = []] = Object.entries(failing);
    const { prompt = 0, completion = 0 } = vendor?.tokens ?? {};
    const answer = await server.request(paths[asked], { body: vendorBody(asked, model, prompt, true) });
    expect(await answer.text()).toContain("The model failed.");
    expect(await requestOf(answer.headers.get("x-request-id") ?? "")).toMatchObject({
      ...{
        outcome: "failed",
        prompt_tokens: prompt,
        completion_tokens: completion,
        cost: vendor?.cost,
        estimated: false,
      },
    });
  },
);
