// The demo model driven in node-llama-cpp itself, without worker or gateway: what the built-in engine is compared with.
// A process of its own: takes its settings and then jobs as JSON lines on standard input, answers each with one line.
import { createInterface } from "node:readline";
import {
  getLlama,
  type LlamaContextSequence,
  LlamaLogLevel,
  resolveChatWrapper,
  type Token,
  TokenBias,
} from "node-llama-cpp";
import { Batching } from "../src/engines/llama/worker/batching.ts";
import { type EngineJob, type EngineWindow, lengthOf } from "./built-in-engine-job.ts";
import { percentile } from "./statistics.ts";

export interface DirectSettings {
  modelPath: string;
  /** The sizes that the worker has, too. */
  context: number;
  parallel: number;
  threads: number;
}

/** Tokens before a piece that its text depends on. */
const trailLength = 3;

async function start({ modelPath, context: contextSize, parallel, threads }: DirectSettings) {
  const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: threads,
    logLevel: LlamaLogLevel.error,
  });
  const model = await llama.loadModel({ modelPath });
  const shape = { contextSize, sequences: parallel, threads };
  const batching = new Batching();
  const own = await model.createContext({ ...shape, batching: batching.options });
  const library = await model.createContext(shape);
  const wrapper = resolveChatWrapper(model, { warningLogs: false });
  const sequences = {
    own: Array.from({ length: parallel }, () => own.getSequence()),
    library: Array.from({ length: parallel }, () => library.getSequence()),
  };

  const render = (prompt: string): Token[] => {
    const { contextText } = wrapper.generateContextState({
      chatHistory: [
        { type: "user", text: prompt },
        { type: "model", response: [] },
      ],
    });
    const tokens = contextText.tokenize(model.tokenizer);
    // The wrapper begins with BOS even where the model's tokenizer does not.
    return tokens[0] === model.tokens.bos && !model.tokens.shouldPrependBosToken ? tokens.slice(1) : tokens;
  };

  /** The library's plain loop, each token turned into text. */
  const generate = async (sequence: LlamaContextSequence, job: EngineJob, seed: number) => {
    const adapt = (tokens: Token[]) => sequence.adaptStateToTokens(tokens, false);
    const startedMs = performance.now();
    const prompt = render(job.prompt);
    const tokenBias = TokenBias.for(model).set(job.onlyToken as Token, { logit: 100 });
    const length = lengthOf(job, seed);
    // The part of the prompt that the sequence holds already is kept, as the worker does.
    if (job.libraryBatching === true) await adapt(prompt.slice(0, -1));
    else await batching.between(() => adapt(prompt.slice(0, -1)));
    const steps = sequence.evaluate(prompt.slice(sequence.nextTokenIndex), {
      temperature: 1,
      topK: 1000,
      topP: 1,
      minP: 0,
      seed,
      tokenBias,
      yieldEogToken: true,
    });
    let firstTokenMs: number | undefined;
    let text = "";
    let tokens = 0;
    let trail = prompt.slice(-trailLength);
    let pending: Token[] = [];
    batching.enter();
    for await (const token of steps) {
      tokens += 1;
      pending.push(token);
      const piece = model.detokenize(pending, false, trail);
      if (!piece.endsWith("\uFFFD")) {
        text += piece;
        trail = [...trail, ...pending].slice(-trailLength);
        pending = [];
        firstTokenMs ??= performance.now() - startedMs;
      }
      const ended = tokens === length || model.isEogToken(token);
      const { pause } = batching;
      if (ended || pause !== undefined) batching.leave();
      if (ended) break;
      if (pause === undefined) continue;
      await pause;
      batching.enter();
    }
    return { tokens, text, firstTokenMs, promptTokens: prompt.length };
  };

  return async (job: EngineJob): Promise<EngineWindow> => {
    const free = job.libraryBatching === true ? sequences.library : sequences.own;
    const firstTokens: number[] = [];
    let tokens = 0;
    let promptTokens = 0;
    const startedMs = performance.now();
    await Promise.all(
      Array.from({ length: job.chats }, async (_, chat) => {
        for (let turn = 0; turn < job.turns; turn++) {
          const sequence = free.shift();
          if (sequence === undefined) throw new Error("More chats than sequences.");
          const reply = await generate(sequence, job, chat * job.turns + turn);
          free.push(sequence);
          if (reply.firstTokenMs !== undefined) firstTokens.push(reply.firstTokenMs);
          tokens += reply.tokens;
          promptTokens = reply.promptTokens;
        }
      }),
    );
    return {
      tokens,
      promptTokens,
      seconds: (performance.now() - startedMs) / 1000,
      firstTokenMs: percentile(Float64Array.from(firstTokens).sort(), 0.5),
      errors: {},
    };
  };
}

let run: ((job: EngineJob) => Promise<EngineWindow>) | undefined;
for await (const line of createInterface({ input: process.stdin })) {
  if (run === undefined) {
    run = await start(JSON.parse(line) as DirectSettings);
    process.stdout.write("{}\n");
  } else {
    process.stdout.write(`${JSON.stringify(await run(JSON.parse(line) as EngineJob))}\n`);
  }
}
process.exit(0);
