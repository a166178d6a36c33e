// Requests of any format about the gateway itself: keys, limits, guardrails, the response cache, fallbacks, faults, HTTP.
import { gzipSync } from "node:zlib";
import { faults, statusFaults, streamFaults } from "../faults.ts";
import { type Backend, backends, type Models } from "../models.ts";
import type { Json } from "../written-replies.ts";
import { type Call, type RecordedRequest, recorded, type Step } from "./request.ts";

export interface Format {
  path: string;
  /** The smallest request for a model, with this text as its prompt. */
  asking: (model: string, text?: string) => Json;
  streams: boolean;
  /** Whether the gateway translates the format for upstreams that lack it. */
  isTranslated: boolean;
}

const json = { "content-type": "application/json" };

/** Creates a key with these members and makes the calls with it. */
function withKey(members: Json, ...calls: readonly Call[]): Step[] {
  const create: Call = { path: "/v1/keys", body: { name: "recorded", ...members } };
  return [
    create,
    ...calls.map((call) => ([created]: readonly Json[]) => ({ ...call, key: String(created?.["key"]) })),
  ];
}

export function keyRequests({ path, asking }: Format): RecordedRequest[] {
  const plain = { path, body: asking("aliased") };
  const long = { path, body: asking("aliased", "word ".repeat(500)) };
  const quotas = [{ unit: "tokens", amount: 200, per: "month" }];
  return [
    recorded("no key", { ...plain, key: null }),
    recorded("unknown key", { ...plain, key: "sk_dev_hr_0123456789012345678901234567890123456789012" }),
    recorded("key of another maker", { ...plain, key: "sk-proj-0123" }),
    recorded("key in x-api-key", { path: "/v1/keys", body: { name: "recorded" } }, ([created]) => ({
      ...{ ...plain, key: null, headers: { "x-api-key": String(created?.["key"]) } },
    })),
    recorded("basic authorization", { ...plain, key: null, headers: { authorization: "Basic YTpi" } }),
    recorded("key without chat:write", ...withKey({ scopes: ["usage:read"] }, plain)),
    recorded("key for other models", ...withKey({ models: ["other-*"] }, plain)),
    recorded("key for other addresses", ...withKey({ allowed_ips: ["10.0.0.0/8"] }, plain)),
    recorded("rate limit of the key", ...withKey({ rate_limit: 1, rate_limit_window: 3600 }, plain, plain)),
    recorded("rate limit left", ...withKey({ rate_limit: 60, rate_limit_window: 3600 }, plain)),
    recorded("spent monthly tokens", ...withKey({ monthly_tokens: 1 }, long)),
    recorded("spent monthly spend", ...withKey({ monthly_spend: 0.000001 }, { ...plain, body: asking("chat.plain") })),
    recorded("quota of a window", ...withKey({ quotas }, plain, long)),
    recorded("key that never leaves, local", ...withKey({ never_leaves: true }, plain)),
    recorded(
      "key that never leaves, elsewhere",
      ...withKey({ never_leaves: true }, { ...plain, body: asking("responses.plain") }),
    ),
    recorded(
      "revoked key",
      ...withKey({}, plain),
      ([created]) => ({
        ...{ method: "DELETE", path: `/v1/keys/${String(created?.["id"])}` },
      }),
      ([created]) => ({ ...plain, key: String(created?.["key"]) }),
    ),
  ];
}

export function modelRequests({ path, asking, streams }: Format): RecordedRequest[] {
  const ask = (model: string, text?: string): Call => ({ path, body: asking(model, text) });
  const stream = (model: string, text?: string): Call => ({ path, body: { ...asking(model, text), stream: true } });
  const mail = "Ask jo@example.com about it.";
  const streamed = !streams
    ? []
    : [
        recorded("stream guardrail masks", stream("masked", mail)),
        recorded("stream guardrail masks -> messages", stream("masked-on-messages", mail)),
        recorded("stream guardrail blocks the answer", stream("blocked-answer")),
        recorded("stream guardrail notes", stream("noted", mail)),
        recorded("stream kept answer", stream("kept", "streamed"), stream("kept", "streamed")),
      ];
  return [
    recorded("unknown model", ask("nothing")),
    recorded("model of another environment", ask("testing")),
    recorded("alias of a model", ask("gpt-any")),
    recorded("model without the capability", ask("chatless")),
    recorded("longer than the context", ask("short", "word ".repeat(500))),
    recorded("guardrail masks", ask("masked", mail)),
    recorded("guardrail masks -> messages", ask("masked-on-messages", mail)),
    recorded("guardrail blocks the request", ask("blocked", "Where do tulips grow?")),
    recorded("guardrail blocks the answer", ask("blocked-answer")),
    recorded("guardrail notes", ask("noted", mail)),
    recorded("guardrail judge", ask("judged", "Where do tulips grow?")),
    recorded("kept answer", ask("kept"), ask("kept")),
    ...streamed,
  ];
}

