// Guardrails check an answer that a second server continues as they check an answer from one server.
import { describe, expect, test } from "bun:test";
import {
  basePrompt,
  breaks,
  ContinuingWorld,
  messages,
  question,
  type ServerPlan,
} from "../../../tests/support/continuing-servers.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { PatternSet } from "../../base/patterns/pattern-set.ts";
import type { Operation } from "../../domain/models/operation.ts";
import { rulesOf } from "../../domain/secret-rules/secret-rules.ts";
import type { Guardrails } from "../../inference/guarding.ts";
import { type Ask, Findings, type Rail, SideGuard } from "./side-guard.ts";

// The parts of the key are joined here so that secret scanners do not report this file. The key opens nothing.
const secret = `AKIA${"QRSTUVWXYZ234567"}`;
const other = `AKIA${"ABCDEFGHIJ765432"}`;

/** Texts with secrets, split as a tokenizer may split them, and a text with only the beginning of a secret. */
const tokens = [
  ...["The", " key", " is", " ", "AK", "IA", "QRST", "UVWX", "YZ23", "4567", ".", " Keep", " AKIA", " safe", ";"],
  ...[" the", " Grü", "ße", " one", ":", "\n", '"', other.slice(0, 1), other.slice(1, 19), other.slice(19), '"', "\n"],
  ...[" bye", " 🚀", "."],
];
const whole = tokens.join("");
const masked = whole.replace(secret, "[aws-access-key]").replace(other, "[aws-access-key]");

const masking: Rail = {
  settings: { name: "secrets", kind: "secrets", action: "mask", sides: ["answer"], rules: [] },
  patterns: new PatternSet(rulesOf([]).rules),
  ask: undefined,
};

function asking(ask: Ask): Rail {
  const service = {
    kind: "http",
    url: "http://nobody.test",
    token: null,
    local: false,
    timeoutMs: 1_000,
    otherwise: "block",
  } as const;
  return { settings: { name: "asked", action: "mask", sides: ["answer"], ...service }, patterns: undefined, ask };
}

function guardrails(rails: readonly Rail[]): Guardrails {
  return {
    begin(names, call) {
      const findings = new Findings(() => {});
      return {
        names,
        ofRequest: async () => undefined,
        answer: new SideGuard("answer", rails, call, findings),
        findings: findings.all,
      };
    },
  };
}

