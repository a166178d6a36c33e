// One of each thing that an endpoint can be about, made over the API, and made anew from time to time, as requests end them.
import type { TestServer } from "../support/headrace.ts";
import type { openCredentials } from "./any-credential.ts";

/** By the part of a path before the id. */
const kindByPath: readonly [RegExp, string][] = [
  [/^\/v1\/(admin\/)?keys\/$/, "key"],
  [/completions\/$/, "chat"],
  [/responses\/$/, "response"],
  [/conversations\/$/, "conversation"],
  [/items\/$/, "item"],
  [/files\/$/, "file"],
  [/uploads\/$/, "upload"],
  [/messages\/batches\/$/, "message_batch"],
  [/batches\/$/, "batch"],
  [/^\/v1\/models\/$/, "model"],
  [/^\/v1\/admin\/models\/$/, "declared_model"],
  [/accounts\/$/, "account"],
  [/apps\/$/, "app"],
  [/sessions\/$/, "session"],
  [/members\/$/, "member"],
  [/invitations\/$/, "invitation"],
  [/nodes\/$/, "node"],
  [/node-tokens\/$/, "join_id"],
  [/upstreams\/$/, "upstream"],
  [/tool-servers\/$/, "tool_server"],
  [/^\/v1\/webhooks\/$/, "webhook"],
  [/^\/v1\/admin\/webhooks\/$/, "operators_webhook"],
  [/organizations\/$/, "organization"],
  [/tiers\/$/, "tier"],
  [/people\/$/, "person"],
  [/requests\/$/, "request"],
  [/authorizations\/$/, "app"],
];

export function kindAt(before: string): string {
  return kindByPath.find(([pattern]) => pattern.test(before))?.[1] ?? "key";
}

export type Existing = Awaited<ReturnType<typeof openExisting>>;

export async function openExisting(
  server: TestServer,
  upstreamUrl: string,
  { people, headersOf, renew }: Awaited<ReturnType<typeof openCredentials>>,
) {
  const ids = new Map<string, string>([
    ["url", upstreamUrl],
    ["model", "our-model"],
    ["account", people.accountId],
    ["passkey", "pk_none"],
  ]);
  let made = 0;

  async function madeBy(method: string, path: string, body: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(server.url + path, {
      method,
      headers: { ...headersOf("operator key"), "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  const make = async (method: string, path: string, body: unknown, member = "id") =>
    String((await madeBy(method, path, body))[member]);

  async function madeFile(): Promise<string> {
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new File(["{}"], "a.jsonl"));
    const headers = headersOf("operator key");
    const response = await fetch(`${server.url}/v1/files`, { method: "POST", headers, body: form });
    return ((await response.json()) as { id: string }).id;
  }

  return {
    idOf: (kind: string) => ids.get(kind) ?? "none",

    /** Whatever was deleted, revoked or suspended since is there again, under another id. */
    async refresh(): Promise<void> {
      made++;
      await renew("operator key");
      const name = `made-${made}`;
      // There may be only so many of some things, and some of the requests make them as well.
      const set = async (kind: string, value: Promise<string>) =>
        void ids.set(kind, made === 1 ? await value : await value.catch(() => ids.get(kind) ?? "none"));
      const key = await madeBy("POST", "/v1/keys", { name });
      ids.set("key", String(key["id"])).set("secret_key", String(key["key"]));
      const app = await madeBy("POST", "/v1/apps", { name, redirect_uris: ["https://notes.example/callback"] });
      ids.set("app", String(app["id"])).set("client_secret", String(app["client_secret"]));
      await set(
        "chat",
        make("POST", "/v1/chat/completions", {
          model: "our-model",
          messages: [{ role: "user", content: "x" }],
          store: true,
        }),
      );
      await set("response", make("POST", "/v1/responses", { model: "our-model", input: "x" }));
      const items = [{ id: `msg_made_${made}`, role: "user", content: "x" }];
      await set("conversation", make("POST", "/v1/conversations", { items }));
      ids.set("item", `msg_made_${made}`);
      await set("file", madeFile());
      const whole = { filename: "a", purpose: "batch", bytes: 1, mime_type: "text/plain" };
      await set("upload", make("POST", "/v1/uploads", whole));
      const window = { completion_window: "24h", endpoint: "/v1/chat/completions" };
      await set("batch", make("POST", "/v1/batches", { input_file_id: ids.get("file"), ...window }));
      const message = { model: "our-model", max_tokens: 1, messages: [{ role: "user", content: "x" }] };
      const requests = [{ custom_id: "a", params: message }];
      await set("message_batch", make("POST", "/v1/messages/batches", { requests }));
      if (made % 2 === 0) await set("account", make("POST", "/v1/admin/accounts", { name, tier: "pro" }));
      else ids.set("account", people.accountId);
      const figures = {
        requests_per_minute: 1_000,
        tokens_per_minute: 1_000_000,
        monthly_tokens: null,
        monthly_spend: null,
      };
      await set("tier", make("PUT", `/v1/admin/tiers/${name}`, figures, "name"));
      await set("organization", make("POST", "/v1/admin/organizations", { name }));
      await set("upstream", make("POST", "/v1/admin/upstreams", { name, url: upstreamUrl }, "name"));
      const tools = { name: `tools-${made}`, url: upstreamUrl };
      await set("tool_server", make("POST", "/v1/admin/tool-servers", tools, "name"));
      const declared = { id: name, deployments: [{ upstream: "up", model: "upstream-model" }] };
      await set("declared_model", make("POST", "/v1/admin/models", declared));
      const receiver = { url: "https://hooks.invalid/" };
      await set("webhook", make("POST", "/v1/webhooks", receiver));
      await set("operators_webhook", make("POST", "/v1/admin/webhooks", receiver));
      const invited = { email: `${name}@example.test`, role: "member" };
      await set("invitation", make("POST", `/v1/admin/accounts/${people.accountId}/invitations`, invited, "id"));
      const join = () => make("POST", "/v1/admin/node-tokens", { approved_models: ["some-model"] }, "token");
      await set("join_id", make("POST", "/v1/admin/node-tokens", { approved_models: ["some-model"] }));
      await set("join", join());
      const publicKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
      const node = { token: ids.get("join"), name: `node-${made}`, public_key: publicKey };
      await set("node", make("POST", "/v1/nodes", node));
      await set("join", join());
      const member = await people.addMember("member");
      ids.set("member", member.membership.id);
      ids.set("person", member.person.id);
      ids.set("session", member.sessionId);
    },
  };
}
