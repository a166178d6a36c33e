// Tests bills, quotas, changes by operators, and text ends for a request whose answer another server continues.
import { describe, expect, test } from "bun:test";
import {
  basePrompt,
  breaks,
  ContinuingWorld,
  messages,
  question,
  type ServerPlan,
  turn,
} from "../../../tests/support/continuing-servers.ts";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { seeded } from "../../../tests/support/seeded.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { systemClock } from "../../base/clock.ts";
import type { StopLease } from "../../domain/limits/limits.ts";
import type { OverflowPolicy } from "../../domain/models/policies/overflow.ts";
import { LearnedLengths } from "../../policy/learned-lengths.ts";
import { Overflow } from "../overflow/overflow.ts";
import { OverflowSpending } from "../overflow/overflow-spending.ts";
import { goesOnFrom, isWithinStop } from "./continued-body.ts";

const tokens = ["One", " two", " three", " four", " five", " six", " seven", " eight", " nine", " ten"];
const whole = tokens.join("");
const eventBytes = 165;
/** Returns a break after `count` tokens, in the middle of the next event. */
const behind = (count: number) => ({ atByte: (count + 1) * eventBytes + 60, how: "reset" }) as const;

async function asked(world: ContinuingWorld, body: Record<string, unknown> = {}) {
  const text = await world.ask({ messages, ...body });
  const said = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join("");
  return { text, said };
}

async function until(world: ContinuingWorld, served: number): Promise<void> {
  while (world.served.length < served) await turn();
}

describe("the charge of a continued answer to the overflow", () => {
  const rate = (perToken: number) => ({ input: perToken / 1000, output: perToken / 1000 });
  const most = 1_000_000;
  const overflow: OverflowPolicy = {
    to: [
      { upstream: "a", cost: rate(1), costOf: null },
      { upstream: "b", cost: rate(1_000), costOf: null },
    ],
    ...{ afterSeconds: null, promptTokensAbove: null, hours: null, mostNanoUsdPerRequest: null },
    spend: { nanoUsd: most, per: "day" },
  };

  function billed(plan: Partial<ServerPlan>) {
    let spent = 0;
    const store = {
      async change(changes: readonly { nanoUsd: number }[]) {
        return changes.map(({ nanoUsd }) => {
          spent += nanoUsd;
          return { made: true, spentNanoUsd: spent };
        });
      },
      spent: async () => spent,
    };
    const spending = new OverflowSpending({ store, clock: systemClock, log: { warn() {} } });
    const world = new ContinuingWorld({
      tokens,
      servers: ["a", "b"],
      policies: { continuation: true, overflow },
      deps: ({ router, capacity }) => ({
        overflow: new Overflow({ router, capacity, spending, lengths: new LearnedLengths(), clock: systemClock }),
      }),
      ...plan,
    });
    return { world, spent: () => spent };
  }

  test("charges each server's own usage at its own cost", async () => {
    const { world, spent } = billed({ breaks: [behind(4)] });
    const { said } = await asked(world, { max_tokens: 100 });
    expect([said, world.served.map(({ name }) => name)]).toEqual([whole, ["a", "b"]]);
    await Bun.sleep(1);
    const ofFirst = decodedRequest({ messages }).promptTokens + 4;
    const ofSecond = basePrompt + 4 + (tokens.length - 4 + 1);
    expect(spent()).toBe(ofFirst + ofSecond * 1_000);
  });

  test("settles the charge if no server continues the answer", async () => {
    const { world, spent } = billed({ breaks: [behind(4)], continues: undefined });
    await asked(world, { max_tokens: 100 });
    await Bun.sleep(1);
    expect([world.served.length, spent()]).toEqual([1, decodedRequest({ messages }).promptTokens + 4]);
  });

  test("charges the prompt of a server that broke off before its first token", async () => {
    const { world, spent } = billed({ breaks: [{ atByte: 0, how: "close" }] });
    expect((await asked(world, { max_tokens: 100 })).said).toBe(whole);
    await Bun.sleep(1);
    expect(spent()).toBe(decodedRequest({ messages }).promptTokens + (basePrompt + tokens.length + 1) * 1_000);
  });
});

/** Returns a lease of `all` tokens that no other request uses. */
function stopOf(all: number): StopLease {
  const none = { nanoUsd: Number.POSITIVE_INFINITY, mostNanoUsd: Number.POSITIVE_INFINITY, tightest: undefined };
  return { tokens: all, mostTokens: all, ...none, grow() {} };
}

describe("a hard-stop quota during a continuation", () => {
  test("ends the answer at the break if the quota cannot pay the prompt again", async () => {
    const { promptTokens } = decodedRequest({ messages });
    const world = new ContinuingWorld({
      tokens,
      stop: stopOf(promptTokens + 4 + promptTokens + 3),
      breaks: [behind(4)],
    });
    const { text, said } = await asked(world);
    expect([said, world.served.length]).toEqual([tokens.slice(0, 4).join(""), 1]);
    expect(text).toContain('"stopped_by":"quota"');
    expect(world.ends[0]).toMatchObject({ outcome: "completed", completionTokens: 4, promptTokens });
  });

  test("continues the answer if the quota can pay the prompt again", async () => {
    const { promptTokens } = decodedRequest({ messages });
    const all = 2 * promptTokens + 4 + basePrompt + tokens.length + 30;
    const world = new ContinuingWorld({ tokens, stop: stopOf(all), breaks: [behind(4)] });
    expect((await asked(world)).said).toBe(whole);
  });

  test("stops a restarted answer at the quota if nothing had arrived before", async () => {
    const { promptTokens } = decodedRequest({ messages });
    // The quota is checked from the first event on, and the first server breaks off before that event is complete.
    const plan = { tokens, stop: stopOf(promptTokens + 3), breaks: [{ atByte: 40, how: "reset" }] } as const;
    const { text, said } = await asked(new ContinuingWorld(plan));
    expect(text).toContain('"stopped_by":"quota"');
    expect(said).toBe(tokens.slice(0, 3).join(""));
  });
});

