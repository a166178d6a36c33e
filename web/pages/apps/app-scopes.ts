// The scopes of an app, in the words of its developer and of its users.
import type { Authorization } from "../../api/types.ts";

export type Scope = Authorization["scopes"][number];
export type AppScope = (typeof appScopes)[number]["scope"];

/** The scopes that an app can have. No app can have a scope that manages keys or the installation. */
export const appScopes = [
  { scope: "chat:write", title: "Use models", meaning: "Send requests to models. Only this permission causes costs." },
  { scope: "models:read", title: "See models", meaning: "List the models that the person can use." },
  { scope: "chat:read", title: "Read its stored chats", meaning: "Only chats that this app stored." },
  { scope: "usage:read", title: "See its usage", meaning: "See limits, quotas and the usage of this app." },
  { scope: "tools:use", title: "Use tools", meaning: "List and call tools of MCP servers, as the person." },
] as const satisfies readonly { scope: Scope; title: string; meaning: string }[];

/** The scopes of an app that requests none. */
export const defaultScopes: readonly AppScope[] = ["chat:write", "models:read"];

/** Scopes in the words of the user who authorized the app. */
export const allowedWords: Record<Scope, string> = {
  "chat:write": "Use models on your behalf",
  "models:read": "See which models you can use",
  "chat:read": "Read the chats that this app stored for you",
  "usage:read": "See your limits, quotas and the usage of this app",
  "tools:use": "Use tools of MCP servers on your behalf",
  "keys:manage": "Create, change and revoke keys and apps",
  "admin:manage": "Operate the installation",
};
