// The models that recorded requests name, and the configuration of a gateway that has them.

/** The format that the model's upstream speaks; `found`: chat completions, and the formats that the gateway finds by asking. */
export type Backend = "chat" | "responses" | "messages" | "found";
export const backends = ["chat", "responses", "messages", "found"] as const;

const settings: Readonly<Record<Backend, string>> = {
  chat: "apis: [chat], local: true",
  responses: "apis: [responses]",
  messages: "api: messages",
  found: "cache_salt: true, identifiers: removed",
};

const price = "price: { input: 1, cached_input: 0.5, output: 4 }";

/** Models with settings that an operator declares. All other models are named by their reply or fault. */
const declared = `
  - { id: aliased, aliases: ["gpt-*", claude-recorded], deployments: [{ upstream: on-chat, model: plain }] }
  - { id: chatless, capabilities: { chat: false, completion: false, embeddings: false }, deployments: [{ upstream: on-chat, model: plain }] }
  - { id: short, context: 100, deployments: [{ upstream: on-chat, model: plain }] }
  - { id: testing, environments: [test], deployments: [{ upstream: on-chat, model: plain }] }
  - { id: kept, policies: { cache: { requests: all } }, deployments: [{ upstream: on-chat, model: plain }] }
  - { id: masked, policies: { guardrails: [mask] }, deployments: [{ upstream: on-chat, model: secret }] }
  - { id: masked-on-messages, policies: { guardrails: [mask] }, deployments: [{ upstream: on-messages, model: secret }] }
  - { id: blocked, policies: { guardrails: [block] }, deployments: [{ upstream: on-chat, model: plain }] }
  - { id: blocked-answer, policies: { guardrails: [block] }, deployments: [{ upstream: on-chat, model: secret }] }
  - { id: noted, policies: { guardrails: [note] }, deployments: [{ upstream: on-chat, model: secret }] }
  - { id: judged, policies: { guardrails: [judge] }, deployments: [{ upstream: on-chat, model: plain }] }
  - { id: judge, deployments: [{ upstream: on-chat, model: verdict }] }`;

const guardrails = `
guardrails:
  - { name: mask, kind: secrets, action: mask }
  - { name: block, kind: patterns, action: block, patterns: [{ name: tulips, pattern: 'tulips?' }] }
  - { name: note, kind: secrets, action: note }
  - { name: judge, kind: judge, sides: [request], model: judge, policy: Nothing about tulips., action: block }`;

export class Models {
  readonly #upstreams = new Map<string, string>();
  readonly #models = new Map<string, string>();

  constructor() {
    for (const backend of backends) this.#upstreams.set(`on-${backend}`, settings[backend]);
  }

  /** A model that answers with this reply, at a server that speaks this format. */
  on(backend: Backend, reply: string): string {
    const id = `${backend}.${reply}`;
    this.#models.set(id, `${price}, deployments: [{ upstream: on-${backend}, model: ${reply} }]`);
    return id;
  }

  /** A model that fails in this way. Each has an upstream of its own, because a failed upstream rests. */
  failing(backend: Backend, fault: string): string {
    return this.#ownModel(backend, fault, "");
  }

  /** A failing model with a fallback. */
  replaced(backend: Backend, fault: string, fallback: string): string {
    return this.#ownModel(backend, fault, `fallbacks: [${fallback}], `);
  }

  /** `url`: base URL of the model server. */
  yaml(url: string): string {
    const upstreams = [...this.#upstreams].map(
      ([name, more]) =>
        `  - { name: ${name}, url: "${url}", api_key: sk-upstream-0123456789, discover: false, max_concurrency: 64, ${more} }`,
    );
    const models = [...this.#models].map(([id, more]) => `  - { id: ${id}, ${more} }`);
    return [
      "limits: { body_bytes: 65536, messages: 40, depth: 24 }",
      ...["upstreams:", ...upstreams],
      `models:${declared}`,
      ...models,
      guardrails,
    ].join("\n");
  }

  #ownModel(backend: Backend, fault: string, more: string): string {
    const name = `${fault}-${this.#upstreams.size}`;
    this.#upstreams.set(name, settings[backend]);
    this.#models.set(name, `${price}, ${more}deployments: [{ upstream: ${name}, model: ${fault} }]`);
    return name;
  }
}
