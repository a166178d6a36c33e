// Tests a stream that a quota may end: it waits for the quota's decision, loses nothing meanwhile, and ends once.
import { expect, test } from "bun:test";
import { done, event, Source, settled, start, withoutReportedUsage } from "../../../tests/support/relay.ts";
import type { StreamStop } from "./relay-options.ts";

const mark = { stopped_by: "quota", quota: {} } as const;

/** A quota of `tokens` tokens that a test can raise later; if the test adds no tokens, the quota is used up. */
function quotaOf(tokens: number) {
  let most = tokens;
  let isAsked = false;
  let answer = (_: number) => {};
  const stop: StreamStop = {
    isFar: ({ deliveredPieces }, bytes) => deliveredPieces + bytes / 4 < most,
    check({ deliveredPieces }) {
      if (deliveredPieces < most) return "goes_on";
      if (isAsked) return "spent";
      return new Promise<void>((resolve) => {
        answer = (more) => {
          most += more;
          isAsked = more === 0;
          resolve();
        };
      });
    },
    mark: () => mark,
  };
  return { stop, says: (more: number) => answer(more) };
}

const words = (text: string) => [...text].map((letter) => event(letter)).join("");
const said = (text: string) => [...text.matchAll(/"content":"(.*?)"/g)].map(([, word]) => word).join("");

test.each(["send", "sendPiece"] as const)(
  "holds events back while a quota is asked for more, then delivers them and their end (%s)",
  async (send) => {
    const source = new Source();
    const { stop, says } = quotaOf(3);
    const { client, ends } = start(source.dispatched, { ...withoutReportedUsage, stop });
    source[send](words("abcde"));
    expect([said(client.text), source.paused]).toEqual(["abc", true]);
    source[send](words("fg").slice(0, 150));
    source[send](words("fg").slice(150) + event("", "stop") + done);
    source.end();
    says(3);
    await settled();
    expect([said(client.text), source.paused, ends.length]).toEqual(["abcdef", true, 0]);
    says(100);
    await settled();
    expect(said(client.text)).toBe("abcdefg");
    expect([client.text.endsWith(done), client.ended, source.paused]).toEqual([true, true, false]);
    expect(ends).toMatchObject([{ error: undefined, observed: { deliveredPieces: 7 } }]);
  },
);

test("ends the stream like a token limit and stops the engine if the quota has no more", async () => {
  const source = new Source();
  const { stop, says } = quotaOf(3);
  const started = start(source.dispatched, { ...withoutReportedUsage, stop });
  source.send(words("abcde"));
  says(0);
  await settled();
  const [, last, mine] = started.client.text.split("\n\n").slice(-4);
  expect(JSON.parse(last?.slice("data: ".length) ?? "")).toMatchObject({
    choices: [{ index: 0, delta: {}, finish_reason: "length" }],
    headrace: mark,
  });
  expect([mine, said(started.client.text), started.client.ended]).toEqual(["data: [DONE]", "abc", true]);
  expect([source.cancelled, started.aborts, source.ends]).toEqual([true, 1, [false]]);
  expect(started.ends).toMatchObject([{ error: undefined, observed: { deliveredPieces: 3 } }]);
});

test("does not stop an answer by quota once it has given its finish reason", async () => {
  const source = new Source();
  const { stop } = quotaOf(2);
  const { client } = start(source.dispatched, { ...withoutReportedUsage, stop });
  source.send(event("a") + event("b", "stop"));
  source.send(done);
  await settled();
  expect([client.text.includes("headrace"), client.text.endsWith(done)]).toEqual([false, true]);
});

test("ends a stream that waits for a quota if its client leaves or its engine breaks off", async () => {
  for (const leave of [true, false]) {
    const source = new Source();
    const { stop, says } = quotaOf(1);
    const { left: clientGone, ends, client } = start(source.dispatched, { ...withoutReportedUsage, stop });
    source.send(words("ab"));
    if (leave) clientGone.cancel();
    else source.fail(new Error("gone"));
    says(10);
    await settled();
    expect([ends.length, said(client.text).startsWith("a"), said(client.text).includes("b")]).toEqual([1, true, false]);
  }
});
