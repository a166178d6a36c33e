// Describes a GGUF file in a separate worker process, because a broken file may crash the engine.
import { z } from "zod";
import { selfCommand } from "../../installation/paths.ts";
import { SetupError } from "./setup-error.ts";

const inspection = z.object({
  architecture: z.string(),
  name: z.string().nullish(),
  /** The context length of the training, in tokens. */
  context: z.number().int().positive().nullish(),
  embeddingLength: z.number().nullish(),
  parameters: z.number().nullish(),
  quantization: z.string().nullish(),
  capabilities: z.object({
    ...{ chat: z.boolean(), completion: z.boolean(), embeddings: z.boolean() },
    ...{ rerank: z.exactOptional(z.boolean()), tokenize: z.boolean() },
  }),
  tools: z.boolean(),
});

export type ModelInspection = z.infer<typeof inspection>;

const refusal = z.object({ error: z.string() });

/** The time limit of an inspection: enough to read a header from a slow disk on a busy machine. */
const inspectTimeoutMs = 60_000;

/** Returns what the file says about itself. Rejects with a SetupError if the engine cannot use the file. */
export async function inspectModel(path: string, signal: AbortSignal): Promise<ModelInspection> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(inspectTimeoutMs)]);
  const child = Bun.spawn([...selfCommand("run-model"), "--inspect", path], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    signal: limit,
    killSignal: "SIGKILL",
  });
  const [output, complaint] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  signal.throwIfAborted();
  if (limit.aborted) throw new SetupError(`The engine did not finish reading ${path} in ${inspectTimeoutMs / 1000} s.`);
  const answer = lastJson(output);
  const inspected = inspection.safeParse(answer);
  if (inspected.success) return inspected.data;
  const refused = refusal.safeParse(answer);
  const reason = refused.success ? refused.data.error : lastLine(complaint) || `it ended with code ${child.exitCode}`;
  throw new SetupError(`The engine cannot use the file: ${reason}`);
}

function lastJson(output: string): unknown {
  try {
    return JSON.parse(lastLine(output));
  } catch {
    return undefined;
  }
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
