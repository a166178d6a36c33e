// Tests the model list, credentials and headers, which SDKs need before any generation.
import {
  type ClientCheck,
  errorFaults,
  headerFaults,
  type Surroundings,
  statusFaults,
  type Verdict,
} from "./client-check.ts";
import { faultsOf, modelList, model as modelShape } from "./shapes.ts";

export function modelChecks({ wire, chat, embeddings }: Surroundings): ClientCheck[] {
  const known = chat ?? embeddings;
  return [
    {
      name: "list",
      sent: "GET /models",
      async run(signal) {
        const answer = await wire.ask("/models", signal);
        const wrong = [...statusFaults(answer, 200), ...faultsOf(modelList, answer.json), ...headerFaults(answer)];
        const count = (answer.json as { data?: unknown[] } | undefined)?.data?.length ?? 0;
        return { seen: `${count} model${count === 1 ? "" : "s"}`, wrong };
      },
    },
    {
      name: "retrieve",
      sent: `GET /models/${known?.id ?? "…"}`,
      async run(signal) {
        if (!known) return { seen: "there is no model", wrong: [], isSkipped: true };
        const answer = await wire.ask(`/models/${encodeURIComponent(known.id)}`, signal);
        const wrong = [...statusFaults(answer, 200), ...faultsOf(modelShape, answer.json)];
        const found = (answer.json as { id?: unknown } | undefined)?.id;
        if (wrong.length === 0 && found !== known.id) wrong.push(`it is ${String(found)}, which was not asked for`);
        return { seen: known.id, wrong };
      },
    },
    {
      name: "unknown model",
      sent: "GET /models/no-such-model-here",
      async run(signal) {
        const answer = await wire.ask("/models/no-such-model-here", signal);
        return { seen: "404 model_not_found", wrong: errorFaults(answer, 404, "model_not_found") };
      },
    },
  ];
}

export function credentialChecks({ wire, isKey }: Surroundings): ClientCheck[] {
  const refused = (credential: "wrong" | "none") => async (signal: AbortSignal) => {
    const answer = await wire.ask("/models", signal, { credential });
    const wrong = errorFaults(answer, 401, "invalid_api_key");
    if (wrong.length === 0 && !/^bearer\b/i.test(answer.headers.get("www-authenticate") ?? ""))
      wrong.push("www-authenticate names no Bearer");
    return { seen: "401 invalid_api_key", wrong };
  };
  return [
    {
      name: "Authorization: Bearer",
      sent: "GET /models with Authorization: Bearer",
      async run(signal) {
        return { seen: "accepted", wrong: statusFaults(await wire.ask("/models", signal), 200) };
      },
    },
    {
      name: "X-API-Key",
      sent: "GET /models with X-API-Key",
      async run(signal) {
        if (!isKey)
          return { seen: "the credential is a login, which comes as Bearer alone", wrong: [], isSkipped: true };
        const answer = await wire.ask("/models", signal, { credential: "x-api-key" });
        return { seen: "accepted", wrong: statusFaults(answer, 200) };
      },
    },
    { name: "wrong key", sent: "GET /models with a key that does not exist", run: refused("wrong") },
    { name: "no key", sent: "GET /models without a key", run: refused("none") },
    {
      name: "browsers",
      sent: "OPTIONS /chat/completions from https://app.example.com",
      run: (signal) => preflight(wire, signal),
    },
  ];
}

const askedHeaders = "authorization, content-type, x-stainless-lang, openai-organization";

/** Tests cross-origin access, which an installation may leave disabled. */
async function preflight(wire: Surroundings["wire"], signal: AbortSignal): Promise<Verdict> {
  const { status, headers } = await wire.ask("/chat/completions", signal, {
    method: "OPTIONS",
    credential: "none",
    headers: {
      origin: "https://app.example.com",
      "access-control-request-method": "POST",
      "access-control-request-headers": askedHeaders,
    },
  });
  const origin = headers.get("access-control-allow-origin");
  if (origin === null)
    return { seen: "that origin is not allowed; cors.origins names those that are", wrong: [], isSkipped: true };
  const allowed = headers.get("access-control-allow-headers")?.toLowerCase() ?? "";
  const wrong = status < 300 ? [] : [`the preflight answered ${status}`];
  for (const name of askedHeaders.split(", "))
    if (allowed !== "*" && !allowed.includes(name)) wrong.push(`the header ${name} is not allowed, which SDKs send`);
  const exposed = headers.get("access-control-expose-headers")?.toLowerCase() ?? "";
  if (!exposed.includes("x-request-id")) wrong.push("x-request-id is not exposed");
  return { seen: `${origin} is allowed`, wrong };
}

export function errorChecks({ wire, chat }: Surroundings): ClientCheck[] {
  const id = chat?.id ?? "no-such-model-here";
  const messages = [{ role: "user", content: "Hi" }];
  const post = (body: unknown) => (signal: AbortSignal) => wire.ask("/chat/completions", signal, { body });
  const check = (
    name: string,
    sent: string,
    ask: (signal: AbortSignal) => ReturnType<typeof wire.ask>,
    status: number,
    code: string,
  ): ClientCheck => ({
    name,
    sent,
    run: async (signal) => ({ seen: `${status} ${code}`, wrong: errorFaults(await ask(signal), status, code) }),
  });
  return [
    check("missing field", "POST /chat/completions without messages", post({ model: id }), 400, "invalid_request"),
    check(
      "wrong type",
      'POST /chat/completions with max_tokens "many"',
      post({ model: id, messages, max_tokens: "many" }),
      400,
      "invalid_request",
    ),
    check("no JSON", "POST /chat/completions with half a JSON text", post('{"model":'), 400, "invalid_request"),
    check(
      "unknown model",
      "POST /chat/completions with a model that does not exist",
      post({ model: "no-such-model-here", messages }),
      404,
      "model_not_found",
    ),
    check("unknown path", "GET /no-such-endpoint", (signal) => wire.ask("/no-such-endpoint", signal), 404, "not_found"),
  ];
}