const formats: Record<string, [Operation, Record<string, unknown>, RegExp]> = {
  chat: ["chat", { messages, stream_options: { include_usage: true } }, /"content":"((?:[^"\\]|\\.)*)"/],
  completion: ["completion", { prompt: question, max_tokens: 1_000 }, /"text":"((?:[^"\\]|\\.)*)"/],
  responses: ["response", { input: question }, /output_text\.delta".*"delta":"((?:[^"\\]|\\.)*)"/],
  messages: ["message", { messages, max_tokens: 1_000 }, /text_delta","text":"((?:[^"\\]|\\.)*)"/],
};

async function answered(format: string, rails: readonly Rail[], plan: Partial<ServerPlan> = {}) {
  const [operation, body, piece] = formats[format] as (typeof formats)["chat"];
  const world = new ContinuingWorld({
    tokens,
    policies: { continuation: true, guardrails: ["them"] },
    deps: () => ({ guardrails: guardrails(rails) }),
    ...plan,
  });
  const text = await world.ask(body, operation);
  const pieces = text.split("\n\n").map((event) => JSON.parse(`"${piece.exec(event)?.[1] ?? ""}"`) as string);
  return { world, text, said: pieces.join("") };
}

/** Returns the end and the middle of each event. */
async function placesOf(format: string): Promise<number[]> {
  const { world } = await answered(format, [masking]);
  const events = tokens.length + 4;
  const length = world.served[0]?.length ?? 0;
  return Array.from({ length: 2 * events }, (_, at) => Math.floor((at * length) / (2 * events)));
}

describe.each(Object.keys(formats))("a client of %s", (format) => {
  test.each([
    ["patterns alone", [masking]],
    ["patterns, and a service that is asked", [masking, asking(async () => ({ action: "pass" }))]],
    ["a service that takes a while", [masking, asking(async () => Bun.sleep(1).then(() => ({ action: "pass" })))]],
  ] as const)(
    "delivers the whole masked text and no secret, wherever the server breaks off: %s",
    async (_which, rails) => {
      let continued = 0;
      for (const [index, atByte] of (await placesOf(format)).entries()) {
        const how = breaks[index % breaks.length] ?? "reset";
        const { world, text, said } = await answered(format, rails, { breaks: [{ atByte, how }] });
        const where = JSON.stringify({ atByte, how, text });
        expect([said, where]).toEqual([masked, where]);
        expect([text.includes("QRST") || text.includes(other.slice(1, 19)), where]).toEqual([false, where]);
        expect([world.ends.map(({ outcome }) => outcome), world.inFlight]).toEqual([["completed"], 0]);
        continued += world.courses[0]?.continuations?.length ?? 0;
        if (world.served[1] && world.served[1].begun > 0) {
          const { promptTokens, completionTokens } = world.computed;
          expect([world.ends[0]?.promptTokens, world.ends[0]?.completionTokens, where]).toEqual([
            ...[promptTokens, completionTokens],
            where,
          ]);
        }
      }
      expect(continued).toBeGreaterThan(40);
      expect(bufferedBytes.byKind.continued).toBe(0);
    },
    60_000,
  );
});

test("continues with the first server's original text, not with the masked one", async () => {
  const { world, said } = await answered("chat", [masking], { breaks: [{ atByte: 1_800, how: "reset" }] });
  expect(said).toBe(masked);
  const given = world.served[1]?.body["messages"] as { content: string }[];
  expect(whole.startsWith(given.at(-1)?.content ?? "?")).toBe(true);
  expect(world.served[1]?.promptTokens).toBeGreaterThan(basePrompt + 5);
});

test("lets nothing of the next server pass while a guardrail service is pending", async () => {
  const long = Array.from({ length: 120 }, (_, at) => ` word${at}.`);
  let calls = 0;
  const slow = asking(async (texts) => {
    calls++;
    await Bun.sleep(3);
    return { action: "mask", texts: texts.map(({ text }) => text.replaceAll("word", "WORD")) };
  });
  for (const atByte of [2_000, 3_000, 5_000, 9_000, 15_000]) {
    calls = 0;
    const plan: Partial<ServerPlan> = { tokens: long, breaks: [{ atByte, how: "reset" }] };
    const { said, world } = await answered("chat", [slow], plan);
    expect([atByte, said]).toEqual([atByte, long.join("").replaceAll("word", "WORD")]);
    expect(world.served).toHaveLength(2);
    expect(calls).toBeGreaterThan(3);
  }
});

test("ends a continued answer at blocked text like an uninterrupted one", async () => {
  const blocking: Rail = { ...masking, settings: { ...masking.settings, action: "block" } };
  const { world, said } = await answered("chat", [blocking], { breaks: [{ atByte: 700, how: "reset" }] });
  expect([said, world.served.length]).toEqual(["The key is ", 2]);
  expect(world.ends[0]).toMatchObject({ outcome: "completed", errorCode: "content_blocked" });
});

test("checks and delivers held text at the client's token limit", async () => {
  const pass = asking(async () => ({ action: "pass" }));
  for (const rails of [[masking], [masking, pass]]) {
    const world = new ContinuingWorld({
      tokens,
      policies: { continuation: true, guardrails: ["them"] },
      deps: () => ({ guardrails: guardrails(rails) }),
      breaks: [{ atByte: 165 * 4 + 100, how: "reset" }],
    });
    const text = await world.ask({ messages, max_tokens: 3 });
    const said = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join("");
    expect([said, text.includes('"finish_reason":"length"'), world.served.length]).toEqual(["The key is", true, 1]);
    expect(world.ends[0]).toMatchObject({ outcome: "completed", completionTokens: 3 });
  }
});
