// A gateway with a scripted model behind it and a folder with a file to edit: what every agent is put into.
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bookedUsage } from "../booked-usage.ts";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../headrace.ts";
import { type AgentUpstream, agentContext, type Served, startAgentUpstream } from "./agent-upstream.ts";
import type { Api } from "./asked.ts";

/** What the model speaks: chat completions alone, or each of the three formats. */
export const upstreamKinds = {
  "chat completions alone": ["chat"],
  "each API natively": ["chat", "responses", "messages"],
} as const satisfies Record<string, readonly Api[]>;
export type UpstreamKind = keyof typeof upstreamKinds;

export const agentModel = "agent-model";
/** Said by the model once the work is done. */
export const theEnd = "The colour is blue now.";
export const [red, blue] = ["The colour is red.", "The colour is blue."];
export const thePrompt = "Make the colour in notes.txt blue.";

export interface AgentWorld {
  server: TestServer;
  /** A folder of its own for each work. */
  directory: string;
  /** In there. */
  file: string;
  /** Writes the file anew. */
  reset(): void;
  /** What is in the file. */
  text(): string;
  /** Whether programs are told to make a conversation short that is longer than they begin with anyway. */
  compacts: boolean;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One whose model is scripted, and may be told to fail. */
export interface ScriptedWorld extends AgentWorld {
  upstream: AgentUpstream;
}

/** `yaml`: besides the model. */
export async function startAgentWorld(
  kind: UpstreamKind,
  { yaml = "", ...options }: TestServerOptions = {},
): Promise<ScriptedWorld> {
  const upstream = await startAgentUpstream(upstreamKinds[kind]);
  const folder = makeAgentFolder();
  const server = await startHeadrace({
    ...options,
    yaml: `${yaml}upstreams:
  - { name: world, url: "${upstream.url}", discover: false, apis: [${upstreamKinds[kind].join(", ")}] }
models:
  - id: ${agentModel}
    context: ${agentContext}
    aliases: ["claude-*", claude-agent, "gpt-*"]
    deployments: [{ upstream: world, model: scripted }]
`,
  });
  return {
    ...{ upstream, server, ...folder, compacts: true },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      folder.remove();
    },
  };
}

interface AgentFolder extends Pick<AgentWorld, "directory" | "file" | "reset" | "text"> {
  remove(): void;
}

export function makeAgentFolder(): AgentFolder {
  const directory = mkdtempSync(join(tmpdir(), "headrace-agent-"));
  const file = join(directory, "notes.txt");
  return {
    ...{ directory, file },
    reset: () => writeFileSync(file, `${red}\n`),
    text: () => readFileSync(file, "utf8").trim(),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** The ledger has one record for each answer that the model gave, with the tokens that the model counted. */
export async function expectBooked({ upstream, server }: ScriptedWorld): Promise<void> {
  await expectCounted(server, upstream.served.filter(isCounted));
}

/** The same for whatever was counted, by the ids of the requests. */
export async function expectCounted(
  server: TestServer,
  whole: readonly { requestId: string; count: { prompt: number; completion: number } }[],
): Promise<void> {
  await until(() => server.requests().open === 0, "every request has ended");
  await server.governance.ledger.flush();
  const booked = new Map(bookedUsage(server.dataDir).map((record) => [record.request_id, record]));
  const reported = whole.map(({ requestId, count }) => ({
    ...{
      requestId,
      prompt_tokens: count.prompt,
      completion_tokens: count.completion,
      estimated: 0,
      outcome: "completed",
    },
  }));
  const found = whole.map(({ requestId }) => {
    const { prompt_tokens, completion_tokens, estimated, outcome } = booked.get(requestId) ?? {};
    return { requestId, prompt_tokens, completion_tokens, estimated, outcome };
  });
  expect(found).toEqual(reported);
}

function isCounted(served: Served): served is Served & { count: NonNullable<Served["count"]> } {
  return served.count !== undefined;
}

/** The steps that the model took, in the order in which it was asked; faults by their names. */
export function taskOf({ upstream }: ScriptedWorld): string[] {
  return upstream.served
    .filter(({ kind }) => kind !== "aside")
    .map(({ kind, done, fault }) => fault ?? (kind === "summary" ? "summary" : String(done)));
}
