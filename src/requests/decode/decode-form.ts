// Decodes a form with an inference request. The fields are converted to JSON, and the result is validated like a JSON
// body.
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { fieldError } from "../../base/errors.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { FormFile, ReadForm } from "../../multipart/read-form.ts";
import type { DecodedRequest } from "../decoded-request.ts";
import type { TaskForm } from "../dialects/task/task.ts";
import { decodeRequest, memberRuleOf, type RequestLimits } from "./decode-request.ts";
import { textKind, type ValueRule } from "./rule.ts";

/**
 * Matches names of form fields in the notation of OpenAI's SDKs: `name[]` for an item of a list, `name[member]` for a
 * member of an object.
 */
const inBrackets = /^([^[\]]+)\[([^[\]]*)\]$/;
const indexText = /^\d{1,3}$/;
const numberText = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Decodes a form. Throws a GatewayError if it is invalid. The returned request refers to the form, but does not release
 * it.
 */
export function decodeForm(
  operation: Operation,
  form: ReadForm,
  described: TaskForm,
  limits: RequestLimits,
): DecodedRequest {
  const body = new FormBody(operation, described);
  for (const { name, value } of form.texts) body.addText(name, value);
  for (const file of form.files) body.addFile(file);
  const [needed] = described.files;
  if (!body.has(needed)) throw fieldError(needed, "is required and must be a file, sent with a filename.");
  const bytes = ByteSpan.of(JSON.stringify(body.value));
  const request = decodeRequest(operation, bytes, { ...limits, bodyBytes: bytes.length });
  request.form = form;
  return request;
}

class FormBody {
  readonly #operation: Operation;
  readonly #files: ReadonlySet<string>;
  readonly #members = new Map<string, unknown>();
  /** Names of lists to which later parts of the form may add items. */
  readonly #open = new Set<string>();

  constructor(operation: Operation, { files }: TaskForm) {
    this.#operation = operation;
    this.#files = new Set(files);
  }

  get value(): Record<string, unknown> {
    return Object.fromEntries(this.#members);
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  addText(name: string, text: string): void {
    const [, base = name] = inBrackets.exec(name) ?? [];
    if (this.#files.has(base)) throw fieldError(base, "must be a file: send it with a filename.");
    this.#add(name, (rule) => fieldValue(text, rule));
  }

  addFile({ name, filename, contentType, bytes, seconds }: FormFile): void {
    if (bytes === 0) throw fieldError(name, "must be a file that is not empty.");
    this.#add(name, () => ({ filename, content_type: contentType, bytes, seconds }));
  }

  #add(name: string, of: (rule: ValueRule | undefined) => unknown): void {
    const [, base = name, inner] = inBrackets.exec(name) ?? [];
    const rule = memberRuleOf(this.#operation, base);
    // The name of a list item may contain an index (`name[0]`), because PHP's curl cannot repeat a name.
    const isItem = inner === "" || (inner !== undefined && rule?.arrays !== undefined && indexText.test(inner));
    if (isItem) this.#addItem(base, of(rule?.arrays?.[textKind]?.items));
    else if (inner !== undefined) this.#addMember(base, inner, of(rule?.object?.members.get(inner)?.value));
    else if (this.#isOneMore(base, rule)) this.#addItem(base, of(rule?.arrays?.[textKind]?.items));
    else if (this.#members.has(base)) throw appearsTwice(base);
    else this.#members.set(base, of(rule));
  }

  /** Reports whether a field whose name has no brackets is an item of a list. */
  #isOneMore(name: string, rule: ValueRule | undefined): boolean {
    if (!rule?.arrays) return false;
    // A single field becomes a single value if the schema allows that, and otherwise a list with one item.
    const mayBeAlone = rule.texts.length > 0 || rule.object !== undefined;
    return !mayBeAlone || this.#members.has(name);
  }

  #addItem(name: string, item: unknown): void {
    const list = this.#members.get(name);
    if (!this.#members.has(name)) this.#members.set(name, [item]);
    else if (this.#open.has(name)) (list as unknown[]).push(item);
    else if (memberRuleOf(this.#operation, name)?.arrays) this.#members.set(name, [list, item]);
    else throw appearsTwice(name);
    this.#open.add(name);
  }

  #addMember(name: string, member: string, value: unknown): void {
    const known = this.#members.get(name);
    if (known === undefined) {
      this.#members.set(name, Object.fromEntries([[member, value]]));
      return;
    }
    const isObject = typeof known === "object" && !Array.isArray(known) && !this.#files.has(name);
    if (!isObject || Object.hasOwn(known as object, member)) throw appearsTwice(`${name}[${member}]`);
    Object.defineProperty(known, member, { value, enumerable: true });
  }
}

/**
 * Converts a field to a number or boolean if the schema expects one. Any other field stays a text. If the text does not
 * fit, the validation rejects it.
 */
function fieldValue(text: string, rule: ValueRule | undefined): unknown {
  if (!rule || rule.isOpen || rule.texts.length > 0) return text;
  if (rule.numbers.length > 0 && numberText.test(text)) return Number(text);
  if (rule.allowsTrue && text === "true") return true;
  if (rule.allowsFalse && text === "false") return false;
  return text;
}

function appearsTwice(name: string) {
  return fieldError(name, "appears twice in the form; send it once.");
}
