// The scopes of credentials.

/** The scopes that accounts give to their keys and apps. */
export const accountScopes = [
  "chat:read",
  "chat:write",
  "models:read",
  "usage:read",
  "tools:use",
  "keys:manage",
] as const;

/** All scopes, including `admin:manage` for operators, which no app can get. */
export const scopes = [...accountScopes, "admin:manage"] as const;
export type Scope = (typeof scopes)[number];

/** The scopes of a new key if none are given. */
export const defaultScopes: readonly Scope[] = ["chat:read", "chat:write", "models:read"];

export const scopeMeanings: Record<Scope, string> = {
  "chat:read": "Read chat history.",
  "chat:write": "Create chat completions, completions and embeddings.",
  "models:read": "List available models.",
  "usage:read": "View usage statistics.",
  "tools:use": "List and call tools of MCP servers.",
  "keys:manage": "Manage API keys.",
  "admin:manage": "Operate the installation: accounts, people, tiers, audit log.",
};
