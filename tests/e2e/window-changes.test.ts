// Quotas per window that are taken away, given again and changed while they are used.
import { expect, test } from "bun:test";
import { startHeadrace } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { chatScript, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

test("counts usage during a quota's removal once it is restored, like a new quota", async () => {
  await using upstream = await startUpstream(chatScript());
  await using server = await startHeadrace({ clock: manualClock(), yaml: upstreamYaml(upstream) });
  const call = async (method: string, path: string, body: object) => {
    const response = await server.request(path, { method, body });
    return (await response.json()) as { id: string; key: string };
  };
  const rolling = { unit: "requests", amount: 5, per: "5h" };
  const daily = { unit: "requests", amount: 6, per: "day" };
  const { id, key } = await call("POST", "/v1/keys", { name: "limited", quotas: [rolling] });
  const ask = async () => {
    const body = { model: "upstream-model", messages: [{ role: "user", content: "x" }] };
    const headers = { authorization: `Bearer ${key}` };
    const response = await server.request("/v1/chat/completions", { body, headers });
    await response.text();
    return response.status;
  };
  const give = (...quotas: object[]) => call("PATCH", `/v1/keys/${id}`, { quotas });
  expect([await ask(), await ask()]).toEqual([200, 200]);
  await give();
  for (let asked = 0; asked < 3; asked++) expect(await ask()).toBe(200);
  await give(rolling);
  expect(await ask()).toBe(403);
  await give(daily);
  expect([await ask(), await ask()]).toEqual([200, 403]);
  await give({ ...daily, amount: 8 }, rolling);
  expect(await ask()).toBe(403);
  await give({ ...daily, amount: 8 });
  expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 403]);
});
