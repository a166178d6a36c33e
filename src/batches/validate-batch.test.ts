import { expect, test } from "bun:test";
import type { Batch, BatchLine } from "../domain/batches/batch.ts";
import { type Validated, validateBatch } from "./validate-batch.ts";

const claim = { id: "claim_1", leaseSeconds: 30 };
const limits = { bodyBytes: 10_000, depth: 64, messages: 100 };

async function validated(batch: Pick<Batch, "form" | "endpoint">, bodies: readonly object[]) {
  const lines: BatchLine[] = [];
  const text = bodies.map((body, i) =>
    JSON.stringify({ custom_id: `line-${i}`, method: "POST", url: batch.endpoint, body }),
  );
  const result: Validated = await validateBatch({ id: "batch_1", inputFileId: "file_1", ...batch } as Batch, claim, {
    work: {
      beginLines: async () => true,
      addLines: async (_, added) => lines.push(...added) > 0,
    },
    storedFiles: {
      async *readNamed() {
        yield Buffer.from(text.join("\n"));
      },
    },
    requestLimits: () => limits,
    mostRequests: 100,
  });
  return { result, models: lines.map(({ model }) => model) };
}

const messages = [{ role: "user", content: "Hi" }];

test("gives an invalid request in Anthropic's form a result of its own and keeps its model", async () => {
  const batch = { form: "anthropic", endpoint: "/v1/messages" } as const;
  const right = { model: "m-1", max_tokens: 5, messages };
  const { result, models } = await validated(batch, [right, { ...right, model: "m-2", max_tokens: -1 }, { messages }]);
  expect(models).toEqual(["m-1", "m-2", ""]);
  expect(result).toEqual({ models: ["m-1", "m-2", ""], total: 3 });
});

test("reports an invalid request in OpenAI's form as a fault of the batch", async () => {
  const batch = { form: "openai", endpoint: "/v1/chat/completions" } as const;
  const { result } = await validated(batch, [
    { model: "m-1", messages },
    { model: "m-2", messages, temperature: 9 },
  ]);
  expect(result).toMatchObject({ faults: [{ code: "invalid_request", line: 2 }] });
});
