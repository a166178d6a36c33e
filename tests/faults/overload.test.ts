// Four times as many clients as a model server has places: the excess is told so at once, and who is admitted waits no longer than said.
import { expect, test } from "bun:test";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { chatScript, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startWatchedServer } from "../support/watched-server.ts";

const places = 16;
const answerMs = 40;
const runMs = long ? 15_000 : 350;
const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };

interface Seen {
  status: number;
  ms: number;
  retryAfter: string | null;
  code: string | undefined;
}

const percentile = (values: readonly number[], part: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? 0;

for (const queue of long ? [0, places] : [places]) {
  // hardening: F28
  test(`refuses excess quickly with 503 at a queue of ${queue}, within the model server's capacity and the admitted waits`, async () => {
    let [atWork, most] = [0, 0];
    const answer = chatScript();
    await using upstream = await startUpstream(async (request, response) => {
      most = Math.max(most, ++atWork);
      await Bun.sleep(answerMs);
      atWork--;
      await answer(request, response);
    });
    const yaml = upstreamYaml(upstream).replace(" }\n", `, max_concurrency: ${places} }\n`);
    await using server = await startWatchedServer({ yaml: `${yaml}limits: { queue: ${queue}, queue_seconds: 5 }\n` });
    /** Clients that ask again as soon as they are answered; who is refused pauses as long as an answer takes. */
    const load = async (clients: number): Promise<Seen[]> => {
      const seen: Seen[] = [];
      const endMs = performance.now() + runMs;
      await Promise.all(
        Array.from({ length: clients }, async () => {
          while (performance.now() < endMs) {
            const startedMs = performance.now();
            const response = await server.request("/v1/chat/completions", { body: chat });
            const answer = (await response.json()) as { error?: { code: string } };
            seen.push({
              status: response.status,
              ms: performance.now() - startedMs,
              retryAfter: response.headers.get("retry-after"),
              code: answer.error?.code,
            });
            if (response.status !== 200) await Bun.sleep(answerMs);
          }
        }),
      );
      return seen;
    };
    const took = (seen: readonly Seen[], isServed: boolean, part = 0.99) =>
      percentile(
        seen.filter(({ status }) => (status === 200) === isServed).map(({ ms }) => ms),
        part,
      );

    await load(places);
    const calm = await load(places);
    expect(calm.filter(({ status }) => status !== 200)).toEqual([]);
    await server.beginAnew();
    const over = await load(4 * (places + queue));
    const { stallMs } = await server.figures();
    const refused = over.filter(({ status }) => status !== 200);
    const served = over.length - refused.length;
    console.log(
      `queue ${queue}: ${calm.length} served at capacity, ${served} at four times, ${refused.length} refused; p99 ${took(calm, true).toFixed(0)} -> ${took(over, true).toFixed(0)} ms, refusals ${took(over, false, 0.5).toFixed(0)} ms (p99 ${took(over, false).toFixed(0)}), stall ${stallMs.toFixed(0)} ms`,
    );
    expect(new Set(refused.map(({ status, code }) => `${status} ${code}`))).toEqual(
      new Set(["503 service_unavailable"]),
    );
    for (const { retryAfter } of refused) expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
    expect(most).toBe(places);
    // The work that is done is that of a server which is just full.
    expect(served).toBeGreaterThan(calm.length * 0.5);
    // Who waits in the queue waits for about as many answers as it holds.
    const turns = 1 + queue / places;
    expect(took(over, true)).toBeLessThan(withinMs(2 * turns * took(calm, true)));
    // Sooner than any answer could come; the last of them have the same machine to share.
    expect(took(over, false, 0.5)).toBeLessThan(withinMs(answerMs));
    expect(took(over, false)).toBeLessThan(withinMs(2 * turns * took(calm, true)));
    await until(() => atWork === 0, "all is done");
    expect((await server.request("/v1/chat/completions", { body: chat })).status).toBe(200);
  }, 90_000);
}
