// Tokens a second of the built-in engine, with the demo model, through the gateway.
import { startHeadrace } from "./headrace.ts";
import type { LoadGenerator } from "./load.ts";

export interface EngineFigure {
  /** Streamed chats at once. */
  chats: number;
  requests: number;
  tokens: number;
  tokensPerSecond: number;
  firstEventP50Ms: number | null;
  errors: Record<string, number>;
}

const maxTokens = 200;
/** Longer than any load of the demo model. */
const loadWindowMs = 30_000;

export async function measureEngine(load: LoadGenerator, windowMs: number): Promise<EngineFigure[]> {
  await using headrace = await startHeadrace({ upstreamPort: undefined });
  const run = (chats: number, window: number, maxRequests: number) =>
    load.run({
      port: headrace.port,
      key: headrace.key,
      body: chatBody,
      connections: chats,
      windowMs: window,
      maxRequests,
      events: undefined,
    });
  // The first answer waits until the model is loaded.
  await run(1, loadWindowMs, 1);
  const figures: EngineFigure[] = [];
  for (const chats of [1, 4, 8]) {
    const { requests, tokens, seconds, firstEventP50Ms, errors } = await run(chats, windowMs, 10_000);
    figures.push({ chats, requests, tokens, tokensPerSecond: tokens / seconds, firstEventP50Ms, errors });
  }
  return figures;
}

/** A story is the longest that the demo model tells. */
const chatBody = JSON.stringify({
  model: "tiny-demo",
  messages: [{ role: "user", content: "Tell me a story." }],
  max_tokens: maxTokens,
  stream: true,
  stream_options: { include_usage: true },
});
