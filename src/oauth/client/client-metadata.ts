// A client's description of itself (RFC 7591, 2), in its document or at its registration, checked because people see
// it.
import { maskKeys } from "../../domain/api-key.ts";
import type { DescribedClient } from "../../domain/people/outside-client.ts";
import { homepageFault, redirectFault } from "../../policy/manage/app-values.ts";

/** An error of RFC 7591, 3.2.2. `description` is ASCII without quotes and backslashes. */
export interface MetadataFault {
  fault: "invalid_redirect_uri" | "invalid_client_metadata";
  description: string;
}

const maxUris = 20;
const maxUriLength = 2_048;
const maxNameLength = 100;
/** Characters that could hide or rearrange text on a page, or cannot be stored. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;

/** Returns the client's name, homepage and redirect URIs. Other members of the metadata have no effect. */
export function describedClient(metadata: Readonly<Record<string, unknown>>): DescribedClient | MetadataFault {
  const { redirect_uris: uris, client_name: name, client_uri: homepage } = metadata;
  const lists = { grant_types: "authorization_code", response_types: "code" };
  for (const [member, needed] of Object.entries(lists)) {
    const list = metadata[member];
    if (list === undefined || (Array.isArray(list) && list.includes(needed))) continue;
    return invalid(`${member}: must have ${needed} among them, or be left out.`);
  }
  const named = nameOf(name);
  if (typeof named !== "string") return named;
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > maxUris) {
    return {
      fault: "invalid_redirect_uri",
      description: `redirect_uris: must be a list of 1 to ${maxUris} addresses.`,
    };
  }
  const redirectUris: string[] = [];
  for (const [i, uri] of uris.entries()) {
    const text = typeof uri === "string" && uri.length <= maxUriLength ? uri : undefined;
    const fault = text === undefined ? `must be text of ${maxUriLength} characters at most.` : redirectFault(text);
    if (text === undefined || fault !== undefined) {
      return { fault: "invalid_redirect_uri", description: `redirect_uris[${i}]: ${fault}` };
    }
    redirectUris.push(text);
  }
  // An invalid homepage is left out instead of refused, because it is only a link beside the name.
  const isFine =
    typeof homepage === "string" && homepage.length <= maxUriLength && homepageFault(homepage) === undefined;
  return { name: named, homepageUrl: isFine ? homepage : null, redirectUris: [...new Set(redirectUris)] };
}

function nameOf(name: unknown): string | MetadataFault {
  if (name === undefined) return "";
  const text = typeof name === "string" ? name.trim() : undefined;
  if (text !== undefined && text.length <= maxNameLength && !unprintable.test(text) && maskKeys(text) === text)
    return text;
  return invalid(`client_name: must be at most ${maxNameLength} printable characters.`);
}

function invalid(description: string): MetadataFault {
  return { fault: "invalid_client_metadata", description };
}
