// The scopes of a key, in the words of the person who grants them.
import type { ApiKey } from "../../api/types.ts";

export type Scope = ApiKey["scopes"][number];

export const scopes: readonly { scope: Scope; title: string; meaning: string }[] = [
  {
    scope: "chat:write",
    title: "Use models",
    meaning: "Chat, complete text, create embeddings. Only this permission causes costs.",
  },
  { scope: "models:read", title: "See models", meaning: "List the models that the key can use." },
  { scope: "chat:read", title: "Read stored chats", meaning: "List, read, label and delete stored chats." },
  { scope: "usage:read", title: "See usage", meaning: "See requests, tokens, spend and limits." },
  {
    scope: "tools:use",
    title: "Use tools",
    meaning: "List and call tools of MCP servers. Tools may act on other systems.",
  },
  { scope: "keys:manage", title: "Manage keys and apps", meaning: "Create, change and revoke other keys and apps." },
  {
    scope: "admin:manage",
    title: "Operate the installation",
    meaning: "Manage everything that operators manage, such as accounts, people and upstreams.",
  },
];

export const defaultScopes: readonly Scope[] = ["chat:read", "chat:write", "models:read"];

/** Returns the scopes that the user may grant: only their own, and operator scopes only as an owner or admin. */
export function grantableScopes(own: readonly Scope[], isManager: boolean): readonly Scope[] {
  return own.filter((scope) => scope !== "admin:manage" || isManager);
}

type Preset = "all" | "restricted" | "read";

/** Returns the scopes of each preset. `all` leaves out the scope `admin:manage`, which must be chosen on its own. */
export function presetsOf(grantable: readonly Scope[]) {
  return {
    all: grantable.filter((scope) => scope !== "admin:manage"),
    read: grantable.filter((scope) => scope === "models:read" || scope === "usage:read"),
  };
}

export function presetOf(chosen: readonly Scope[], { all, read }: ReturnType<typeof presetsOf>): Preset {
  const isSame = (preset: readonly Scope[]) =>
    preset.length === chosen.length && preset.every((scope) => chosen.includes(scope));
  if (isSame(all)) return "all";
  return isSame(read) ? "read" : "restricted";
}
