// Refuses the members that an operator has listed. They are searched in the body, and in objects within it that model
// servers read in the same way.
import { fieldError } from "../../base/errors.ts";
import { rulingArguments, templateArguments } from "../../domain/models/ruling-members.ts";
import { foldName } from "../../domain/names/field-names.ts";
import type { DecodedRequest } from "../decoded-request.ts";
import { neutralMembers } from "../dialects/neutral-members.ts";

type Json = Readonly<Record<string, unknown>>;

/** Names of members that occur inside parts of a prompt and inside tools. */
const innerNames: readonly string[] = ["file_id", "file_ids", "vector_store_ids"];
/**
 * Values that have no effect at model servers, by the name of the member. For every member, `null` has no effect
 * either.
 */
const neutralValues: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...(["id_slot", "slot_id", "data_parallel_rank"] as const).map((name) => [name, -1] as const),
  ["return_hidden_states", false],
  ["chat_template", ""],
]);
/** Matches paths of schemas and metadata that the client defines. No server looks up files there. */
const ownPaths = new RegExp(
  `^(?:${[
    "metadata|guided_json|json_schema|format|structured_outputs|response_format|output_format",
    "(?:chat_template_kwargs\\.)?documents|(?:text|output_config)\\.format",
    "(?:input\\[\\d+\\]\\.)?(?:tools|functions)\\[\\d+\\](?:\\.tools\\[\\d+\\]|\\.function)*\\.(?:parameters|input_schema|input_examples)",
  ].join("|")})$`,
);
/** Matches paths of file citations that a model wrote. Clients send them back with the model's answer. */
const citedPaths =
  /^(?:(?:messages|input)\[\d+\](?:\.content\[\d+\])?\.(?:annotations|citations)|input\[\d+\]\.(?:results|outputs))$/;
const blockPath = /^messages\[\d+\]\.content\[\d+\]$/;

export class RefusedMembers {
  readonly #names: ReadonlySet<string>;
  /** Refused names that the scan of a body does not report as unknown, because they have a rule. */
  readonly #known: readonly string[];
  readonly #inner: ReadonlySet<string>;
  /** Matches an inner name in the bytes of a body, which are read as Latin-1. */
  readonly #innerName: RegExp;
  readonly #ofTemplates: ReadonlySet<string>;
  readonly #decisive: ReadonlySet<string>;

  /** `decisive` lists the names that the gateway reads. */
  constructor(names: readonly string[], decisive: ReadonlySet<string>) {
    this.#decisive = decisive;
    this.#names = new Set(names);
    this.#known = names.filter((name) => neutralMembers.has(name) || decisive.has(name));
    this.#inner = new Set(innerNames.filter((name) => this.#names.has(name)));
    this.#innerName = new RegExp(`"(?:${[...this.#inner].join("|")})"`, "i");
    this.#ofTemplates = new Set([...names, ...(this.#names.has("chat_template") ? rulingArguments : [])]);
  }

  /**
   * Throws `invalid_request` if the request has a refused member. A scanned body is only parsed completely if one of
   * its known members may be refused. Otherwise only unknown members and the template arguments are parsed.
   * `templateStart` and `templateEnd` are the offsets of the template arguments. Both are 0 if there are none.
   */
  require(request: DecodedRequest, templateStart: number, templateEnd: number): void {
    if (request.unknownMembers === undefined || this.#mayHave(request)) {
      this.#requireBody(request.body);
      return;
    }
    if (request.unknownMembers.length > 0) this.#requireMembers(request.otherMembers);
    if (templateEnd > 0) {
      const { buffer, start } = request.bytes;
      const passed: unknown = JSON.parse(buffer.toString("utf8", start + templateStart, start + templateEnd));
      this.#requireArguments(passed, templateArguments);
    }
  }

  #mayHave({ bytes }: DecodedRequest): boolean {
    const has = (name: string) => bytes.view.includes(name);
    if (this.#known.some((name) => has(`"${name}"`))) return true;
    // Names inside a prompt part may be written with escapes, or with U+017F, which lenient servers read as an s.
    return this.#inner.size > 0 && (has("\\u") || has("\u017f") || this.#innerName.test(bytes.view.toString("latin1")));
  }

  #requireBody(body: Json): void {
    this.#requireMembers(body);
    if (this.#inner.size > 0) this.#requireWithin(body, "");
  }

  /** Checks the members of the body, or some of them. */
  #requireMembers(body: Json): void {
    this.#requireIn(body, this.#names, "");
    for (const [name, value] of Object.entries(body)) {
      if (foldName(name) === templateArguments) this.#requireArguments(value, name);
      // Model servers also read refused members inside objects that the gateway does not know.
      else if (!neutralMembers.has(name) && !this.#decisive.has(name)) this.#requireUnknown(value, name);
    }
  }

  #requireArguments(value: unknown, path: string): void {
    if (value === null || this.#ofTemplates.size === 0) return;
    if (typeof value !== "object" || Array.isArray(value)) {
      throw fieldError(path, "must be an object of variables, or null.");
    }
    this.#requireIn(value, this.#ofTemplates, path);
  }

  #requireIn(value: object, names: ReadonlySet<string>, path: string): void {
    for (const [name, member] of Object.entries(value)) {
      const folded = foldName(name);
      if (!names.has(folded) || member === null) continue;
      if (path !== "" || member !== neutralValues.get(folded)) throw refused(path === "" ? name : `${path}.${name}`);
    }
  }

  #requireUnknown(value: unknown, path: string): void {
    if (typeof value !== "object" || value === null) return;
    if (!Array.isArray(value)) this.#requireIn(value, this.#names, path);
    for (const [name, member, at] of membersOf(value, path)) {
      // The names in `properties` of a JSON schema are chosen by the client, so they are not checked.
      if (name !== "properties") this.#requireUnknown(member, at);
    }
  }

  #requireWithin(value: unknown, path: string): void {
    if (typeof value !== "object" || value === null) return;
    if (!Array.isArray(value)) this.#requireIn(value, this.#inner, path);
    const said = blockPath.test(path) ? saidMember((value as Json)["type"]) : undefined;
    for (const [name, member, at] of membersOf(value, path)) {
      if (name !== said && !ownPaths.test(at) && !citedPaths.test(at)) this.#requireWithin(member, at);
    }
  }
}

const none: never[] = [];

/** Lists the members of an object with their paths. For an array, lists the objects and arrays in it. */
function membersOf(value: object, path: string): (readonly [name: string, member: unknown, path: string])[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) =>
      typeof item === "object" ? [["", item, `${path}[${index}]`] as const] : none,
    );
  }
  return Object.entries(value).map(([name, member]) => [name, member, path === "" ? name : `${path}.${name}`] as const);
}

/**
 * Returns the member that contains output of a model, or output of code that the model ran, for a block of this type.
 */
function saidMember(type: unknown): string | undefined {
  if (typeof type !== "string") return undefined;
  if (type.endsWith("tool_use")) return "input";
  return type.endsWith("code_execution_tool_result") ? "content" : undefined;
}

function refused(name: string) {
  return fieldError(
    name,
    "is not passed on to model servers, as it rules the server rather than the answer. Leave it out; an operator can allow it by `limits.refused_members`.",
  );
}
