// The worker's HTTP server on a Unix domain socket, with routes and errors like those of OpenAI's API.
import { answerChat, countChat } from "./request/chat.ts";
import { answerCompletion } from "./request/completion.ts";
import { Fields, isObject } from "./request/fields.ts";
import { asRequestError, errorBody, invalid, RequestError } from "./request/request-error.ts";
import { type ModelRuntime, type Runtime, writesText } from "./runtime.ts";
import { Embedder } from "./texts/embedding.ts";
import { Ranker } from "./texts/ranking.ts";
import { detokenize, tokenize } from "./texts/tokens.ts";

/** The largest request body. The gateway limits clients to less. */
const largestBodyBytes = 64 * 1024 * 1024;

/**
 * Disables Bun's idle timeout, because a generation may be silent for long. Bun's types say that a Unix socket
 * has none, but Bun 1.4.5 closes it after 10 s.
 */
const noIdleTimeout: object = { idleTimeout: 0 };

type Handler = (fields: Fields, signal: AbortSignal) => Promise<Response>;

/** Serves requests on the socket until the process ends. */
export function serve(socket: string, runtime: ModelRuntime | Runtime): void {
  const embedder = new Embedder(runtime);
  const ranker = new Ranker(runtime, embedder);
  const posts: Readonly<Record<string, Handler>> = {
    "/chat/completions": (fields, signal) => answerChat(requireText(runtime), fields, signal),
    "/chat/completions/input_tokens": async (fields) => countChat(requireText(runtime), fields),
    "/completions": (fields, signal) => answerCompletion(requireText(runtime), fields, signal),
    "/embeddings": (fields, signal) => embedder.answer(fields, signal),
    "/rerank": (fields, signal) => ranker.rerank(fields, signal),
    "/score": (fields, signal) => ranker.score(fields, signal),
    "/tokenize": async (fields) => tokenize(runtime, fields),
    "/detokenize": async (fields) => detokenize(runtime, fields),
  };
  const gets: Readonly<Record<string, () => object>> = {
    "/models": () => ({ object: "list", data: [describe(runtime)] }),
    "/health": () => ({ status: "ok", ...(writesText(runtime) ? progress(runtime) : {}) }),
  };
  Bun.serve({
    unix: socket,
    ...noIdleTimeout,
    maxRequestBodySize: largestBodyBytes,
    async fetch(request) {
      try {
        const path = requestPath(request);
        const get = gets[path];
        const post = posts[path];
        if (get === undefined && post === undefined) throw notFound(path);
        if (request.method === "GET" && get !== undefined) return Response.json(get());
        if (request.method !== "POST" || post === undefined) throw methodNotAllowed(get === undefined ? "POST" : "GET");
        return await post(await readBody(request, runtime.modelId), request.signal);
      } catch (error) {
        if (!(error instanceof RequestError) && !request.signal.aborted)
          runtime.report(`answering ${request.method} ${requestPath(request)}`, error);
        const shown = asRequestError(error);
        const headers = { "content-type": "application/json" };
        return new Response(errorBody(shown), { status: shown.status, headers });
      }
    },
  });
}

function requestPath(request: Request): string {
  return new URL(request.url).pathname;
}

async function readBody(request: Request, modelId: string): Promise<Fields> {
  let body: unknown;
  try {
    body = await request.json();
  } catch {
    throw invalid("The body is not valid JSON.");
  }
  if (!isObject(body)) throw invalid("The body must be a JSON object.");
  const fields = new Fields(body);
  const model = fields.string("model");
  if (model === undefined || model === modelId) return fields;
  throw new RequestError(404, "invalid_request_error", "model_not_found", "This engine does not serve the model.");
}

function requireText(runtime: ModelRuntime | Runtime): Runtime {
  if (writesText(runtime)) return runtime;
  throw invalid("This model writes no text. Use a model whose capabilities include chat or completion.");
}

function progress({ pool, generatedTokens }: Runtime): object {
  return { sequences: pool.state, generated_tokens: generatedTokens };
}

function describe(runtime: ModelRuntime | Runtime): object {
  const { facts, modelId, created, contextSize, parallel } = runtime;
  return {
    id: modelId,
    object: "model",
    created,
    owned_by: facts.author ?? "headrace",
    capabilities: facts.capabilities,
    context_length: contextSize,
    embedding_length: facts.embeddingLength,
    parallel,
    tools: writesText(runtime) && runtime.chat?.syntax.calls !== undefined,
  };
}

function notFound(path: string): RequestError {
  return new RequestError(404, "invalid_request_error", "not_found", `There is no ${path} here.`);
}

function methodNotAllowed(allowed: string): RequestError {
  return new RequestError(405, "invalid_request_error", "method_not_allowed", `Use ${allowed} for this path.`);
}