export function httpRequests({ path, asking }: Format): RecordedRequest[] {
  const body = asking("aliased");
  const text = JSON.stringify(body);
  const sent = (headers: Record<string, string>, sentBody: unknown = body) => ({ path, body: sentBody, headers });
  return [
    recorded("tags", sent({ "x-headrace-tags": "team:search, job:7" })),
    recorded("tags that are none", sent({ "x-headrace-tags": "no tag at all!" })),
    recorded("priority low", sent({ "x-headrace-priority": "low" })),
    recorded("priority that is none", sent({ "x-headrace-priority": "highest" })),
    recorded("response cache asked for", sent({ "x-headrace-cache": "on" })),
    recorded("response cache with a wrong word", sent({ "x-headrace-cache": "maybe" })),
    recorded("request id of the client", sent({ "x-request-id": "mine-1", "x-client-request-id": "mine-2" })),
    recorded("trace of the client", sent({ traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" })),
    recorded(
      "headers of the client",
      sent({ "openai-organization": "org", "user-agent": "recorder/1", cookie: "a=b" }),
    ),
    recorded("gzip", sent({ "content-encoding": "gzip" }, new Blob([gzipSync(text)]))),
    recorded("gzip that is none", sent({ "content-encoding": "gzip" }, "no gzip")),
    recorded("unknown coding", sent({ "content-encoding": "br2" })),
    recorded("text/plain", sent({ "content-type": "text/plain" })),
    recorded("another charset", sent({ "content-type": "application/json; charset=iso-8859-1" })),
    recorded("GET", { method: "GET", path }),
    recorded("PUT", { method: "PUT", path, body }),
    recorded("path with a slash more", { path: `${path}/`, body }),
    recorded("path without /v1", { path: path.replace(/^\/v1/, ""), body }),
    recorded("query", { path: `${path}?a=b`, body }),
    recorded("empty body", { method: "POST", path, headers: json, body: "" }),
    recorded("broken JSON", sent({}, text.slice(0, -3))),
    recorded("text behind the JSON", sent({}, `${text} x`)),
    recorded("list", sent({}, [body])),
    recorded("number", sent({}, "7")),
    recorded("bytes that are no UTF-8", sent({}, new Blob(['{"a":"', new Uint8Array([0xff]), '"}']))),
    recorded("byte order mark", sent({}, `\ufeff${text}`)),
    recorded("member twice", sent({}, `${text.slice(0, -1)},"model":"chat.plain"}`)),
    recorded("spaces and escapes", sent({}, ` ${text.replaceAll(":", " : ").replace('"model"', '"\\u006dodel"')}\n`)),
    recorded("too long", sent({}, { ...body, x: "y".repeat(70_000) })),
    recorded("too deep", sent({}, { ...body, x: JSON.parse(`${"[".repeat(30)}${"]".repeat(30)}`) as unknown })),
    recorded("member of the server's operator", sent({}, { ...body, kv_transfer_params: { a: 1 } })),
    recorded("unknown members", sent({}, { ...body, repetition_penalty: 1.1, extra: { a: [1.0] } })),
    recorded("own prototype", sent({}, `${text.slice(0, -1)},"__proto__":{"a":1}}`)),
  ];
}

/** Each fault at one kind of upstream after the other; faults of streams at every kind. */
export function faultRequests(models: Models, { path, asking, streams, isTranslated }: Format): RecordedRequest[] {
  const servers: readonly Backend[] = isTranslated ? backends : ["chat"];
  const server = (number: number) => servers[number % servers.length] as Backend;
  const statuses = Object.keys(statusFaults).map((fault, number) => {
    const isStream = streams && number % 2 === 1;
    const body = { ...asking(models.failing(server(number), fault)), ...(isStream ? { stream: true } : {}) };
    return recorded(`${isStream ? "stream " : ""}${fault} -> ${server(number)}`, { path, body });
  });
  const cut = Object.keys(streams ? streamFaults : {}).flatMap((fault) =>
    servers.map((backend) => {
      const body = { ...asking(models.failing(backend, fault)), stream: true };
      return recorded(`stream ${fault} -> ${backend}`, { path, body });
    }),
  );
  const replaced = ["status-500", "status-400", "closed"].map((fault) => {
    if (!faults[fault]) throw new Error(`There is no fault ${fault}`);
    return recorded(`${fault} with a fallback`, {
      ...{ path, body: asking(models.replaced("chat", fault, models.on(server(1), "plain"))) },
    });
  });
  return [...statuses, ...cut, ...replaced];
}

/** A request for each wrong value; undefined leaves the member out. */
export function wrongRequests(
  { path, asking }: Format,
  wrong: Readonly<Record<string, readonly unknown[]>>,
): RecordedRequest[] {
  return Object.entries(wrong).flatMap(([member, values]) =>
    values.map((value) => {
      const shown = value === undefined ? "left out" : JSON.stringify(value).slice(0, 50);
      return recorded(`wrong ${member} ${shown}`, { path, body: { ...asking("chat.plain"), [member]: value } });
    }),
  );
}
