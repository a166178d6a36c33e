// Requests that combine features of a format, drawn from a fixed seed: each feature in turn, and up to two others with it.
import { ValueMaker } from "../../support/value-maker.ts";
import { type Backend, backends, type Models } from "../models.ts";
import type { Json } from "../written-replies.ts";
import { type RecordedRequest, recorded } from "./request.ts";

/** Changes a request so that it uses the feature. */
export type Feature = (body: Json) => void;

export interface Combination {
  seed: number;
  count: number;
  path: string;
  /** The smallest request for a model. */
  asking: (model: string) => Json;
  features: Readonly<Record<string, Feature>>;
  /** Features with which models call tools. */
  calling?: readonly string[];
  replies: readonly string[];
  backends?: readonly Backend[];
}

const callingReplies = ["call", "calls", "thoughtful"] as const;

export function combined(models: Models, combination: Combination): RecordedRequest[] {
  const { seed, count, path, asking, features, calling = [], replies } = combination;
  const servers = combination.backends ?? backends;
  const names = Object.keys(features);
  return Array.from({ length: count }, (_, number) => {
    const maker = new ValueMaker(seed + number);
    const chosen = new Set([names[number % names.length] as string]);
    while (chosen.size < 3 && maker.chance(0.5)) chosen.add(maker.pick(names));
    const backend = servers[(number + Math.floor(number / names.length)) % servers.length] as Backend;
    const calls = calling.some((name) => chosen.has(name)) && maker.chance(0.7);
    const reply = maker.pick(calls ? callingReplies : replies);
    const body = asking(models.on(backend, reply));
    for (const name of chosen) features[name]?.(body);
    const stream = body["stream"] === true ? ["stream"] : [];
    return recorded([...stream, ...chosen, "->", backend, reply].join(" "), { path, body });
  });
}

/** Requests with one value changed at random; the gateway refuses most of them. */
export function changed(models: Models, { seed, count, path, asking, features }: Combination): RecordedRequest[] {
  const names = Object.keys(features);
  return Array.from({ length: count }, (_, number) => {
    const maker = new ValueMaker(seed + number);
    const body = asking(models.on("chat", "plain"));
    const chosen = [maker.pick(names), maker.pick(names)];
    for (const name of chosen) features[name]?.(body);
    return recorded(`changed ${[...new Set(chosen)].join(" ")}`, { path, body: maker.changed(body) });
  });
}
