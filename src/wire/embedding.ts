// Embeddings on the wire, and their two encodings.
import { z } from "zod";
import { inputShape, modelId } from "./parts.ts";

/** POST /embeddings. */
export const embeddingRequest = z
  .looseObject({
    model: modelId,
    input: inputShape.describe(
      "Text, several texts, token ids, or objects that the model server knows, as for images.",
    ),
    encoding_format: z
      .string()
      .min(1)
      .max(64)
      .nullish()
      .describe(
        "`float` (default) or `base64`: little-endian float32, as the openai SDKs ask for. Others as the model server has them.",
      ),
    dimensions: z.int().min(1).max(65_536).nullish().describe("Shorter vectors, where the model supports it."),
    user: z.string().max(1024).nullish().describe("Your own id of the end user; passed on."),
  })
  .meta({ id: "EmbeddingRequest" });

export const embeddingList = z
  .looseObject({
    id: z.string().describe("The model server's, or one of the gateway's."),
    object: z.literal("list"),
    data: z.array(
      z.looseObject({
        object: z.literal("embedding"),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.string()]).describe("Numbers, or base64 of little-endian float32."),
      }),
    ),
    model: z.string(),
    usage: z.looseObject({ prompt_tokens: z.int(), total_tokens: z.int() }),
  })
  .meta({ id: "EmbeddingList" });

/** Base64 of little-endian float32. */
export function encodeEmbedding(values: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(values.length * 4));
  for (const [i, value] of values.entries()) view.setFloat32(i * 4, value, true);
  return Buffer.from(view.buffer).toString("base64");
}

/** The numbers of a base64 embedding, or undefined where the text is not whole float32 values. */
export function decodeEmbedding(text: string): number[] | undefined {
  const bytes = Buffer.from(text, "base64");
  if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(i * 4, true));
}
