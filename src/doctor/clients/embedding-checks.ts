// Tests embeddings in both encodings. By default, SDKs ask for base64 and decode it without a check.

import { decodeEmbedding } from "../../wire/embedding.ts";
import { type ClientCheck, refusedAsOptional, type Surroundings, statusFaults, type Verdict } from "./client-check.ts";
import { base64Embeddings, faultsOf, floatEmbeddings } from "./shapes.ts";
import type { Wire } from "./wire.ts";

/** The allowed difference of numbers: for rounding to 32 bits, and between two computations of the same input. */
const tolerance = 1e-3;

export function embeddingChecks({ wire, embeddings }: Surroundings): ClientCheck[] {
  if (!embeddings) return [];
  const body = { model: embeddings.id, input: ["Good morning", "Good evening"] };
  const requestText = (more: Record<string, string>) => `POST /embeddings ${JSON.stringify({ ...body, ...more })}`;
  return [
    {
      name: "float",
      sent: requestText({ encoding_format: "float" }),
      run: async (signal) => (await floats(wire, { ...body, encoding_format: "float" }, signal)).verdict,
    },
    {
      name: "without encoding_format",
      sent: requestText({}),
      run: async (signal) => (await floats(wire, body, signal)).verdict,
    },
    {
      name: "base64",
      sent: requestText({ encoding_format: "base64" }),
      run: (signal) => sameInBoth(wire, body, signal),
    },
  ];
}

async function floats(
  wire: Wire,
  body: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<{ verdict: Verdict; vectors: number[][] }> {
  const answer = await wire.ask("/embeddings", signal, { body });
  const refused = refusedAsOptional(answer, "embeddings");
  if (refused) return { verdict: refused, vectors: [] };
  const shape = [...statusFaults(answer, 200), ...faultsOf(floatEmbeddings, answer.json)];
  if (shape.length > 0) return { verdict: { seen: "", wrong: shape }, vectors: [] };
  const { data } = answer.json as { data: { index: number; embedding: number[] }[] };
  const vectors = data.map(({ embedding }) => embedding);
  const length = vectors[0]?.length ?? 0;
  const wrong = [
    ...orderFaults(data),
    ...(vectors.every((one) => one.length === length) ? [] : ["the vectors differ in length"]),
  ];
  return { verdict: { seen: `2 vectors of ${length} numbers`, wrong }, vectors };
}

async function sameInBoth(wire: Wire, body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Verdict> {
  const { verdict, vectors } = await floats(wire, { ...body, encoding_format: "float" }, signal);
  if (verdict.isSkipped || verdict.wrong.length > 0)
    return { ...verdict, wrong: [], isSkipped: true, seen: verdict.seen || "nothing to compare with" };
  const answer = await wire.ask("/embeddings", signal, { body: { ...body, encoding_format: "base64" } });
  const shape = [...statusFaults(answer, 200), ...faultsOf(base64Embeddings, answer.json)];
  if (shape.length > 0) return { seen: "", wrong: shape };
  const { data } = answer.json as { data: { index: number; embedding: string }[] };
  const decoded = data.map(({ embedding }) => decodeEmbedding(embedding) ?? []);
  const [length = 0, other = 0] = [vectors[0]?.length, decoded[0]?.length];
  const wrong = orderFaults(data);
  if (length !== other) wrong.push(`${other} numbers in base64, ${length} as numbers`);
  else if (!vectors.every((vector, at) => isSame(vector, decoded[at] ?? [])))
    wrong.push("the numbers differ from those without base64");
  return { seen: `the same ${length} numbers as little-endian float32`, wrong };
}

function orderFaults(data: readonly { index: number }[]): string[] {
  return data.every(({ index }, at) => index === at) ? [] : ["index does not count from 0 in order"];
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  const scale = Math.max(...a.map(Math.abs), 1e-9);
  return a.length === b.length && a.every((value, at) => Math.abs(value - (b[at] ?? 0)) <= tolerance * scale);
}