describe("configuration changes during an answer", () => {
  test("does not continue at a removed deployment", async () => {
    const world = new ContinuingWorld({ tokens, servers: ["a", "b"], breaks: [behind(4)] });
    const answer = asked(world);
    await until(world, 1);
    const first = world.served[0]?.name ?? "";
    const deployments = world.model.deployments.filter(({ engine }) => engine.name === first);
    world.model = { ...world.model, deployments };
    expect((await answer).said).toBe(whole);
    expect(world.served.map(({ name }) => name)).toEqual([first, first]);
  });

  test("keeps the price that was valid when the answer began", async () => {
    const price = { input: 1, output: 1 };
    const world = new ContinuingWorld({ tokens, price, breaks: [behind(4)] });
    const answer = asked(world);
    await until(world, 1);
    world.model = { ...world.model, price: { input: 50, output: 50 } };
    await answer;
    const [end] = world.ends;
    expect(world.served).toHaveLength(2);
    expect(end?.nanoUsd).toBe(1_000 * ((end?.promptTokens ?? 0) + (end?.completionTokens ?? 0)));
  });
});

test("counts continued tokens by the later servers' prompts if the first server sent nothing", async () => {
  const pairs = Array.from({ length: tokens.length / 2 }, (_, at) => ({
    content: tokens.slice(2 * at, 2 * at + 2).join(""),
  }));
  const world = new ContinuingWorld({
    ...{ tokens, deltas: pairs, countsTokens: true },
    breaks: [
      { atByte: 0, how: "close" },
      { atByte: 500, how: "reset" },
    ],
  });
  await asked(world, { max_tokens: 100 });
  const [, , last] = world.served;
  expect(last?.begun).toBeGreaterThan(1);
  expect(world.ends[0]).toMatchObject({ promptTokens: 2 * basePrompt + (last?.begun ?? 0), estimated: false });
});

test("does not continue an answer that ends with the beginning of a stop sequence", async () => {
  const world = new ContinuingWorld({ tokens, breaks: [behind(4)] });
  const { text } = await asked(world, { stop: [" four five"] });
  expect([world.served.length, text.includes('"error"')]).toEqual([1, true]);
});

test.each([
  ["a\n", "\n\n", true],
  ["a", "\n\n", false],
  ["EN", ["x", "END"], true],
  ["END", "END", false],
  ["a", undefined, false],
  ["a", [], false],
])("finds whether the beginning of %j is the end of %j: %j", (text, stop, within) => {
  expect(isWithinStop({ stop }, text)).toBe(within);
});

describe("whether a server can continue exactly", () => {
  const user = { role: "user", content: question };
  const begun = { role: "assistant", content: "On" };
  test.each([
    ["by a last message", "last_message", [user], "text ", true, true],
    ["by a flag", "flag", [user], "text", true, true],
    ["by a flag, behind white space", "flag", [user], "text\n", true, false],
    ["by a flag, where the text begins with white space", "flag", [user], "\ntext", true, false],
    ["by a flag, within what templates take for a thought", "flag", [user], "<think>\nHm", true, false],
    ["by a flag, behind what templates take for a thought", "flag", [user], "Hm</think>So", true, false],
    ["with what its client began, where the first one did, too", "last_message", [user, begun], "e", true, true],
    ["with what its client began, where the first one did not", "last_message", [user, begun], "e", false, false],
    ["with what its client began, by a flag", "flag", [user, begun], "e", true, false],
  ] as const)("%s", (_which, how, asking, text, prefilled, goesOn) => {
    expect(goesOnFrom({ messages: asking }, text, how, prefilled)).toBe(goesOn);
  });
});

test("settles once and holds nothing whenever a client leaves or the server shuts down", async () => {
  const random = seeded(7);
  const outcomes = new Set<string>();
  for (let round = 0; round < 300; round++) {
    const breakOff = () => ({ atByte: Math.floor(random() * 2_000), how: breaks[Math.floor(random() * 4)] ?? "reset" });
    const world = new ContinuingWorld({
      ...{ tokens, servers: ["a", "b"], breaks: [breakOff(), breakOff()], countsTokens: random() < 0.5 },
      ...(random() < 0.3 && { stop: stopOf(60 + Math.floor(random() * 60)) }),
    });
    const body = random() < 0.5 ? { messages, max_tokens: 50 } : { messages };
    const answer = world.ask(body);
    for (let turns = Math.floor(random() * 30); turns > 0; turns--) await turn();
    if (random() < 0.5) world.clientGone.cancel();
    else world.deps.stopping.begin();
    await Promise.race([answer, Bun.sleep(10)]);
    for (let turns = 0; turns < 5; turns++) await turn();
    expect([round, world.ends.length, world.courses.length]).toEqual([round, 1, 1]);
    expect([round, world.inFlight, bufferedBytes.byKind.continued]).toEqual([round, 0, 0]);
    outcomes.add(`${world.ends[0]?.outcome}`);
  }
  expect([...outcomes].sort()).toEqual(["cancelled", "completed", "failed"]);
});
