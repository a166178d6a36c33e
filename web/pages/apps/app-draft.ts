// An app's settings while they are edited: the fields' values, their errors, and the request.
import type { ApiFailure } from "../../api/client.ts";
import type { App, UpdateAppRequest } from "../../api/types.ts";
import { changedMembers } from "../../parts/editing/changed-members.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { type ToolList, toolListError } from "../../parts/tools/tool-entries.ts";
import { type AppScope, appScopes, defaultScopes } from "./app-scopes.ts";

export interface AppDraft {
  name: string;
  type: App["type"];
  /** The address of the app's homepage; empty means none. */
  homepage: string;
  redirectUris: string[];
  scopes: readonly AppScope[];
  tools: ToolList;
  requirePkce: boolean;
}

/** The API's names of the fields. */
const fields = ["name", "homepage_url", "redirect_uris", "scopes", "tools", "require_pkce"] as const;
export type Field = (typeof fields)[number];
type DraftErrors = Partial<Record<Field, string>>;

export const newDraft: AppDraft = {
  name: "",
  type: "confidential",
  homepage: "",
  redirectUris: [],
  scopes: defaultScopes,
  tools: null,
  requirePkce: true,
};

export function draftOf(app: App): AppDraft {
  return {
    name: app.name,
    type: app.type,
    homepage: app.homepage_url ?? "",
    redirectUris: app.redirect_uris,
    scopes: appScopes.flatMap(({ scope }) => (app.scopes.includes(scope) ? [scope] : [])),
    tools: app.tools,
    requirePkce: app.require_pkce,
  };
}

/** Returns the errors that are known before sending; the server reports all others. */
function errorsOf(draft: AppDraft): DraftErrors {
  const errors: DraftErrors = {};
  if (draft.name.trim() === "") errors.name = "Enter a name. People see it when the app asks for access.";
  if (draft.scopes.length === 0) errors.scopes = "Choose at least one permission.";
  const toolsError = toolListError(draft.tools);
  if (toolsError !== undefined) errors.tools = toolsError;
  return errors;
}

export function createRequestOf(draft: AppDraft) {
  return {
    name: draft.name.trim(),
    type: draft.type,
    homepage_url: homepageOf(draft),
    redirect_uris: draft.redirectUris,
    scopes: [...draft.scopes],
    tools: draft.tools && [...draft.tools],
    require_pkce: draft.type === "public" || draft.requirePkce,
  };
}

/** Returns only what differs from `before`, because others may have changed the rest meanwhile. */
export function changesOf(draft: AppDraft, before: AppDraft): UpdateAppRequest {
  return changedMembers(createRequestOf(draft), createRequestOf(before));
}

/** Turns `redirect_uris[1]: must have no fragment.` into a message that names the address instead of its index. */
function serverProblem(error: ApiFailure | null, field: Field, { redirectUris }: AppDraft): string | undefined {
  const problem = problemOf(error, field);
  const [, index] = /^redirect_uris\[(\d+)\]/.exec(error?.message ?? "") ?? [];
  const uri = index === undefined ? undefined : redirectUris[Number(index)];
  if (problem === undefined || uri === undefined) return problem;
  return `${uri} ${problem.charAt(0).toLowerCase()}${problem.slice(1)}`;
}

/** The fields and error functions of an app's form, for `useDraft`. */
export const appKind = { fields, errorsOf, serverProblem };

function homepageOf({ homepage }: AppDraft): string | null {
  return homepage.trim() === "" ? null : homepage.trim();
}
