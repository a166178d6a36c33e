// Ways of choosing a replica that the simulation compares: three simple ones, and the gateway's own router.
import type { Clock } from "../../src/base/clock.ts";
import type { Engine } from "../../src/domain/models/engine.ts";
import type { Model } from "../../src/domain/models/model.ts";
import { PromptPrefix, stepAt } from "../../src/inference/routing/prompt-prefix.ts";
import { Router, type Workload } from "../../src/inference/routing/route.ts";
import type { Piece, Replica } from "./replica.ts";

export interface Choice {
  replica: number;
  /** The answer begins, and is whole. */
  began(): void;
  ended(answerTokens: number): void;
}

export interface Asked {
  prompt: readonly Piece[];
  promptTokens: number;
  account: string;
  /** Pieces up to what the user said first. */
  opening: number;
}

export interface Policy {
  choose(asked: Asked): Choice;
  /** Called every two seconds, as the gateway reads the metrics of servers. */
  look?(): void;
}

export interface World {
  gateways: number;
  replicas: readonly Replica[];
  clock: Clock;
  random(): number;
}

export const policyNames = ["round robin", "random", "least requests", "headrace without warmth", "headrace"] as const;
export type PolicyName = (typeof policyNames)[number];

export function makePolicy(name: PolicyName, world: World): Policy {
  const { replicas, random } = world;
  if (name === "headrace" || name === "headrace without warmth") return headrace(world, name === "headrace");
  let next = 0;
  const none = { began() {}, ended() {} };
  return {
    choose() {
      if (name === "round robin") return { replica: next++ % replicas.length, ...none };
      if (name === "random") return { replica: Math.floor(random() * replicas.length), ...none };
      let best = 0;
      let lot = 0;
      for (let i = 0; i < replicas.length; i++) {
        const [one, other] = [replicas[i]?.requests ?? 0, replicas[best]?.requests ?? 0];
        if (one < other) [best, lot] = [i, 1];
        // Each of those that have as few is as likely.
        else if (one === other && random() * ++lot < 1) best = i;
      }
      return { replica: best, ...none };
    },
  };
}

/** The router as the gateway has it; only hashes of texts are made of ids here, as there is no text. */
function headrace({ replicas, clock, random, gateways }: World, warm: boolean): Policy {
  const router = new Router(clock, random);
  router.gateways = () => gateways;
  const engines = replicas.map(
    (_, index): Engine => ({
      name: `replica-${index}`,
      redact: (text) => text,
      send: () => Promise.reject(new Error("not used")),
      models: async () => [],
    }),
  );
  const model: Model = {
    id: "m",
    created: 0,
    ownedBy: "",
    capabilities: undefined,
    context: undefined,
    environments: ["dev"],
    price: undefined,
    deployments: engines.map((engine) => ({ engine, model: "m", weight: 1 })),
  };
  return {
    choose(asked) {
      const prefix = warm ? prefixOf(asked) : undefined;
      const workload: Workload = {
        // Tokens are estimated from the length of the text, which is off by a fifth or so.
        promptTokens: asked.promptTokens * (0.8 + 0.4 * random()),
        maxCompletionTokens: undefined,
        width: 1,
        prefix: () => prefix,
      };
      const [first] = router.order(model, workload);
      if (!first) throw new Error("no replica");
      const assignment = router.begin(first, model, workload);
      return {
        replica: engines.indexOf(first.engine),
        began: () => assignment.answering(),
        ended: (answerTokens) => assignment.end(answerTokens),
      };
    },
    look() {
      for (const [index, replica] of replicas.entries()) {
        const engine = engines[index];
        const { waiting, requests, cacheUse } = replica;
        if (engine) router.said(engine, { running: requests - waiting, waiting, cacheUse, cacheHits: null });
      }
    },
  };
}

const charactersPerToken = 4;

/**
 * A prefix as `promptPrefixOf` makes it of a text: a hash at the same places, which stands for all that is before it.
 */
function prefixOf({ prompt, opening, account }: Asked): PromptPrefix {
  const prefix = new PromptPrefix();
  const salt = Bun.hash.xxHash32(account);
  let end = 0;
  let next = stepAt(0);
  for (const [index, { id, tokens }] of prompt.entries()) {
    const start = end;
    end += tokens * charactersPerToken;
    for (; next <= end && prefix.hashes.length < 256; next += stepAt(next)) {
      prefix.hashes.push(Math.imul(id ^ salt, 0x9e3779b1) ^ Math.imul(next - start, 0x85ebca6b));
      prefix.ends.push(next);
    }
    if (index < opening) {
      prefix.origin = Math.imul(id ^ salt, 0xc2b2ae35);
      prefix.originEnd = end;
    }
  }
  prefix.length = end;
  prefix.continues = prompt.length > opening;
  return prefix;
}
